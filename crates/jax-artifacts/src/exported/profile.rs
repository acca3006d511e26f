//! Options of reading a file as a release does.

use std::collections::BTreeSet;

use crate::release::Deserializer;

/// Options of reading a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReaderProfile<'h> {
    pub(crate) deserializer: Deserializer,
    pub(crate) last_dtype: i8,
    /// Names of pytree node types that the program has registered.
    pub(crate) custom_nodes: &'h BTreeSet<String>,
    /// Accepts forms that a release no longer accepts but whose fields are known, for inspecting a
    /// file.
    pub(crate) is_lenient: bool,
    /// True if the setting that accepts expired files is on.
    pub(crate) takes_expired: bool,
}

impl ReaderProfile<'_> {
    pub(super) fn at_least(&self, deserializer: Deserializer) -> bool {
        self.deserializer >= deserializer
    }
}
