//! What a platform says of itself: its names and flags.

use std::ffi::{CStr, CString, c_char};

use crate::stream_executor::block::View;
use crate::stream_executor::report::Report;

/// What SP_Platform says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlatformFacts {
    pub(crate) name: String,
    pub(crate) device_type: String,
    pub(crate) supports_unified_memory: bool,
    pub(crate) use_bfc_allocator: bool,
    pub(crate) force_memory_growth: bool,
    /// The number of devices where the platform itself says it.
    pub(crate) visible_device_count: Option<usize>,
}

/// Reads and checks what SP_Platform says; `None` where it is refused.
pub(super) fn platform_facts(view: View<'_>, report: &mut Report) -> Option<PlatformFacts> {
    let name = registered_name(view, "name", report);
    let device_type = registered_name(view, "type", report);
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

/// A name in SP_Platform, checked against the pattern that TensorFlow has for it.
fn registered_name(view: View<'_>, field: &'static str, report: &mut Report) -> Option<String> {
    let pattern = "a name that matches [A-Z][A-Z_]*";
    let pointer = view.scalar::<*const c_char>(field).unwrap_or(std::ptr::null());
    // SAFETY: the plug-in's own string, which it keeps until destroy_platform.
    let Some(name) = (unsafe { bounded_string(pointer, LONGEST_NAME) }) else {
        report.refuse("SP_Platform", field, "NULL", pattern, "set it in SE_InitPlugin");
        return None;
    };
    let name = name.to_string_lossy().into_owned();
    let mut characters = name.chars();
    let valid = characters.next().is_some_and(|first| first.is_ascii_uppercase())
        && characters.all(|rest| rest.is_ascii_uppercase() || rest == '_');
    if !valid {
        report.refuse(
            "SP_Platform",
            field,
            format!("`{}`", name.escape_debug()),
            pattern,
            "use upper-case letters and underscores only",
        );
    }
    Some(name)
}

/// The string at `pointer`, cut after `longest` bytes; `None` for NULL.
///
/// # Safety
/// `pointer` is NULL or points to a NUL-terminated string.
pub(crate) unsafe fn bounded_string(pointer: *const c_char, longest: usize) -> Option<CString> {
    if pointer.is_null() {
        return None;
    }
    let mut bytes = Vec::new();
    for index in 0..longest {
        // SAFETY: all bytes before this one were not NUL, so that this one is still in the string.
        let byte = unsafe { pointer.add(index).read() }.cast_unsigned();
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
