//! The chain of a table's extensions.

use serdes_abi::pjrt::{self, Minor};

use super::calls::RawFunction;

/// An extension of the interface that a plug-in has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Its number.
    pub number: i32,
    /// Its name, such as `Layouts`, if the number is known.
    pub name: Option<&'static str>,
    /// Size that the extension declares, in bytes; 0 in minors before 0.45, whose extensions have
    /// no such field.
    pub struct_size: usize,
}

/// Most extensions that are looked at: three times what the plug-in with the most has.
const MOST: usize = 64;
const PREFIX: &str = "PJRT_Extension_Type_";

/// The extensions of a plug-in, and where they lie.
#[derive(Debug)]
pub(super) struct Chain {
    described: Vec<Extension>,
    /// The address of each; the plug-in's library, which they belong to, is never closed.
    addresses: Vec<*const u8>,
}

// SAFETY: extensions belong to the library, which is never closed, and are never written to.
unsafe impl Send for Chain {}
// SAFETY: as above.
unsafe impl Sync for Chain {}

impl Chain {
    /// The extensions from `first` on, in their order. A chain that is longer than any, or that
    /// leads to an address that cannot be one, is cut off with a warning.
    ///
    /// # Safety
    /// `first` is NULL or points to an extension as the C API of that minor has it, and so does
    /// each of them; they stay.
    pub(super) unsafe fn walk(first: *const u8, minor: Minor, warnings: &mut Vec<String>) -> Self {
        let sized = minor >= Minor::SIZED_EXTENSIONS;
        let types = pjrt::enumeration("PJRT_Extension_Type");
        let mut chain = Self { described: Vec::new(), addresses: Vec::new() };
        let mut next = first;
        while !next.is_null() {
            if chain.addresses.len() == MOST {
                warnings.push(format!("its chain of extensions does not end after {MOST}"));
                break;
            }
            if !next.addr().is_multiple_of(align_of::<usize>()) {
                warnings.push(format!("its chain of extensions leads to the odd address {next:?}"));
                break;
            }
            let number_at = if sized { 8 } else { 0 };
            // SAFETY: an extension begins with its size where it says one, then its number, then,
            // aligned, the address of the next; the caller says that it is one, and it is aligned.
            let (struct_size, number, following) = unsafe {
                (
                    if sized { next.cast::<usize>().read() } else { 0 },
                    next.add(number_at).cast::<i32>().read(),
                    next.add(number_at + 8).cast::<*const u8>().read(),
                )
            };
            let name = types.and_then(|types| types.name_of(number, minor));
            let name = name.map(|name| name.strip_prefix(PREFIX).unwrap_or(name));
            chain.described.push(Extension { number, name, struct_size });
            chain.addresses.push(next);
            next = following;
        }
        chain
    }

    pub(super) fn described(&self) -> &[Extension] {
        &self.described
    }

    /// The function at that place of the extension of that number, if the extension says that it
    /// reaches so far, and it is not NULL. Extensions that do not say their size have none.
    pub(super) fn function(&self, number: i32, offset: usize) -> Option<RawFunction> {
        let mut found = self.described.iter().zip(&self.addresses);
        let (extension, &address) = found.find(|(extension, _)| extension.number == number)?;
        let end = offset + size_of::<RawFunction>();
        if end > extension.struct_size || extension.struct_size > LONGEST {
            return None;
        }
        // SAFETY: the extension declares at least this size in bytes. It is aligned, and so is the
        // place; a function pointer is one of this type, or NULL, which is `None`.
        unsafe { address.add(offset).cast::<Option<RawFunction>>().read() }
    }
}

/// No extension is believed to be longer, in bytes: ten times the longest that was seen.
const LONGEST: usize = 4 << 10;
