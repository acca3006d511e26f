//! Files from which tensors are read.

use std::io::Read;

use super::{Error, Metadata, Refused, TensorInfo};

/// Description of a file's tensors, available before their bytes are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// The tensors, in the order of their data in the file.
    pub tensors: Vec<TensorInfo>,
    /// Tensors and values of the file that cannot be read.
    pub refused: Vec<Refused>,
    /// Names of the refused ones that are pickled Python objects, which their own reader loads only
    /// if it is told to run their code.
    pub pickled: Vec<String>,
    /// Properties of a tensor, a value or a name that are lost: a tensor's attributes, a key that
    /// is not text.
    pub left_out: Vec<Refused>,
    /// Bytes and entries of the file that its own reader ignores, with the name of the associated
    /// tensor; without a name if nothing is lost with them.
    pub passed_over: Vec<Refused>,
    /// Key-value metadata of the file.
    pub metadata: Metadata,
}

impl Listing {
    /// Creates the description of a file with these readable tensors, and without metadata.
    #[must_use]
    pub fn new(tensors: Vec<TensorInfo>) -> Self {
        Self { tensors, ..Self::default() }
    }
}

/// A file from which tensors are read.
pub trait Source: Send {
    /// Returns the name of the file's format, as the command shows it.
    fn kind(&self) -> &'static str;

    /// Returns the description of the file's tensors.
    fn listing(&self) -> &Listing;

    /// Returns true if the tensor at a position is internal to the file format, so that a target
    /// that cannot hold it may omit it.
    fn is_bookkeeping(&self, _position: usize) -> bool {
        false
    }

    /// Returns the tensors of the [`listing`](Self::listing), in the order of their data in the
    /// file.
    fn tensors(&self) -> &[TensorInfo] {
        &self.listing().tensors
    }

    /// Returns tensors and values of the file that cannot be read.
    fn refused(&self) -> &[Refused] {
        &self.listing().refused
    }

    /// Returns properties of a tensor, a value or a name that are lost.
    fn left_out(&self) -> &[Refused] {
        &self.listing().left_out
    }

    /// Returns bytes and entries of the file that its own reader ignores.
    fn passed_over(&self) -> &[Refused] {
        &self.listing().passed_over
    }

    /// Returns the key-value metadata of the file.
    fn metadata(&self) -> &Metadata {
        &self.listing().metadata
    }

    /// Returns the position of the tensor of which the tensor at a position is an alias: the same
    /// bytes, type and shape. `None` by default, for formats without aliases.
    fn alias_of(&self, _position: usize) -> Option<usize> {
        None
    }

    /// Returns the number of pieces in which the tensor at a position is stored. `None` by default,
    /// for formats without pieces.
    fn pieces(&self, _position: usize) -> Option<u64> {
        None
    }

    /// Announces that the tensors at these positions will be read, each once and in this order, so
    /// that several can be requested at a time from a file with high latency. Replaces earlier
    /// announcements; ignored by default.
    fn announce(&self, _positions: &[usize]) {}

    /// Returns a reader of the tensor at a position in [`tensors`](Self::tensors), not for strings.
    ///
    /// # Errors
    /// If the file cannot be read. The reader returns errors of kind
    /// [`InvalidData`](std::io::ErrorKind::InvalidData) for damaged bytes.
    fn read(&self, position: usize) -> Result<Box<dyn Read + Send + '_>, Error>;

    /// Returns the elements of the string tensor at a position, in row-major order. The default is
    /// for formats without strings.
    ///
    /// # Errors
    /// If the tensor does not hold strings, or cannot be read.
    fn strings(&self, position: usize) -> Result<Vec<Vec<u8>>, Error> {
        let name = self.tensors().get(position).map_or("", |info| &info.name);
        Err(Error::refused(name, format!("a file of the kind {} holds no strings", self.kind())))
    }

    /// Compares the length of the file with the size of the tensors that cannot be read, if the
    /// format defines it.
    ///
    /// # Errors
    /// If the file is shorter or longer.
    fn compare_size(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Verifies all checksums of the file, including those of tensors that cannot be moved, and
    /// returns the mismatches; `go_on` is called with the number of bytes read, and may end the
    /// work. Returns nothing by default, for formats without checksums.
    fn compare_checksums(&self, _go_on: &mut dyn FnMut(u64) -> bool) -> Vec<Error> {
        Vec::new()
    }
}
