//! What a file of PyTorch's says, whichever way it is packed.

use std::collections::HashMap;

use super::{
    super::archive::Content,
    value::{ValueId, Values},
};

/// What a file describes, and where its storages lie.
pub(super) struct Parsed {
    pub(super) values: Values,
    pub(super) root: ValueId,
    pub(super) pickle_bytes: u64,
    pub(super) storages: HashMap<String, Stored>,
}

/// Where a storage lies in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    pub(super) begin: u64,
    pub(super) bytes: u64,
    /// The entry of the archive, where it has a checksum.
    pub(super) checked: Option<Content>,
}
