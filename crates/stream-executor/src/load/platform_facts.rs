//! Names and flags of a platform.

use std::ffi::{CStr, CString, c_char};

use serdes_abi::Family;

use crate::{border::StructView, report::Report};

/// Fields of SP_Platform, checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlatformFacts {
    pub(crate) name: String,
    pub(crate) device_type: String,
    pub(crate) supports_unified_memory: bool,
    pub(crate) use_bfc_allocator: bool,
    pub(crate) force_memory_growth: bool,
    /// The number of devices, if the platform's struct has it.
    pub(crate) visible_device_count: Option<usize>,
}

/// Reads and checks SP_Platform; returns `None` if it is refused.
pub(super) fn platform_facts(
    view: StructView<'_>,
    family: Family,
    report: &mut Report,
) -> Option<PlatformFacts> {
    let names = match family {
        Family::Released => &RELEASED_NAMES,
        Family::Rfc => &RFC_NAMES,
    };
    let name = registered_name(view, "name", names, report);
    let device_type = registered_name(view, "type", &RELEASED_NAMES, report);
    report.platform.clone_from(&name);
    report.device_type.clone_from(&device_type);
    let flag = |field: &str| view.scalar::<u8>(field).is_some_and(|value| value != 0);
    Some(PlatformFacts {
        name: name?,
        device_type: device_type?,
        supports_unified_memory: flag("supports_unified_memory"),
        use_bfc_allocator: flag("use_bfc_allocator"),
        force_memory_growth: flag("force_memory_growth"),
        visible_device_count: view.scalar::<usize>("visible_device_count"),
    })
}

/// The longest platform name or type that is read, in bytes.
const LONGEST_NAME: usize = 4096;

/// Permitted names of a platform.
struct Names {
    /// Description of permitted names for the message.
    expected: &'static str,
    /// Remedy for any other name.
    remedy: &'static str,
    is_valid: fn(char, usize) -> bool,
}

/// The names that TensorFlow accepts.
const RELEASED_NAMES: Names = Names {
    expected: "a name that matches [A-Z][A-Z_]*",
    remedy: "use upper-case letters and underscores only",
    is_valid: |character, at| character.is_ascii_uppercase() || (at > 0 && character == '_'),
};

/// RFC #257 has no rule for a platform's name, and uses `MyDevice` in its example (004:743). It
/// must be a word, because a colon or a slash would split it in the names of devices.
const RFC_NAMES: Names = Names {
    expected: "a name that matches [A-Za-z][A-Za-z0-9_]*",
    remedy: "use letters, digits and underscores only",
    is_valid: |character, at| {
        character.is_ascii_alphabetic()
            || (at > 0 && (character.is_ascii_digit() || character == '_'))
    },
};

/// Returns a name in SP_Platform, checked against its pattern.
fn registered_name(
    view: StructView<'_>,
    field: &'static str,
    names: &Names,
    report: &mut Report,
) -> Option<String> {
    let pointer = view.scalar::<*const c_char>(field).unwrap_or(std::ptr::null());
    // SAFETY: the plug-in's own string, which it keeps until destroy_platform.
    let Some(name) = (unsafe { bounded_string(pointer, LONGEST_NAME) }) else {
        report.refuse("SP_Platform", field, "NULL", names.expected, "set it in SE_InitPlugin");
        return None;
    };
    let name = name.to_string_lossy().into_owned();
    let is_valid = |(at, character)| (names.is_valid)(character, at);
    if name.is_empty() || !name.chars().enumerate().all(is_valid) {
        report.refuse(
            "SP_Platform",
            field,
            format!("`{}`", name.escape_debug()),
            names.expected,
            names.remedy,
        );
    }
    Some(name)
}

/// Returns the string at `pointer`, truncated to `longest` bytes; `None` for NULL.
///
/// # Safety
/// `pointer` is NULL or points to a NUL-terminated string.
pub(crate) unsafe fn bounded_string(pointer: *const c_char, longest: usize) -> Option<CString> {
    if pointer.is_null() {
        return None;
    }
    // The signedness of C's `char` depends on the processor, so it is read as a byte.
    let pointer = pointer.cast::<u8>();
    let mut bytes = Vec::new();
    for index in 0..longest {
        // SAFETY: all bytes before this one were not NUL, so that this one is still in the string.
        let byte = unsafe { pointer.add(index).read() };
        bytes.push(byte);
        if byte == 0 {
            break;
        }
    }
    if bytes.last() != Some(&0) {
        bytes.push(0);
    }
    CStr::from_bytes_until_nul(&bytes).ok().map(CStr::to_owned)
}
