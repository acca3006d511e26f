//! The linked list of a plug-in's extensions, which begins in its table.

use serdes_abi::pjrt::{self, Minor};

use super::calls::RawFunction;

/// An extension of the C API that a plug-in offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// The number of the extension.
    pub number: i32,
    /// The name, such as `Layouts`, if the number is known.
    pub name: Option<&'static str>,
    /// The size that the extension declares, in bytes; 0 in minors before 0.45, whose extensions
    /// have no such field.
    pub struct_size: usize,
}

/// The maximum number of extensions that are read: three times that of any known plug-in.
const MAX_EXTENSIONS: usize = 64;
const PREFIX: &str = "PJRT_Extension_Type_";

/// The extensions of a plug-in with their addresses.
#[derive(Debug)]
pub(super) struct Chain {
    extensions: Vec<Extension>,
    /// The address of each extension; the plug-in's library, which owns them, is never closed.
    addresses: Vec<*const u8>,
}

// SAFETY: extensions belong to the library, which is never closed, and are never written to.
unsafe impl Send for Chain {}
// SAFETY: as above.
unsafe impl Sync for Chain {}

impl Chain {
    /// Reads the extensions from `first`, in their order. Stops with a warning at an address that
    /// is not aligned, and after [`MAX_EXTENSIONS`].
    ///
    /// # Safety
    /// `first` and the `next` of each extension are NULL or point to an extension in the layout of
    /// `minor`, which lives as long as the process.
    pub(super) unsafe fn walk(first: *const u8, minor: Minor, warnings: &mut Vec<String>) -> Self {
        let has_size = minor >= Minor::SIZED_EXTENSIONS;
        let types = pjrt::enumeration("PJRT_Extension_Type");
        let mut chain = Self { extensions: Vec::new(), addresses: Vec::new() };
        let mut next = first;
        while !next.is_null() {
            if chain.addresses.len() == MAX_EXTENSIONS {
                warnings
                    .push(format!("its chain of extensions does not end after {MAX_EXTENSIONS}"));
                break;
            }
            if !next.addr().is_multiple_of(align_of::<usize>()) {
                warnings.push(format!("its chain of extensions leads to the odd address {next:?}"));
                break;
            }
            let number_offset = if has_size { 8 } else { 0 };
            // SAFETY: by the caller's promise this is an extension, and it is aligned: it begins
            // with its size if the minor has one, then its number, then, aligned, the address of
            // the next.
            let (struct_size, number, following) = unsafe {
                (
                    if has_size { next.cast::<usize>().read() } else { 0 },
                    next.add(number_offset).cast::<i32>().read(),
                    next.add(number_offset + 8).cast::<*const u8>().read(),
                )
            };
            let name = types.and_then(|types| types.name_of(number, minor));
            let name = name.map(|name| name.strip_prefix(PREFIX).unwrap_or(name));
            chain.extensions.push(Extension { number, name, struct_size });
            chain.addresses.push(next);
            next = following;
        }
        chain
    }

    pub(super) fn extensions(&self) -> &[Extension] {
        &self.extensions
    }

    /// Returns the function at `offset` in the extension `number`. `None` if it is NULL, if the
    /// extension ends before it, or if the extension has no size or one above
    /// [`MAX_EXTENSION_SIZE`].
    pub(super) fn function(&self, number: i32, offset: usize) -> Option<RawFunction> {
        let mut chain = self.extensions.iter().zip(&self.addresses);
        let (extension, &address) = chain.find(|(extension, _)| extension.number == number)?;
        let end = offset + size_of::<RawFunction>();
        if end > extension.struct_size || extension.struct_size > MAX_EXTENSION_SIZE {
            return None;
        }
        // SAFETY: the extension declares at least this size in bytes. The extension and the offset
        // are aligned; a function pointer is one of this type, or NULL, which is `None`.
        unsafe { address.add(offset).cast::<Option<RawFunction>>().read() }
    }
}

/// The largest size of an extension whose functions are called, in bytes: ten times that of any
/// known one.
const MAX_EXTENSION_SIZE: usize = 4 << 10;
