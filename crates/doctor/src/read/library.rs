//! Shared libraries: their system and machine, and for ELF the required and defined versions of the
//! C library.
//!
//! Only headers and version sections are read, never symbols: a plug-in may have 400 MB.

use std::{fs::File, path::Path};

use object::{
    Endianness, FileKind, elf, macho, pe,
    read::{
        ReadCache, ReadRef,
        elf::SectionTable,
        macho::{FatArch as _, MachHeader as _, MachOFatFile32},
        pe::PeFile64,
    },
};

/// Maximum number of versions in one file: real libraries have some dozens, and a damaged list may
/// be cyclic.
const VERSIONS: usize = 10_000;

/// The system requirements of a library, and the versions that it defines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// The system, with the name of [`Environment::system`](crate::Environment).
    pub(super) system: &'static str,
    /// The machines, with the names of wheel platforms. Several for a universal library; empty if
    /// the machine has no such name.
    pub(super) machines: Vec<&'static str>,
    /// The newest required `GLIBC_` version.
    pub(super) needs: Option<(u64, u64)>,
    /// The newest defined `GLIBC_` version.
    pub(super) defines: Option<(u64, u64)>,
}

/// Reads the headers and version sections of a file; `None` if it is not a shared library or no
/// regular file.
pub(super) fn read(path: &Path) -> Option<Facts> {
    // Opening a pipe blocks.
    let file = std::fs::metadata(path).ok()?.is_file().then(|| File::open(path))?.ok()?;
    let cache = ReadCache::new(file);
    match FileKind::parse(&cache).ok()? {
        FileKind::Elf32 => elf::<elf::FileHeader32<Endianness>, _>(&cache),
        FileKind::Elf64 => elf::<elf::FileHeader64<Endianness>, _>(&cache),
        FileKind::MachO64 => {
            let header = macho::MachHeader64::<Endianness>::parse(&cache, 0).ok()?;
            let machine = apple(header.cputype(header.endian().ok()?));
            Some(darwin(machine.into_iter().collect()))
        }
        FileKind::MachOFat32 => {
            let fat = MachOFatFile32::parse(&cache).ok()?;
            let archs = fat.arches().iter().take(VERSIONS);
            Some(darwin(archs.filter_map(|arch| apple(arch.cputype())).collect()))
        }
        FileKind::Pe64 => {
            let file = PeFile64::parse(&cache).ok()?;
            let machine = match file.nt_headers().file_header.machine.get(object::LittleEndian) {
                pe::IMAGE_FILE_MACHINE_AMD64 => Some("amd64"),
                pe::IMAGE_FILE_MACHINE_ARM64 => Some("arm64"),
                _ => None,
            };
            let machines = machine.into_iter().collect();
            Some(Facts { system: "win32", machines, ..Facts::default() })
        }
        _ => None,
    }
}

fn darwin(machines: Vec<&'static str>) -> Facts {
    Facts { system: "darwin", machines, ..Facts::default() }
}

fn apple(cpu: macho::CpuType) -> Option<&'static str> {
    match cpu {
        macho::CPU_TYPE_ARM64 => Some("arm64"),
        macho::CPU_TYPE_X86_64 => Some("x86_64"),
        _ => None,
    }
}

fn elf<'a, H, R>(data: R) -> Option<Facts>
where
    H: object::read::elf::FileHeader<Endian = Endianness>,
    R: ReadRef<'a>,
{
    let header = H::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let machine = match header.e_machine(endian) {
        elf::EM_X86_64 => Some("x86_64"),
        elf::EM_AARCH64 => Some("aarch64"),
        elf::EM_386 => Some("i686"),
        elf::EM_PPC64 => Some("ppc64le"),
        elf::EM_S390 => Some("s390x"),
        _ => None,
    };
    let machines = machine.into_iter().collect();
    let mut facts = Facts { system: "linux", machines, ..Facts::default() };
    if let Ok(sections) = header.sections(endian, data) {
        versions(&sections, endian, data, &mut facts);
    }
    Some(facts)
}

