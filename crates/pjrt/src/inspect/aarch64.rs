//! Patterns of the code that compilers for 64-bit Arm generate to fill a function table.
//!
//! A constant is loaded into a register before it is stored, and the version, two numbers in eight
//! bytes, is often read from the data. So the scan follows the instructions around a store of a
//! register and zero at byte 16 of a base (`stp x9, xzr, [x8, #16]`), and records the values that
//! are stored at bytes 0, 16 and 32 of this base.

use super::recognised::{Recognised, VersionInFile, minor, table_size};

/// The number of instructions that are followed before and after this store.
const NEAR: usize = 32;
/// The overlap of neighbouring windows of code, in bytes.
pub(super) const OVERLAP: usize = 2 * NEAR * 4;

/// The bits that all forms of `stp x?, xzr, [x?, #16]` have in common.
const ANCHOR: u32 = 0xa901_7c00;
const ANCHOR_MASK: u32 = 0xffff_fc00;

/// Reports every version that the code at `address` writes.
pub(super) fn scan(address: u64, code: &[u8], found: &mut impl FnMut(Recognised)) {
    let (words, _) = code.as_chunks::<4>();
    for (at, word) in words.iter().enumerate() {
        let anchor = u32::from_le_bytes(*word);
        if anchor & ANCHOR_MASK != ANCHOR {
            continue;
        }
        let start = at.saturating_sub(NEAR);
        let near = words.get(start..words.len().min(at + NEAR)).unwrap_or_default();
        let mut steps = Steps::new(base(anchor));
        for (step, word) in near.iter().enumerate() {
            let address = address.wrapping_add(4 * (start + step) as u64);
            steps.take(u32::from_le_bytes(*word), address);
        }
        if let Some(place) = steps.version() {
            found(place);
        }
    }
}

/// The known content of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Number(u64),
    /// The eight bytes at this address.
    At(u64),
}

/// The state after the instructions so far: the content of registers and of the table.
struct Steps {
    table: usize,
    general: [Option<Content>; 32],
    floating: [Option<Content>; 32],
    size: Option<Content>,
    version_size: Option<Content>,
    version: Option<Content>,
}

/// Returns the register that is written or stored.
const fn first(word: u32) -> usize {
    (word & 31) as usize
}

/// Returns the register with an address.
const fn base(word: u32) -> usize {
    (word >> 5 & 31) as usize
}

/// Returns the second register of a pair.
const fn second(word: u32) -> usize {
    (word >> 10 & 31) as usize
}

/// Returns the offset of a load or store of eight bytes.
const fn offset(word: u32) -> u64 {
    ((word >> 10 & 0xfff) * 8) as u64
}

/// Returns a signed distance, of 19 bits starting at bit 5.
const fn distance(word: u32) -> i64 {
    ((word << 8).cast_signed() >> 13) as i64
}

impl Steps {
    fn new(table: usize) -> Self {
        let unknown = [None; 32];
        Self {
            table,
            general: unknown,
            floating: unknown,
            size: None,
            version_size: None,
            version: None,
        }
    }

    /// Processes one instruction.
    fn take(&mut self, word: u32, address: u64) {
        match word {
            // movz: a constant of 16 bits, shifted left.
            _ if word & 0x7f80_0000 == 0x5280_0000 => {
                self.set(word, Some(Content::Number(Self::part(word))));
            }
            // movk: replaces 16 bits of the present constant.
            _ if word & 0x7f80_0000 == 0x7280_0000 => {
                let shift = 16 * (word >> 21 & 3);
                let kept = self.number(first(word)).map(|number| number & !(0xffff << shift));
                self.set(word, kept.map(|kept| Content::Number(kept | Self::part(word))));
            }
            // adrp, adr: an address relative to the instruction, in pages or bytes.
            _ if word & 0x1f00_0000 == 0x1000_0000 => {
                let distance = distance(word) << 2 | i64::from(word >> 29 & 3);
                let (start, distance) = match word >> 31 {
                    0 => (address, distance),
                    _ => (address & !0xfff, distance << 12),
                };
                self.set(word, Some(Content::Number(start.wrapping_add_signed(distance))));
            }
            // add: a constant of 12 bits.
            _ if word & 0xff80_0000 == 0x9100_0000 => {
                let added = u64::from(word >> 10 & 0xfff) << (12 * (word >> 22 & 1));
                let sum = self.number(base(word)).map(|number| number.wrapping_add(added));
                self.set(word, sum.map(Content::Number));
            }
            // ldr of eight bytes, by register and offset or by distance; bit 26 is set for
            // floating-point registers.
            _ if word & 0xfbc0_0000 == 0xf940_0000 => {
                let start = self.number(base(word));
                let content = start.map(|start| Content::At(start.wrapping_add(offset(word))));
                self.loaded(word, content);
            }
            _ if word & 0xfb00_0000 == 0x5800_0000 => {
                let distance = distance(word) << 2;
                self.loaded(word, Some(Content::At(address.wrapping_add_signed(distance))));
            }
            _ if word & 0xfbc0_0000 == 0xf900_0000 => self.stored(word),
            _ if word & 0xffc0_0000 == 0xa900_0000 => self.stored_pair(word),
            // Any other instruction most often writes the register in these bits.
            _ => self.set(word, None),
        }
    }

