//! Provides our status functions to loaded libraries, in any binary.
//!
//! A plug-in leaves `TF_SetStatus` and similar functions undefined; the dynamic loader looks them
//! up in the global scope. Functions of a Rust library are not there, and a library has no flag to
//! put them there for the binaries of its users. So a shared object is built in memory that
//! contains only a symbol table, whose absolute symbols are the addresses of our functions, and is
//! opened with RTLD_GLOBAL before the first plug-in. Absolute symbols need glibc 2.28.

use std::{
    ffi::CString,
    fs::File,
    io::{self, Write},
    os::fd::{AsRawFd, FromRawFd},
    sync::OnceLock,
};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use serdes_library_file::status_functions::{PREFIXES, SERVED};

use super::status::served_addresses;
use crate::error::Error;

/// Sizes of the structs of the 64-bit ELF format, in bytes.
const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const SYMBOL: usize = 24;
const DYNAMIC: usize = 16;

/// The name under which the object appears in debuggers and in `/proc/self/maps`.
const NAME: &str = "libserdes_status.so";

/// Ensures that plug-ins opened from now on find our status functions, and no others.
///
/// # Errors
/// [`Error::ForeignStatusFunctions`] if another library's functions come first; [`Error::System`]
/// if the object cannot be made.
pub(crate) fn install() -> Result<(), Error> {
    static SHIM: OnceLock<Result<Library, io::ErrorKind>> = OnceLock::new();
    let symbols = symbols();
    let shim = SHIM.get_or_init(|| open(&image(&symbols)).map_err(|error| error.kind()));
    if let Err(kind) = shim {
        return Err(Error::System {
            doing: "serve the status functions to plug-ins",
            error: io::Error::from(*kind),
        });
    }
    // A library that is in the global scope already takes precedence over ours.
    for (name, address) in symbols {
        if default_scope(&name) != address {
            return Err(Error::ForeignStatusFunctions { symbol: name });
        }
    }
    Ok(())
}

/// Returns the names and addresses that the object provides.
fn symbols() -> Vec<(String, usize)> {
    let names =
        PREFIXES.iter().flat_map(|prefix| SERVED.iter().map(move |name| format!("{prefix}{name}")));
    names.zip(served_addresses().into_iter().cycle()).collect()
}

/// Returns the address that the dynamic loader finds for a name in the global scope; 0 if there is
/// none.
fn default_scope(name: &str) -> usize {
    let Ok(name) = CString::new(name) else { return 0 };
    // SAFETY: dlsym takes any string, and RTLD_DEFAULT is a valid handle.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as usize }
}

/// Writes the object into an anonymous file and opens it.
fn open(image: &[u8]) -> io::Result<Library> {
    // SAFETY: the name is a NUL-terminated string.
    let descriptor = unsafe { libc::memfd_create(c"serdes_status".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and has no other owner.
    let mut file = unsafe { File::from_raw_fd(descriptor) };
    file.write_all(image)?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // SAFETY: the object has no code and no initialisers; it only adds symbols.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }.map_err(io::Error::other)
}

/// Returns the shared object: header, program headers, hash table, symbols, strings, dynamic
/// section.
fn image(symbols: &[(String, usize)]) -> Vec<u8> {
    let count = symbols.len() + 1;
    let hash_at = HEADER + 3 * PROGRAM_HEADER;
    let hash_size = 4 * (2 + 1 + count);
    let symbols_at = (hash_at + hash_size).next_multiple_of(8);
    let strings_at = symbols_at + count * SYMBOL;

    let mut strings = vec![0u8];
    let mut add = |text: &str| {
        let at = strings.len();
        strings.extend_from_slice(text.as_bytes());
        strings.push(0);
        at
    };
    let soname = add(NAME);
    let names: Vec<usize> = symbols.iter().map(|(name, _)| add(name)).collect();
    let dynamic_at = (strings_at + strings.len()).next_multiple_of(8);
    let entries = [
        (14, soname),        // DT_SONAME
        (4, hash_at),        // DT_HASH
        (5, strings_at),     // DT_STRTAB
        (6, symbols_at),     // DT_SYMTAB
        (10, strings.len()), // DT_STRSZ
        (11, SYMBOL),        // DT_SYMENT
        (0, 0),              // DT_NULL
    ];
    let size = dynamic_at + entries.len() * DYNAMIC;

    let mut out = Image(Vec::with_capacity(size));
    out.headers(size, dynamic_at, entries.len() * DYNAMIC);
    // One bucket, whose chain runs from the last symbol to the first; symbol 0 ends it.
    out.u32(1);
    out.u32(count as u32);
    out.u32(count as u32 - 1);
    for index in 0..count {
        out.u32((index as u32).saturating_sub(1));
    }
    out.pad(symbols_at);
    out.bytes(&[0; SYMBOL]);
    for ((_, address), name) in symbols.iter().zip(names) {
        out.u32(name as u32);
        out.bytes(&[0x12, 0]); // a global function with default visibility
        out.u16(0xfff1); // SHN_ABS
        out.u64(*address as u64);
        out.u64(0);
    }
    out.bytes(&strings);
    out.pad(dynamic_at);
    for (tag, value) in entries {
        out.u64(tag);
        out.u64(value as u64);
    }
    out.0
}

/// The object while it is being built.
struct Image(Vec<u8>);

impl Image {
    /// Writes the header of the file and its program headers: one segment of `size` bytes, and the
    /// dynamic section in it.
    fn headers(&mut self, size: usize, dynamic_at: usize, dynamic_size: usize) {
        const MACHINE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
        const PT_LOAD: u32 = 1;
        const PT_DYNAMIC: u32 = 2;
        const PT_GNU_STACK: u32 = 0x6474_e551;
        const READ_WRITE: u32 = 6;
        const SEGMENT_ALIGNMENT: u64 = 0x10000;

        // e_ident: magic, 64 bits, this machine's byte order (both architectures are little-endian
        // here), version 1.
        self.bytes(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        self.u16(3); // e_type: shared object
        self.u16(MACHINE);
        self.u32(1); // e_version
        self.u64(0); // e_entry
        self.u64(HEADER as u64); // e_phoff
        self.u64(0); // e_shoff: the loader needs no sections
        self.u32(0); // e_flags
        for value in [HEADER, PROGRAM_HEADER, 3, 64, 0, 0] {
            self.u16(value as u16); // e_ehsize, e_phentsize, e_phnum, e_shentsize, e_shnum, e_shstrndx
        }
        // The loader writes into the dynamic section, so the one segment is writable.
        self.program_header(PT_LOAD, READ_WRITE, 0, size, SEGMENT_ALIGNMENT);
        self.program_header(PT_DYNAMIC, READ_WRITE, dynamic_at, dynamic_size, 8);
        self.program_header(PT_GNU_STACK, READ_WRITE, 0, 0, 16);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    fn pad(&mut self, offset: usize) {
        self.0.resize(offset, 0);
    }

    fn program_header(&mut self, kind: u32, flags: u32, at: usize, size: usize, alignment: u64) {
        self.u32(kind);
        self.u32(flags);
        self.u64(at as u64); // p_offset
        self.u64(at as u64); // p_vaddr
        self.u64(at as u64); // p_paddr
        self.u64(size as u64); // p_filesz
        self.u64(size as u64); // p_memsz
        self.u64(alignment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_global_scope_has_our_functions_after_installation() {
        install().unwrap();
        install().unwrap();
        for (name, address) in symbols() {
            assert_eq!(default_scope(&name), address, "{name}");
        }
        assert_eq!(default_scope("TF_RegisterKernelBuilder"), 0);
    }
}
