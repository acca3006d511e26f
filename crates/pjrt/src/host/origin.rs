//! The owner of an object: a client, or only the plug-in.

use std::sync::Arc;

use super::{border::Table, client::ClientHandle, plugin::PjrtPlugin};

/// The owner of an object. The object holds it, so that the owner lives as long.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// A client owns the object.
    Client(Arc<ClientHandle>),
    /// Only the plug-in owns the object, which was created without a client.
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
