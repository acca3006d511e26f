//! Detection of MLIR bytecode, and of StableHLO portable artifacts among it.

use super::{super::Kind, file::File, names::of_judged};

/// The first bytes of MLIR bytecode.
pub(in super::super) const MAGIC: &[u8] = b"ML\xefR";

/// Detects MLIR bytecode: four bytes, its version, the name of its producer up to a NUL. Readers
/// ignore the producer, so bytecode of other producers has the kind that the file name implies.
pub(super) fn kind(file: &File<'_>) -> Option<Kind> {
    let rest = file.head.strip_prefix(MAGIC)?;
    // The version is a number of one to nine bytes.
    let is_stablehlo =
        (1..=9).any(|at| rest.get(at..).is_some_and(|name| name.starts_with(b"StableHLO_v")));
    let is_named = of_judged(file.name) == Some(Kind::StableHlo);
    // A file that ends within the name may be either.
    let may_go_on = |at| rest.get(at..).is_none_or(|name| b"StableHLO_v".starts_with(name));
    let is_cut = file.is_whole() && (1..=9).any(may_go_on);
    Some(if is_stablehlo || is_named || is_cut { Kind::StableHlo } else { Kind::Other })
}
