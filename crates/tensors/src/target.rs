//! Files to which tensors are written.

use std::{io::Read, time::Duration};

use super::{Error, Metadata, TensorInfo};

/// A target for a file of tensors that has not been created yet.
pub trait Target: Send {
    /// Returns true if the metadata can hold aliases of tensors, so that a tensor with several
    /// names is written once. `false` by default.
    fn keeps_aliases(&self) -> bool {
        false
    }

    /// Returns true if the format has metadata, the default.
    fn keeps_metadata(&self) -> bool {
        true
    }

    /// Checks that the format can hold a tensor. The default accepts all.
    ///
    /// # Errors
    /// [`Error::Refused`], with the reason.
    fn check(&self, _info: &TensorInfo) -> Result<(), Error> {
        Ok(())
    }

    /// Creates the file for these tensors. It appears when it is [finished](TensorSink::finish), or
    /// not at all.
    ///
    /// # Errors
    /// [`Error::Refused`] if the format cannot hold one of them; the system's error.
    fn begin(
        self: Box<Self>,
        tensors: Vec<TensorInfo>,
        metadata: &Metadata,
    ) -> Result<Box<dyn TensorSink>, Error>;
}

/// A file of tensors that is being written.
///
/// Call [`write`](Self::write) or [`write_strings`](Self::write_strings) for each tensor, in this
/// [order](Self::order), then [`finish`](Self::finish); dropping it before leaves no file. The
/// types ensure that it is begun exactly once:
///
/// ```compile_fail
/// # use serdes_device_state::{Versions, WriteOptions};
/// # use serdes_tensors as tensor_io;
/// let options = WriteOptions::new(Versions::current());
/// let mut target = tensor_io::create("a.npz", &options)?;
/// target.write(0, &mut &b"too early"[..])?;
/// # Ok::<(), tensor_io::Error>(())
/// ```
/// ```compile_fail,E0382
/// # use serdes_device_state::{Versions, WriteOptions};
/// # use serdes_tensors as tensor_io;
/// let options = WriteOptions::new(Versions::current());
/// let target = tensor_io::create("a.npz", &options)?;
/// let first = target.begin(Vec::new(), &None)?;
/// let second = target.begin(Vec::new(), &None)?;
/// # Ok::<(), tensor_io::Error>(())
/// ```
pub trait TensorSink: Send {
    /// Returns the order in which the tensors must be written: positions in the list passed to
    /// `begin`.
    fn order(&self) -> &[usize];

    /// Writes the tensor at a position in that list; reads as many bytes of `data` as it has.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no tensor at `position`; if `data` fails or ends early, or
    /// the file cannot be written.
    fn write(&mut self, position: usize, data: &mut dyn Read) -> Result<(), Error>;

    /// Writes the string tensor at `position`: all its elements, in row-major order.
    ///
    /// # Errors
    /// If the file cannot hold strings or cannot be written.
    fn write_strings(&mut self, position: usize, strings: &[Vec<u8>]) -> Result<(), Error>;

    /// Commits the file; returns how long syncing and renaming took.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn finish(self: Box<Self>) -> Result<Duration, Error>;
}

/// The announced tensors of a sink, and the order of their data.
pub(super) struct Announced {
    tensors: Vec<TensorInfo>,
    order: Vec<usize>,
}

impl Announced {
    /// Creates the list; the data have the same order.
    pub(super) fn in_order(tensors: Vec<TensorInfo>) -> Self {
        let order = (0..tensors.len()).collect();
        Self { tensors, order }
    }

    /// Creates the list with another order of the data.
    pub(super) const fn ordered(tensors: Vec<TensorInfo>, order: Vec<usize>) -> Self {
        Self { tensors, order }
    }

    /// Returns the order.
    pub(super) fn order(&self) -> &[usize] {
        &self.order
    }

    /// Returns the tensor at a position.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no tensor at the position.
    pub(super) fn get(&self, position: usize) -> Result<&TensorInfo, Error> {
        self.tensors.get(position).ok_or_else(|| {
            let reason = format!(
                "found the position {position} of a tensor, expected one below {}, as many as the file was begun with",
                self.tensors.len()
            );
            Error::refused("", reason)
        })
    }

    /// Returns the error for strings in a format that cannot hold them.
    pub(super) fn refuse_strings(&self, position: usize, reason: String) -> Error {
        self.get(position).map_or_else(|error| error, |info| Error::refused(&info.name, reason))
    }
}

/// Bytes that are moved at a time.
const STEP_BYTES: u64 = 1 << 20;

/// Passes exactly `count` bytes of `data` to `put`, a step at a time.
pub(super) fn pass_on(
    name: &str,
    data: &mut dyn Read,
    mut count: u64,
    mut put: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut step = vec![0; count.min(STEP_BYTES) as usize];
    while count > 0 {
        step.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        let part = &mut step[..];
        data.read_exact(part).map_err(|source| Error::Data { name: name.to_owned(), source })?;
        put(part)?;
        count -= part.len() as u64;
    }
    Ok(())
}
