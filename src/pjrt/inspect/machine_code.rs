//! The version of a plug-in out of its machine code.
//!
//! A plug-in's table is no data of the file: it is put together when `GetPjrtApi` is called first.
//! Compilers for x86-64 write it with constants: the table's size at its beginning, 24 (the size of
//! the version) at byte 16, then major and minor number as one constant of eight bytes. These three
//! stores stand close together in nine of ten plug-ins that were looked at, and nowhere else in
//! them.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use object::{
    Endianness, ReadCache,
    elf::{FileHeader64, PF_X, PT_LOAD},
    read::elf::{FileHeader, ProgramHeader},
};
use serdes_abi::pjrt::{self, Minor};

/// A version that was recognised in machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionInCode {
    /// The minor number; the major one is 0.
    pub minor: Minor,
    /// How long the plug-in says that its table is, in bytes.
    pub struct_size: usize,
}

/// How much is read at a time.
const WINDOW: usize = 1 << 20;
/// How far before the store of the version's size that of the table's size may end.
const BEFORE: usize = 64;
/// How far behind it the constant of the version may begin.
const BEHIND: usize = 96;
/// The longest instruction that is looked for.
const INSTRUCTION: usize = 10;
/// Most code that is read, in bytes; the largest plug-in that was seen has a fifth of it.
const MOST_CODE: u64 = 4 << 30;
/// No table is shorter or longer than this.
const TABLES: std::ops::RangeInclusive<usize> = 592..=16_384;
/// No minor is higher than this.
const HIGHEST_MINOR: u32 = 4095;

/// The version that the code of the ELF file at `path` writes, if it is the only one.
pub(super) fn version(path: &Path) -> io::Result<Option<VersionInCode>> {
    let mut file = File::open(path)?;
    let mut found = BTreeSet::new();
    let mut left = MOST_CODE;
    for (offset, bytes) in code(&file) {
        let bytes = bytes.min(left);
        left -= bytes;
        scan_segment(&mut file, offset, bytes, &mut found)?;
    }
    let mut found = found.into_iter();
    Ok(found.next().filter(|_| found.next().is_none()))
}

/// Where the code lies in the file: offset and length of each executable segment. None where the
/// file is no whole ELF file of 64 bits.
fn code(file: &File) -> Vec<(u64, u64)> {
    let cache = ReadCache::new(file);
    let segments = || {
        let header = FileHeader64::<Endianness>::parse(&cache).ok()?;
        let endian = header.endian().ok()?;
        let segments = header.program_headers(endian, &cache).ok()?.iter();
        let is_code = |segment: &&_| {
            let segment: &object::elf::ProgramHeader64<Endianness> = segment;
            segment.p_type(endian) == PT_LOAD
                && segment.p_flags(endian) & PF_X != Default::default()
        };
        let place = |segment: &_| {
            let segment: &object::elf::ProgramHeader64<Endianness> = segment;
            (segment.p_offset(endian), segment.p_filesz(endian))
        };
        Some(segments.filter(is_code).map(place).collect())
    };
    segments().unwrap_or_default()
}

/// Looks through a stretch of the file, a window at a time; windows overlap by what one look needs.
fn scan_segment(
    file: &mut File,
    offset: u64,
    bytes: u64,
    found: &mut BTreeSet<VersionInCode>,
) -> io::Result<()> {
    const OVERLAP: usize = BEFORE + BEHIND + 2 * INSTRUCTION;
    file.seek(SeekFrom::Start(offset))?;
    let mut rest = file.take(bytes);
    let mut window = Vec::with_capacity(WINDOW + OVERLAP);
    loop {
        let kept = window.len().min(OVERLAP);
        window.drain(..window.len() - kept);
        if (&mut rest).take(WINDOW as u64).read_to_end(&mut window)? == 0 {
            return Ok(());
        }
        scan(&window, found);
    }
}

/// `mov qword [register + 16], 24` without its prefix, opcode and register.
const STORE_24: [u8; 5] = [16, 24, 0, 0, 0];

/// Adds every version that the code writes.
fn scan(code: &[u8], found: &mut BTreeSet<VersionInCode>) {
    for (at, _) in code.windows(STORE_24.len()).enumerate().filter(|(_, bytes)| *bytes == STORE_24)
    {
        let (before, behind) = code.split_at(at);
        let (Some(behind), [before @ .., prefix, 0xc7, register]) =
            (behind.strip_prefix(&STORE_24), before)
        else {
            continue;
        };
        if !is_wide(*prefix) || !matches!(register, 0x40..=0x43 | 0x45..=0x47) {
            continue;
        }
        let before = before.get(before.len().saturating_sub(BEFORE)..).unwrap_or_default();
        let behind = behind.get(..BEHIND).unwrap_or(behind);
        if let (Some(struct_size), Some(minor)) = (last_size(before), first_version(behind)) {
            found.insert(VersionInCode { minor, struct_size });
        }
    }
}

/// Whether a byte is the prefix of an instruction over 64 bits with one register.
fn is_wide(prefix: u8) -> bool {
    matches!(prefix, 0x48 | 0x49)
}

