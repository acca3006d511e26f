//! Where in the file things are declared.

/// Byte offsets of what was declared, in the same order.
#[derive(Default)]
pub(super) struct Places {
    /// Of each line, and of each of its entries.
    pub(super) lines: Vec<(usize, Vec<usize>)>,
    /// Of each product, and of each of its releases.
    pub(super) products: Vec<(usize, Vec<usize>)>,
    /// Of each family of layouts, and of each of its layouts.
    pub(super) layouts: Vec<(usize, Vec<usize>)>,
}
