//! Whose an object is: a client's, or the plug-in's alone.

use std::sync::Arc;

use super::{border::Table, client::ClientHandle, plugin::PjrtPlugin};

/// Whose an object is; held, so that what it needs is there as long as it is.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// A client's.
    Client(Arc<ClientHandle>),
    /// The plug-in's: no client was needed to make it.
    Plugin(PjrtPlugin),
}

impl Origin {
    pub(super) fn table(&self) -> &Table {
        match self {
            Self::Client(client) => client.table(),
            Self::Plugin(plugin) => plugin.table(),
        }
    }
}
