//! The alignment of a struct's members by a compiler that is not told to pack.

use std::collections::HashMap;

use super::layout::{Field, LayoutDocument, Structure};

/// The maximum depth of structs nested by value; deeper ones are ignored.
const DEEPEST: usize = 8;

/// Types of C that are longer than a register and aligned to 16 bytes on LP64.
const ALIGNED_TO_16: [&str; 7] = [
    "long double",
    "__int128",
    "unsigned __int128",
    "__int128_t",
    "__uint128_t",
    "_Float128",
    "max_align_t",
];

/// The alignments of a layout's structs, which fields may contain by value.
#[derive(Debug)]
pub(super) struct Alignments<'a> {
    /// By name, in bytes; 0 for a struct whose alignment is unknown.
    structs: HashMap<&'a str, u64>,
}

impl<'a> Alignments<'a> {
    pub(super) fn of(document: &'a LayoutDocument) -> Self {
        let is_struct = |found: &&Structure| !found.fields.is_empty();
        let declared = document.structs.iter().filter(is_struct);
        let declared =
            declared.map(|found| (found.name.as_str(), found.alignment.unwrap_or_default()));
        let mut alignments = Self { structs: declared.collect() };
        // Each pass resolves one more level of nested structs.
        for _ in 0..DEEPEST {
            for structure in document.structs.iter().filter(is_struct) {
                if alignments.structs.get(structure.name.as_str()) == Some(&0) {
                    let fields = structure.fields.iter();
                    let widest = fields.filter_map(|field| alignments.of_field(field)).max();
                    alignments.structs.insert(&structure.name, widest.unwrap_or_default());
                }
            }
        }
        alignments
    }

    /// Returns the alignment of a field by its type, in bytes; `None` if the type does not
    /// determine it.
    pub(super) fn of_field(&self, field: &Field) -> Option<u64> {
        // An array is aligned like one of its elements.
        let (kind, size) = match field.kind.split_once('[') {
            Some((element, counts)) => (element.trim_end(), field.size / elements(counts)?),
            None => (field.kind.as_str(), field.size),
        };
        let kind = kind.strip_prefix("const ").unwrap_or(kind);
        if ALIGNED_TO_16.contains(&kind) {
            return Some(16);
        }
        if let Some(&alignment) = self.structs.get(kind.strip_prefix("struct ").unwrap_or(kind)) {
            return (alignment > 0).then_some(alignment);
        }
        // Every other type of a register's size is aligned to its size: numbers, pointers,
        // functions, enumerations.
        matches!(size, 1 | 2 | 4 | 8).then_some(size)
    }
}

/// Returns the number of elements given by the rest of an array's type, `2][3]`; `None` if it is
/// not numeric or is 0.
fn elements(counts: &str) -> Option<u64> {
    let counts = counts.strip_suffix(']')?.split("][");
    let product = counts.map(|count| count.trim().parse::<u64>().ok());
    product
        .into_iter()
        .try_fold(1u64, |product, count| product.checked_mul(count?))
        .filter(|&n| n > 0)
}
