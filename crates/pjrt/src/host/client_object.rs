//! Objects that belong to their client: devices and memories.

use std::{fmt, ptr::NonNull, sync::Arc};

use super::client::{Client, ClientHandle};

/// An object that lives as long as its client: it is never destroyed separately, and is alive as
/// long as this handle holds the client.
pub(super) struct ClientObject<T> {
    client: Arc<ClientHandle>,
    raw: NonNull<T>,
}

// SAFETY: the object belongs to its client, which any thread may use; it is never destroyed, and
// the pointer is only passed to the plug-in.
unsafe impl<T> Send for ClientObject<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for ClientObject<T> {}

impl<T> ClientObject<T> {
    pub(super) fn new(client: &Arc<ClientHandle>, raw: NonNull<T>) -> Self {
        Self { client: Arc::clone(client), raw }
    }

    #[inline]
    pub(super) fn raw(&self) -> *mut T {
        self.raw.as_ptr()
    }

    pub(super) fn handle(&self) -> &Arc<ClientHandle> {
        &self.client
    }

    pub(super) fn client(&self) -> Client {
        Client::of(&self.client)
    }
}

impl<T> Clone for ClientObject<T> {
    fn clone(&self) -> Self {
        Self::new(&self.client, self.raw)
    }
}

impl<T> fmt::Debug for ClientObject<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} of {:?}", self.raw, self.client)
    }
}

/// Compares handles: two are equal if they refer to the same object of the same client.
impl<T> PartialEq for ClientObject<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.client, &other.client) && self.raw == other.raw
    }
}

impl<T> Eq for ClientObject<T> {}
