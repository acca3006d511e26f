//! The compact form of a history of operations: one block of bytes, read in place.
//!
//! ```text
//! "OPS1"  releases:u32  strings:u32  operations:u32  text:u32 (bytes)
//! releases   (name:u32 string, measured:u32 string, graph_def_version:i32, types:u64) each; types: a bit a type number
//! strings    (end:u32 in the text) each
//! operations (name:u32 string, at:u32 in the data) each, by name
//! text       UTF-8
//! data       operations and values
//! ```
//!
//! Numbers in the head are little-endian; numbers in the data are varints, signed ones zigzag. An
//! operation is three masks of releases (without a shape function, without a kernel for the CPU,
//! only where Python registers it), the number of its definitions, and for each definition the mask
//! of the releases that have it and its offset. A definition is flags, the deprecation's version
//! where a flag says so, then inputs, outputs and attributes, each list after its length in bytes.
//! Defaults and allowed values are stored separately, so that attributes can be skipped without
//! being decoded; equal ones are stored once.
//!
//! Only [`encode`](super::encode) writes such bytes, so a value that does not fit is read as zero
//! here: a test reads all of the built-in table.

use std::{borrow::Cow, ops::Range, sync::LazyLock};

use serdes_wire::varint;

pub(crate) const MAGIC: [u8; 4] = *b"OPS1";
pub(crate) const HEAD: usize = 20;
pub(crate) const RELEASE: usize = 20;
/// Flags of a definition.
pub(crate) const STATEFUL: u64 = 1;
pub(crate) const COMMUTATIVE: u64 = 2;
pub(crate) const AGGREGATE: u64 = 4;
pub(crate) const UNINITIALIZED: u64 = 8;
pub(crate) const DEPRECATED: u64 = 16;
pub(crate) const NAME_ALONE: u64 = 32;

/// The registries of TensorFlow 2.12 to 2.21.
pub(crate) static TENSORFLOW: LazyLock<Table> =
    LazyLock::new(|| Table::new(Cow::Borrowed(include_bytes!("tensorflow.ops"))));

/// A history of operations in its compact form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Table {
    bytes: Cow<'static, [u8]>,
    /// The section of strings, checked once to be UTF-8.
    text: Cow<'static, str>,
    releases: usize,
    operations: usize,
    /// The offset of each section.
    strings_at: usize,
    operations_at: usize,
    data_at: usize,
}

impl Table {
    pub(crate) fn new(bytes: Cow<'static, [u8]>) -> Self {
        let count = |at| number_at(&bytes, at) as usize;
        let (releases, strings, operations, text) = (count(4), count(8), count(12), count(16));
        let strings_at = HEAD + releases * RELEASE;
        let operations_at = strings_at + strings * 4;
        let text_at = operations_at + operations * 8;
        let data_at = text_at + text;
        let text = match &bytes {
            Cow::Borrowed(bytes) => text_of(bytes, text_at..data_at),
            Cow::Owned(bytes) => text_of(bytes, text_at..data_at).into_owned().into(),
        };
        Self { bytes, text, releases, operations, strings_at, operations_at, data_at }
    }

    pub(crate) const fn releases(&self) -> usize {
        self.releases
    }

    pub(crate) const fn operations(&self) -> usize {
        self.operations
    }

    /// Returns a number of a release; the methods below name the places.
    fn of_release(&self, release: usize, place: usize) -> u32 {
        number_at(&self.bytes, HEAD + release * RELEASE + place * 4)
    }

    /// Returns the name of a release.
    pub(crate) fn release(&self, release: usize) -> &str {
        self.string(self.of_release(release, 0))
    }

    /// Returns the exact release whose operations were read.
    pub(crate) fn measured_release(&self, release: usize) -> &str {
        self.string(self.of_release(release, 1))
    }

    /// Returns the GraphDef version of a release.
    pub(crate) fn graph_def_version(&self, release: usize) -> i32 {
        self.of_release(release, 2) as i32
    }

    /// Returns the types that a release knows, as bits.
    pub(crate) fn types(&self, release: usize) -> u64 {
        let (low, high) = (self.of_release(release, 3), self.of_release(release, 4));
        u64::from(low) | u64::from(high) << 32
    }

    #[inline]
    pub(crate) fn string(&self, index: u32) -> &str {
        let at = self.strings_at + index as usize * 4;
        let start = if index == 0 { 0 } else { number_at(&self.bytes, at - 4) as usize };
        let end = number_at(&self.bytes, at) as usize;
        self.text.get(start..end).unwrap_or_default()
    }

    /// Returns the name of an operation and its offset in the data.
    pub(crate) fn operation(&self, index: usize) -> (&str, u32) {
        let at = self.operations_at + index * 8;
        (self.string(number_at(&self.bytes, at)), number_at(&self.bytes, at + 4))
    }

    /// Returns the offset of the operation of this name in the data.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        let (mut low, mut high) = (0, self.operations);
        while low < high {
            let middle = low.midpoint(high);
            let found = number_at(&self.bytes, self.operations_at + middle * 8);
            match self.string(found).cmp(name) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Returns a cursor over the data from offset `at`.
    pub(crate) fn data(&self, at: u64) -> Cursor<'_> {
        let start = self.data_at.saturating_add(usize::try_from(at).unwrap_or(usize::MAX));
        Cursor(self.bytes.get(start..).unwrap_or_default())
    }
}

fn text_of(bytes: &[u8], section: Range<usize>) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes.get(section).unwrap_or_default())
}

fn number_at(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..).and_then(<[u8]>::first_chunk);
    four.map_or(0, |four| u32::from_le_bytes(*four))
}

/// Reads the data from the front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'t>(&'t [u8]);

impl<'t> Cursor<'t> {
    pub(crate) const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub(crate) fn number(&mut self) -> u64 {
        // Data that ends inside a number ends before it.
        varint::wrapping(&mut self.0, varint::LONGEST).unwrap_or_else(|| {
            self.0 = &[];
            0
        })
    }

    pub(crate) fn signed(&mut self) -> i64 {
        let number = self.number();
        (number >> 1) as i64 ^ -((number & 1) as i64)
    }

    #[inline]
    pub(crate) fn string_index(&mut self) -> u32 {
        self.number() as u32
    }

    /// Returns the next `length` bytes.
    pub(crate) fn bytes(&mut self, length: u64) -> &'t [u8] {
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(self.0.len());
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    /// Returns a list, which follows its length in bytes.
    pub(crate) fn list(&mut self) -> Self {
        let length = self.number();
        Self(self.bytes(length))
    }
}