/// The number that the last `mov qword [register], number` stores that can be a table's size.
fn last_size(code: &[u8]) -> Option<usize> {
    (0..code.len()).rev().find_map(|at| {
        let operand = match code.get(at..)? {
            // A base pointer has no form without a displacement.
            [prefix, 0xc7, 0x45, 0, operand @ ..] if is_wide(*prefix) => operand,
            [prefix, 0xc7, 0..=3 | 6 | 7, operand @ ..] if is_wide(*prefix) => operand,
            _ => return None,
        };
        let size = u32::from_le_bytes(*operand.first_chunk()?) as usize;
        (TABLES.contains(&size) && size.is_multiple_of(8)).then_some(size)
    })
}

/// The version of the first `mov register, major | minor << 32` with major 0.
fn first_version(code: &[u8]) -> Option<Minor> {
    (0..code.len()).find_map(|at| {
        let [prefix, 0xb8..=0xbf, 0, 0, 0, 0, operand @ ..] = code.get(at..)? else { return None };
        let minor = u32::from_le_bytes(*operand.first_chunk()?);
        let is_version = is_wide(*prefix) && (1..=HIGHEST_MINOR).contains(&minor);
        is_version.then(|| Minor::new(minor))
    })
}

impl VersionInCode {
    /// Whether the size is the one that plug-ins of that minor say; for a newer one than is known,
    /// at least that of the newest.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        let Some(known) = pjrt::table_size(self.minor) else { return false };
        if self.minor.is_known() {
            self.struct_size == known.declared || self.struct_size == known.size_of
        } else {
            self.struct_size >= known.declared
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stores as a compiler writes them, with other instructions between them.
    fn stores(size: u32, minor: u32) -> Vec<u8> {
        let mut code = vec![0x90; 7];
        code.extend([0x48, 0xc7, 0x03]);
        code.extend(size.to_le_bytes());
        code.extend([0x4c, 0x89, 0x73, 0x08]);
        code.extend([0x48, 0xc7, 0x43, 0x10, 24, 0, 0, 0]);
        code.extend([0x48, 0xc7, 0x43, 0x18, 0, 0, 0, 0]);
        code.extend([0x49, 0xb9, 0, 0, 0, 0]);
        code.extend(minor.to_le_bytes());
        code.extend([0x4c, 0x89, 0x4b, 0x20, 0xc3]);
        code
    }

    fn found(code: &[u8]) -> Vec<(u32, usize)> {
        let mut found = BTreeSet::new();
        scan(code, &mut found);
        found.iter().map(|version| (version.minor.number(), version.struct_size)).collect()
    }

    #[test]
    fn three_stores_of_constants_say_the_version() {
        assert_eq!(found(&stores(984, 81)), [(81, 984)]);
        assert_eq!(found(&[stores(808, 54), stores(808, 54)].concat()), [(54, 808)]);
        assert_eq!(found(&[stores(808, 54), vec![0; 200], stores(984, 80)].concat()).len(), 2);
        // The base pointer as the register of the table.
        let mut code = vec![0x49, 0xc7, 0x45, 0x00];
        code.extend(1144_u32.to_le_bytes());
        code.extend([0x49, 0xc7, 0x45, 0x10, 24, 0, 0, 0, 0x48, 0xb8, 0, 0, 0, 0, 117, 0, 0, 0]);
        assert_eq!(found(&code), [(117, 1144)]);
    }

    #[test]
    fn what_is_no_table_is_passed_over() {
        // No size of a table, no version, too far away, cut off at every byte.
        assert_eq!(found(&stores(24, 81)), []);
        assert_eq!(found(&stores(985, 81)), []);
        assert_eq!(found(&stores(984, 0)), []);
        assert_eq!(found(&stores(984, u32::MAX)), []);
        let mut far = stores(984, 81);
        far.splice(18..18, vec![0x90; BEFORE]);
        assert_eq!(found(&far), []);
        let whole = stores(984, 81);
        for end in 0..whole.len() - 5 {
            assert_eq!(found(&whole[..end]), [], "{end}");
        }
        assert_eq!(found(&STORE_24), []);
    }

    #[test]
    fn stores_across_two_windows_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("code");
        let mut code = vec![0x90; WINDOW - 20];
        code.extend(stores(984, 81));
        std::fs::write(&path, &code).unwrap();
        let mut found = BTreeSet::new();
        scan_segment(&mut File::open(&path).unwrap(), 0, u64::MAX, &mut found).unwrap();
        assert_eq!(found.len(), 1);
        // No ELF file has no code.
        assert_eq!(version(&path).unwrap(), None);
    }

    #[test]
    fn a_size_that_plug_ins_of_that_minor_do_not_say_is_not_consistent() {
        let version = |minor, struct_size| VersionInCode { minor: Minor::new(minor), struct_size };
        assert!(version(81, 984).is_consistent() && version(54, 808).is_consistent());
        assert!(version(117, 1144).is_consistent() && version(200, 4000).is_consistent());
        assert!(!version(81, 1144).is_consistent() && !version(117, 984).is_consistent());
        assert!(!version(0, 984).is_consistent());
    }
}
