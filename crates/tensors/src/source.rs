//! Files that tensors are read from.

use std::io::Read;

use super::{Error, Metadata, Refused, TensorInfo};

/// Description of a file's tensors, known before their bytes are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// The tensors, in the order in which the file holds their data.
    pub tensors: Vec<TensorInfo>,
    /// Tensors and values that are in the file and cannot be read from it.
    pub refused: Vec<Refused>,
    /// Names of those among them that are Python objects as a pickle, which their own reader loads
    /// only if it is told to run what is in it.
    pub pickled: Vec<String>,
    /// Properties of a tensor, a value or a name that are not kept with it: the attributes of a
    /// tensor, a key that is no text.
    pub left_out: Vec<Refused>,
    /// Bytes and entries of the file that its own reader takes no notice of, by the name of the
    /// tensor that they come with; without a name where nothing is lost with them.
    pub passed_over: Vec<Refused>,
    /// Words of the file about itself.
    pub metadata: Metadata,
}

impl Listing {
    /// Creates the description of a file with these tensors, all readable, and without metadata.
    #[must_use]
    pub fn new(tensors: Vec<TensorInfo>) -> Self {
        Self { tensors, ..Self::default() }
    }
}

/// A file that tensors are read from.
pub trait Source: Send {
    /// Returns the kind of the file, in the words of the command.
    fn kind(&self) -> &'static str;

    /// Returns the description of the file's tensors.
    fn listing(&self) -> &Listing;

    /// Returns true if the tensor at a position is bookkeeping of the file, so that a file of
    /// another kind that cannot hold it does without.
    fn is_bookkeeping(&self, _position: usize) -> bool {
        false
    }

    /// Returns the tensors of the [`listing`](Self::listing), in the order in which the file holds
    /// their data.
    fn tensors(&self) -> &[TensorInfo] {
        &self.listing().tensors
    }

    /// Tensors that are in the file and cannot be read from it.
    fn refused(&self) -> &[Refused] {
        &self.listing().refused
    }

    /// Properties of a tensor, a value or a name that are not kept with it.
    fn left_out(&self) -> &[Refused] {
        &self.listing().left_out
    }

    /// Bytes and entries of the file that its own reader takes no notice of.
    fn passed_over(&self) -> &[Refused] {
        &self.listing().passed_over
    }

    /// Words of the file about itself.
    fn metadata(&self) -> &Metadata {
        &self.listing().metadata
    }

    /// Returns the position of the tensor of which the one at a position is another name: the same
    /// bytes, type and shape. None, unless the kind of file tells that.
    fn alias_of(&self, _position: usize) -> Option<usize> {
        None
    }

    /// Returns the number of pieces that the tensor at a position is stored in. None, unless the
    /// kind of file has such.
    fn pieces(&self, _position: usize) -> Option<u64> {
        None
    }

    /// Announces that the tensors at these positions will be read, each once and in this order, so
    /// that a file that answers late is asked for several of them at a time. Takes the place of what
    /// was announced before; by default nothing is done with it.
    fn announce(&self, _positions: &[usize]) {}

    /// Returns the bytes of the tensor at a position in [`tensors`](Self::tensors), not for
    /// strings.
    ///
    /// # Errors
    /// If the file cannot be read. The reader answers errors of kind
    /// [`InvalidData`](std::io::ErrorKind::InvalidData) for damaged bytes.
    fn read(&self, position: usize) -> Result<Box<dyn Read + Send + '_>, Error>;

    /// Returns the elements of the string tensor at a position, in row-major order. Unless the kind
    /// of file says otherwise, it holds none.
    ///
    /// # Errors
    /// If the tensor does not hold strings, or cannot be read.
    fn strings(&self, position: usize) -> Result<Vec<Vec<u8>>, Error> {
        let name = self.tensors().get(position).map_or("", |info| &info.name);
        Err(Error::refused(name, format!("a file of the kind {} holds no strings", self.kind())))
    }

    /// Compares the length of the file with what tensors take that cannot be read from it, where
    /// the file tells that.
    ///
    /// # Errors
    /// If the file is shorter or longer.
    fn compare_size(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Reads whatever the file has checksums for, whether its elements can be moved or not, and
    /// answers what differs; `go_on` hears of bytes that were read, and may end the work. Nothing,
    /// unless the kind of file has checksums.
    fn compare_checksums(&self, _go_on: &mut dyn FnMut(u64) -> bool) -> Vec<Error> {
        Vec::new()
    }
}
