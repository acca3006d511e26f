//! The positions of declarations in the file.

/// The byte offsets of declarations, in the same order.
#[derive(Default)]
pub(super) struct Positions {
    /// Each line, with each of its entries.
    pub(super) lines: Vec<(usize, Vec<usize>)>,
    /// Each product, with each of its releases.
    pub(super) products: Vec<(usize, Vec<usize>)>,
    /// Each family of layouts, with each of its layouts.
    pub(super) layouts: Vec<(usize, Vec<usize>)>,
}