fn versions<'a, H, R>(
    sections: &SectionTable<'a, H, R>,
    endian: Endianness,
    data: R,
    facts: &mut Facts,
) where
    H: object::read::elf::FileHeader<Endian = Endianness>,
    R: ReadRef<'a>,
{
    let mut budget = VERSIONS;
    let mut is_left = || {
        budget = budget.saturating_sub(1);
        budget > 0
    };
    if let Ok(Some((mut needed, link))) = sections.gnu_verneed(endian, data)
        && let Ok(strings) = sections.strings(endian, data, link)
    {
        while let Ok(Some((_, mut names))) = needed.next() {
            while let Ok(Some(name)) = names.next()
                && is_left()
            {
                facts.needs = facts.needs.max(name.name(endian, strings).ok().and_then(glibc));
            }
            if !is_left() {
                break;
            }
        }
    }
    if let Ok(Some((mut defined, link))) = sections.gnu_verdef(endian, data)
        && let Ok(strings) = sections.strings(endian, data, link)
    {
        while let Ok(Some((_, mut names))) = defined.next() {
            while let Ok(Some(name)) = names.next()
                && is_left()
            {
                facts.defines = facts.defines.max(name.name(endian, strings).ok().and_then(glibc));
            }
            if !is_left() {
                break;
            }
        }
    }
}

/// Parses MAJOR and MINOR of `GLIBC_2.31`.
fn glibc(name: &[u8]) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(name).ok()?.strip_prefix("GLIBC_")?;
    let mut numbers = text.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> Option<Facts> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("library");
        std::fs::write(&path, bytes).unwrap();
        read(&path)
    }

    #[test]
    fn libraries_of_apple_tell_their_machine() {
        let mut header = Vec::new();
        for number in [0xfeed_facf_u32, 0x0100_000c, 0, 6, 0, 0, 0, 0] {
            header.extend(number.to_le_bytes());
        }
        let facts = of(&header).unwrap();
        assert_eq!((facts.system, facts.machines), ("darwin", vec!["arm64"]));
        let mut fat = Vec::new();
        for number in [0xcafe_babe_u32, 2, 0x0100_000c, 0, 64, 0, 0, 0x0100_0007, 3, 64, 0, 0] {
            fat.extend(number.to_be_bytes());
        }
        assert_eq!(of(&fat).unwrap().machines, ["arm64", "x86_64"]);
    }

    #[test]
    fn libraries_of_windows_tell_their_machine() {
        let mut file = vec![0; 0x40 + 4 + 20 + 240];
        file[..2].copy_from_slice(b"MZ");
        file[0x3c] = 0x40;
        file[0x40..0x44].copy_from_slice(b"PE\0\0");
        file[0x44..0x46].copy_from_slice(&0x8664_u16.to_le_bytes());
        file[0x54..0x56].copy_from_slice(&240_u16.to_le_bytes());
        file[0x58..0x5a].copy_from_slice(&0x20b_u16.to_le_bytes());
        file[0x58 + 108..0x58 + 112].copy_from_slice(&16_u32.to_le_bytes());
        let facts = of(&file).unwrap();
        assert_eq!((facts.system, facts.machines), ("win32", vec!["amd64"]));
    }

    #[test]
    fn the_library_of_this_test_needs_a_c_library() {
        let own = std::env::current_exe().unwrap();
        if cfg!(all(target_os = "linux", target_env = "gnu")) {
            let facts = read(&own).unwrap();
            assert!(facts.needs > Some((2, 1)), "{facts:?}");
            assert_eq!(facts.machines, [std::env::consts::ARCH]);
        }
    }

    #[test]
    fn other_files_are_no_libraries() {
        assert_eq!(of(b"#!/bin/sh\n"), None);
        assert_eq!(of(b""), None);
        assert_eq!(of(b"\x7fELF"), None);
    }
}
