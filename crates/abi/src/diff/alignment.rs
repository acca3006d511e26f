//! The alignment of a struct's members, as compilers do it that are not told to pack.

use std::collections::HashMap;

use super::layout::{Field, LayoutDocument, Structure};

/// The greatest depth of structs by value in each other; deeper ones are not looked at.
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

/// The alignments of a layout's structs, which its fields may hold by value.
#[derive(Debug)]
pub(super) struct Alignments<'a> {
    /// By name, in bytes; 0 for a struct of which it cannot be told.
    structs: HashMap<&'a str, u64>,
}

impl<'a> Alignments<'a> {
    pub(super) fn of(document: &'a LayoutDocument) -> Self {
        let is_struct = |found: &&Structure| !found.fields.is_empty();
        let declared = document.structs.iter().filter(is_struct);
        let declared =
            declared.map(|found| (found.name.as_str(), found.alignment.unwrap_or_default()));
        let mut alignments = Self { structs: declared.collect() };
        // Each pass reaches one struct deeper into structs that hold structs.
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

    /// Returns the alignment of a field by its type, in bytes; `None` where the type does not say
    /// it.
    pub(super) fn of_field(&self, field: &Field) -> Option<u64> {
        // An array is aligned as one element of it.
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
        // Whatever else is as long as a register is aligned to its length: numbers, pointers,
        // functions, enumerations.
        matches!(size, 1 | 2 | 4 | 8).then_some(size)
    }
}

/// Returns the number of elements that the rest of an array's type, `2][3]`, stands for; `None` if
/// it is not written in numbers or is 0.
fn elements(counts: &str) -> Option<u64> {
    let counts = counts.strip_suffix(']')?.split("][");
    let product = counts.map(|count| count.trim().parse::<u64>().ok());
    product
        .into_iter()
        .try_fold(1u64, |product, count| product.checked_mul(count?))
        .filter(|&n| n > 0)
}
