//! Results of the patterns: a version, or the address from which it is loaded, and the numbers that
//! are accepted as one.

use serdes_abi::pjrt::{self, Minor};

/// A version that was recognised in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionInFile {
    /// The minor number; the major one is 0.
    pub minor: Minor,
    /// The size that the plug-in declares for its table, in bytes.
    pub struct_size: usize,
}

impl VersionInFile {
    /// Returns true if the size is the one that plug-ins of this minor declare; for a minor newer
    /// than the known ones, if it is at least that of the newest.
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

/// A version that a pattern found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Recognised {
    /// A complete version.
    Version(VersionInFile),
    /// The size of a table, and the address from which its version is loaded.
    Loaded { struct_size: usize, address: u64 },
}

/// The sizes that a table can have, in bytes.
const TABLES: std::ops::RangeInclusive<u64> = 592..=16_384;
/// The highest minor that is accepted.
const HIGHEST_MINOR: u32 = 4095;
/// Returns a number as the size of a table, if it can be one.
pub(super) fn table_size(number: u64) -> Option<usize> {
    let size = usize::try_from(number).ok()?;
    (TABLES.contains(&number) && size.is_multiple_of(8)).then_some(size)
}

/// Returns the minor in the eight bytes of major and minor number, if the major is 0.
pub(super) fn minor(number: u64) -> Option<Minor> {
    let (major, minor) = (number as u32, (number >> 32) as u32);
    (major == 0 && (1..=HIGHEST_MINOR).contains(&minor)).then(|| Minor::new(minor))
}