    /// Returns the shifted constant of `movz` and `movk`.
    fn part(word: u32) -> u64 {
        u64::from(word >> 5 & 0xffff) << (16 * (word >> 21 & 3))
    }

    fn number(&self, register: usize) -> Option<u64> {
        match self.general.get(register) {
            Some(Some(Content::Number(number))) => Some(*number),
            _ => None,
        }
    }

    fn set(&mut self, word: u32, content: Option<Content>) {
        if let Some(register) = self.general.get_mut(first(word)) {
            *register = content;
        }
    }

    fn loaded(&mut self, word: u32, content: Option<Content>) {
        let registers = if word & 1 << 26 == 0 { &mut self.general } else { &mut self.floating };
        if let Some(register) = registers.get_mut(first(word)) {
            *register = content;
        }
    }

    /// Returns the content of a register as a store writes it; register 31 means zero.
    fn content(&self, register: usize) -> Option<Content> {
        if register == 31 { Some(Content::Number(0)) } else { *self.general.get(register)? }
    }

    fn stored(&mut self, word: u32) {
        let is_floating = word & 1 << 26 != 0;
        let floating = || self.floating.get(first(word)).copied().flatten();
        let content = if is_floating { floating() } else { self.content(first(word)) };
        if base(word) == self.table {
            self.note(offset(word), content);
        }
    }

    fn stored_pair(&mut self, word: u32) {
        // A signed offset of seven bits; negative ones are before the table, and are ignored.
        let Ok(offset) = u64::try_from(((word << 10).cast_signed() >> 25) * 8) else { return };
        if base(word) == self.table {
            self.note(offset, self.content(first(word)));
            self.note(offset + 8, self.content(second(word)));
        }
    }

    fn note(&mut self, offset: u64, content: Option<Content>) {
        match offset {
            0 => self.size = content,
            16 => self.version_size = content,
            32 => self.version = content,
            _ => {}
        }
    }

    /// Returns the version in the processed stores, if they fill a function table.
    fn version(&self) -> Option<Recognised> {
        let Some(Content::Number(size)) = self.size else { return None };
        let struct_size = table_size(size)?;
        match (self.version_size?, self.version?) {
            (Content::Number(24), Content::Number(number)) => {
                Some(Recognised::Version(VersionInFile { minor: minor(number)?, struct_size }))
            }
            (Content::Number(24), Content::At(address)) => {
                Some(Recognised::Loaded { struct_size, address })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(words: &[u32]) -> Vec<Recognised> {
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut found = Vec::new();
        scan(0x4b0_cb64, &code, &mut |place| found.push(place));
        found
    }

    /// The instructions of a plug-in of 2025-10, from the one that loads the size.
    const BUILT: [u32; 12] = [
        0x5280_7b09, // mov w9, #984
        0xb0fe_288a, // adrp x10, 0x101d000
        0xf901_5d02, // str x2, [x8, #696]
        0xa900_1109, // stp x9, x4, [x8]
        0x5280_0309, // mov w9, #24
        0xfd43_8140, // ldr d0, [x10, #1792]
        0xa901_7d09, // stp x9, xzr, [x8, #16]
        0xd503_201f, // nop
        0x10f7_5b29, // adr x9, …
        0xfd00_1100, // str d0, [x8, #32]
        0xa902_a909, // stp x9, x10, [x8, #40]
        0xd65f_03c0, // ret
    ];

    #[test]
    fn a_version_that_is_taken_from_the_data_is_looked_up_there() {
        let address = 0x101_d000 + 1792;
        assert_eq!(places(&BUILT), [Recognised::Loaded { struct_size: 984, address }]);
        // One page earlier.
        let mut back = BUILT;
        back[1] = 0xf0ff_ffea;
        let address = 0x4b0_c000 - 0x1000 + 1792;
        assert_eq!(places(&back), [Recognised::Loaded { struct_size: 984, address }]);
    }

    #[test]
    fn a_version_that_is_a_constant_is_taken_as_it_is() {
        let mut code = BUILT;
        code[9] = 0xd2c0_0a2b; // mov x11, #81 << 32
        code[10] = 0xf900_110b; // str x11, [x8, #32]
        let version = VersionInFile { minor: serdes_abi::pjrt::Minor::new(81), struct_size: 984 };
        assert_eq!(places(&code), [Recognised::Version(version)]);
        // In two parts: 0x10051 << 32 is not a minor.
        code[10] = 0xf2e0_002b; // movk x11, #1 << 48
        code[11] = 0xf900_110b;
        assert_eq!(places(&code), []);
    }

    #[test]
    fn invalid_table_is_passed_over() {
        for (at, other) in [
            (0, 0x5280_0309), // no size of a table
            (4, 0x5280_0409), // not 24
            (5, 0x1e60_4020), // a register that is not known
            (9, 0xfd00_1120), // something else's byte 32
            (6, 0xa901_7d29), // something else's version
        ] {
            let mut code = BUILT;
            code[at] = other;
            assert_eq!(places(&code), [], "{at}");
        }
        for end in 0..10 {
            assert_eq!(places(&BUILT[..end]), [], "{end}");
        }
    }
}
