//! Patterns of the code that compilers for x86-64 generate to fill a function table.
//!
//! The table's size is stored as a constant at its beginning. In plug-ins of upstream's code 24 is
//! stored at byte 16, then major and minor number as one constant of eight bytes. In others these
//! eight bytes are loaded from the data, relative to the instruction, and stored at byte 32.

use super::recognised::{Recognised, VersionInFile, minor, table_size};

/// The maximum distance, in bytes, from the end of the store of the table's size to the store of
/// the version's size.
const BEFORE: usize = 64;
/// The maximum distance, in bytes, from that store to the constant of the version.
const BEHIND: usize = 96;
/// The maximum distance, in bytes, between the store of the table's size and the load and store of
/// its version.
const NEAR: usize = 48;
/// The length of the longest instruction in the patterns, in bytes.
const INSTRUCTION: usize = 10;
/// The overlap of neighbouring windows of code, in bytes.
pub(super) const OVERLAP: usize = (BEFORE + BEHIND + 2 * INSTRUCTION).next_multiple_of(8);

/// The opcode of `mov qword [register + …], constant`.
const STORE_CONSTANT: u8 = 0xc7;

/// Reports every version that the code at `address` writes.
pub(super) fn scan(address: u64, code: &[u8], found: &mut impl FnMut(Recognised)) {
    for (at, _) in code.iter().enumerate().filter(|&(_, &byte)| byte == STORE_CONSTANT) {
        let (before, behind) = code.split_at(at);
        let ([before @ .., prefix], [_, register, behind @ ..]) = (before, behind) else {
            continue;
        };
        if !is_wide(*prefix) {
            continue;
        }
        // `[register + 16], 24`.
        if let (0x40..=0x43 | 0x45..=0x47, Some(behind)) =
            (register, behind.strip_prefix(&[16, 24, 0, 0, 0]))
        {
            let before = before.get(before.len().saturating_sub(BEFORE)..).unwrap_or_default();
            let behind = behind.get(..BEHIND).unwrap_or(behind);
            if let (Some(struct_size), Some(minor)) = (last_size(before), first_version(behind)) {
                found(Recognised::Version(VersionInFile { minor, struct_size }));
            }
        } else if let (Some(operand), 0..=3 | 6 | 7) = (behind.first_chunk(), register)
            && let Some(struct_size) = table_size(u32::from_le_bytes(*operand).into())
        {
            let start = at.saturating_sub(NEAR);
            let near = code.get(start..code.len().min(at + NEAR)).unwrap_or_default();
            let address = address.wrapping_add(start as u64);
            if let Some(address) = loaded_version(address, near, *register) {
                found(Recognised::Loaded { struct_size, address });
            }
        }
    }
}

/// Returns true for the prefix of an instruction over 64 bits with one register.
fn is_wide(prefix: u8) -> bool {
    matches!(prefix, 0x48 | 0x49)
}

/// Returns the number in the last `mov qword [register], number` that can be a table's size.
fn last_size(code: &[u8]) -> Option<usize> {
    (0..code.len()).rev().find_map(|at| {
        let operand = match code.get(at..)? {
            // An address in the base pointer is always encoded with a displacement.
            [prefix, STORE_CONSTANT, 0x45, 0, operand @ ..] if is_wide(*prefix) => operand,
            [prefix, STORE_CONSTANT, 0..=3 | 6 | 7, operand @ ..] if is_wide(*prefix) => operand,
            _ => return None,
        };
        table_size(u32::from_le_bytes(*operand.first_chunk()?).into())
    })
}

/// Returns the version of the first `mov register, major | minor << 32`.
fn first_version(code: &[u8]) -> Option<serdes_abi::pjrt::Minor> {
    (0..code.len()).find_map(|at| {
        let [prefix, 0xb8..=0xbf, operand @ ..] = code.get(at..)? else { return None };
        let version = minor(u64::from_le_bytes(*operand.first_chunk()?))?;
        is_wide(*prefix).then_some(version)
    })
}

/// Returns the address of the eight bytes that are loaded and stored at byte 32 of `base`:
/// `mov other, [rip + distance]`, then `mov [base + 32], other`.
fn loaded_version(address: u64, code: &[u8], base: u8) -> Option<u64> {
    (0..code.len()).find_map(|at| {
        // Bits 3 to 5 hold the register that is loaded.
        let [0x48, 0x8b, operand, rest @ ..] = code.get(at..)? else { return None };
        let distance = i32::from_le_bytes(*rest.first_chunk()?);
        let register = operand & 0x38;
        let is_relative = operand & 0xc7 == 0x05;
        let store = [0x48, 0x89, 0x40 | register | base, 32];
        let is_stored = code.get(at + 7..)?.windows(store.len()).any(|bytes| bytes == store);
        let next = address.wrapping_add(at as u64 + 7);
        (is_relative && is_stored).then(|| next.wrapping_add_signed(distance.into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the stores as a compiler writes them, with other instructions between them.
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

    fn places(code: &[u8]) -> Vec<Recognised> {
        let mut found = std::collections::BTreeSet::new();
        scan(0x1000, code, &mut |place| _ = found.insert(place));
        found.into_iter().collect()
    }

    fn found(code: &[u8]) -> Vec<(u32, usize)> {
        let version = |place| match place {
            Recognised::Version(version) => (version.minor.number(), version.struct_size),
            Recognised::Loaded { .. } => panic!("it is in the code"),
        };
        places(code).into_iter().map(version).collect()
    }

    #[test]
    fn three_stores_of_constants_say_the_version() {
        assert_eq!(found(&stores(984, 81)), [(81, 984)]);
        assert_eq!(found(&[stores(808, 54), stores(808, 54)].concat()), [(54, 808)]);
        assert_eq!(found(&[stores(808, 54), vec![0; 200], stores(984, 80)].concat()).len(), 2);
        // The base pointer holds the table's address.
        let mut code = vec![0x49, 0xc7, 0x45, 0x00];
        code.extend(1144_u32.to_le_bytes());
        code.extend([0x49, 0xc7, 0x45, 0x10, 24, 0, 0, 0, 0x48, 0xb8, 0, 0, 0, 0, 117, 0, 0, 0]);
        assert_eq!(found(&code), [(117, 1144)]);
    }

    #[test]
    fn invalid_table_is_passed_over() {
        // Not a table's size, no version, too far away, truncated at every byte.
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
    }

    #[test]
    fn a_version_that_is_taken_from_the_data_is_looked_up_there() {
        // lea rax, …; mov [rdi + 8], rax; mov rax, [rip + 0x100]; mov qword [rdi], 1144;
        // mov [rdi + 32], rax.
        let load = [0x48, 0x8b, 0x05, 0x00, 0x01, 0, 0];
        let size = [0x48, 0xc7, 0x07, 0x78, 0x04, 0, 0];
        let code =
            [&[0x48, 0x89, 0x47, 0x08], &load[..], &size, &[0x48, 0x89, 0x47, 0x20]].concat();
        let address = 0x1000 + 4 + 7 + 0x100;
        assert_eq!(places(&code), [Recognised::Loaded { struct_size: 1144, address }]);
        // Another register, another offset, nothing stored.
        for end in [&[0x48, 0x89, 0x4f, 0x20][..], &[0x48, 0x89, 0x47, 0x28], &[]] {
            let code = [&load[..], &size, end].concat();
            assert_eq!(places(&code), []);
        }
        for end in 0..code.len() {
            assert_eq!(places(&code[..end]), [], "{end}");
        }
    }
}
