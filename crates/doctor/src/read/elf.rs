//! ELF files: the machine, the versions of the C library that one needs, and those that it defines.

use std::{fs::File, path::Path};

use object::{
    Endianness,
    elf::{EM_386, EM_AARCH64, EM_X86_64, FileHeader64},
    read::{
        ReadCache,
        elf::{ElfFile64, FileHeader as _},
    },
};

/// What a library asks of the system, or gives.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// The machine, as platforms of wheels name it.
    pub(super) machine: Option<String>,
    /// The newest `GLIBC_` version that it needs.
    pub(super) needs: Option<(u64, u64)>,
    /// The newest `GLIBC_` version that it defines.
    pub(super) defines: Option<(u64, u64)>,
}

/// Reads the headers of a file, and the sections that say versions. `None` for what is no 64-bit ELF
/// file.
pub(super) fn read(path: &Path) -> Option<Facts> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let file: ElfFile64<'_, Endianness, &ReadCache<File>> = ElfFile64::parse(&cache).ok()?;
    let endian = file.endian();
    let header: &FileHeader64<Endianness> = file.elf_header();
    let machine = match header.e_machine(endian) {
        EM_X86_64 => Some("x86_64"),
        EM_AARCH64 => Some("aarch64"),
        EM_386 => Some("i686"),
        _ => None,
    };
    let mut facts = Facts { machine: machine.map(str::to_owned), ..Facts::default() };
    let sections = file.elf_section_table();
    if let Ok(Some((mut needed, link))) = sections.gnu_verneed(endian, &cache)
        && let Ok(strings) = sections.strings(endian, &cache, link)
    {
        while let Ok(Some((_, mut versions))) = needed.next() {
            while let Ok(Some(version)) = versions.next() {
                facts.needs = facts.needs.max(version.name(endian, strings).ok().and_then(glibc));
            }
        }
    }
    if let Ok(Some((mut defined, link))) = sections.gnu_verdef(endian, &cache)
        && let Ok(strings) = sections.strings(endian, &cache, link)
    {
        while let Ok(Some((_, mut names))) = defined.next() {
            while let Ok(Some(name)) = names.next() {
                facts.defines = facts.defines.max(name.name(endian, strings).ok().and_then(glibc));
            }
        }
    }
    Some(facts)
}

/// MAJOR and MINOR of `GLIBC_2.31`.
fn glibc(name: &[u8]) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(name).ok()?.strip_prefix("GLIBC_")?;
    let mut numbers = text.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}
