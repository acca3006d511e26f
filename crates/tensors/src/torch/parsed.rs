//! Contents of a PyTorch file, the same for all its packings.

use std::collections::HashMap;

use super::{
    super::archive::Content,
    value::{ValueId, Values},
};

/// Objects of a file, and the positions of its storages.
pub(super) struct Parsed {
    pub(super) values: Values,
    pub(super) root: ValueId,
    pub(super) pickle_bytes: u64,
    pub(super) storages: HashMap<String, Stored>,
}

/// Position of a storage in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    pub(super) begin: u64,
    pub(super) bytes: u64,
    /// The entry of the archive, if it has a checksum.
    pub(super) checked: Option<Content>,
}
