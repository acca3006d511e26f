//! Arrays on a server, and their sizes.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use serdes::ifrt::{ArraySpec, DType, Shape, Sharding};

use super::connection::Connection;
use crate::ProxyError;

/// An array on a server, which frees it when this value is dropped.
pub struct RemoteArray {
    connection: Arc<Connection>,
    handle: u64,
    spec: ArraySpec,
    /// True if dropping this value does not free the array.
    is_left: bool,
}

impl RemoteArray {
    pub(super) fn new(connection: &Arc<Connection>, handle: u64, spec: ArraySpec) -> Self {
        Self { connection: Arc::clone(connection), handle, spec, is_left: false }
    }

    /// Drops this value without freeing the array: it stays for its session, or in the server's
    /// state if it has a name there.
    pub fn leave(mut self) {
        self.is_left = true;
    }

    /// Returns the handle of the array in its session.
    #[must_use]
    pub const fn handle(&self) -> u64 {
        self.handle
    }

    /// Returns the element type, shape and sharding.
    #[must_use]
    pub const fn spec(&self) -> &ArraySpec {
        &self.spec
    }

    /// Returns the element type.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.spec.dtype()
    }

    /// Returns the shape of the whole array.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        self.spec.shape()
    }

    /// Returns the sharding over devices.
    #[must_use]
    pub const fn sharding(&self) -> &Sharding {
        self.spec.sharding()
    }
}

impl Drop for RemoteArray {
    fn drop(&mut self) {
        if !self.is_left {
            let bytes = byte_size(self.dtype(), self.shape());
            self.connection.destruct(self.handle, bytes);
        }
    }
}

impl fmt::Debug for RemoteArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteArray({}, {})", self.handle, self.spec)
    }
}

/// Returns the size of an array on the host in bytes; `None` if the type has no fixed size, or the
/// size exceeds 64 bits.
pub(super) fn byte_size(dtype: DType, shape: &Shape) -> Option<u64> {
    let item = u64::from(dtype.unpacked_byte_size()?);
    let elements = u64::try_from(shape.element_count().ok()?).ok()?;
    elements.checked_mul(item)
}

/// # Errors
/// [`ProxyError::Configuration`].
pub(super) fn check_size(dtype: DType, shape: &Shape, bytes: &Bytes) -> Result<(), ProxyError> {
    match byte_size(dtype, shape) {
        Some(expected) if expected != bytes.len() as u64 => Err(ProxyError::configuration(
            "the data",
            format!("{} bytes", bytes.len()),
            format!("{dtype}{shape} has {expected}"),
        )),
        _ => Ok(()),
    }
}
