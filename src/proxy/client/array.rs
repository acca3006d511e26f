use std::{fmt, sync::Arc};

use super::connection::Connection;
use crate::ifrt::{ArraySpec, DType, Shape, Sharding};

/// An array on a server. The server frees it when this is dropped.
pub struct RemoteArray {
    connection: Arc<Connection>,
    handle: u64,
    spec: ArraySpec,
}

impl RemoteArray {
    pub(super) fn new(connection: &Arc<Connection>, handle: u64, spec: ArraySpec) -> Self {
        Self { connection: Arc::clone(connection), handle, spec }
    }

    /// Its handle in the session.
    #[must_use]
    pub const fn handle(&self) -> u64 {
        self.handle
    }

    /// What it is.
    #[must_use]
    pub const fn spec(&self) -> &ArraySpec {
        &self.spec
    }

    /// The element type.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.spec.dtype()
    }

    /// The shape of the whole array.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        self.spec.shape()
    }

    /// How it is spread over devices.
    #[must_use]
    pub const fn sharding(&self) -> &Sharding {
        self.spec.sharding()
    }
}

impl Drop for RemoteArray {
    fn drop(&mut self) {
        self.connection.destruct(self.handle);
    }
}

impl fmt::Debug for RemoteArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteArray({}, {})", self.handle, self.spec)
    }
}
