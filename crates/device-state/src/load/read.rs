//! Reads a tensor row by row, from all pieces in which it is stored.

use std::{
    io::{self, Read},
    path::Path,
    sync::Arc,
};

use serdes::ifrt::DType;

use super::{Tensor, assemble::Assembler, piece_reader::PieceReader};
use crate::{Error, format::u64_at};

impl Tensor {
    /// Returns a reader of the data, row-major; each chunk is compared with its checksum before it
    /// is returned. Errors for damaged bytes are of kind
    /// [`InvalidData`](io::ErrorKind::InvalidData).
    ///
    /// Shards are joined; memory then holds one chunk of each shard that a row crosses.
    ///
    /// # Errors
    /// If the file is the [part](crate::Part) of one process, and lacks shards.
    pub fn read(&self) -> Result<impl Read + Send + use<>, Error> {
        match self.pieces().next() {
            Some((_, piece)) if self.is_whole() => {
                Ok(TensorReader::Whole(PieceReader::new(Arc::clone(&self.state), piece, 1)))
            }
            _ => {
                self.check_complete()?;
                Ok(TensorReader::Shards(Box::new(Assembler::new(self)?)))
            }
        }
    }

    /// Returns the elements of a tensor of strings, in row-major order.
    ///
    /// # Errors
    /// If the tensor does not hold strings, or its bytes are damaged.
    pub fn strings(&self) -> Result<Vec<Vec<u8>>, Error> {
        self.check_strings()?;
        let path = &self.state.path;
        let mut data = Vec::new();
        self.read()?.read_to_end(&mut data).map_err(|error| self.read_error(path, error))?;
        self.strings_in(&data)
    }

    /// Returns an error unless the elements are strings.
    pub(super) fn check_strings(&self) -> Result<(), Error> {
        let dtype = self.spec().dtype();
        if dtype == DType::String {
            return Ok(());
        }
        let reason = format!("it holds {dtype}, not strings");
        Err(Error::Unsupported { name: self.name().to_owned(), reason })
    }

    /// Decodes the strings from all of the tensor's bytes.
    pub(super) fn strings_in(&self, data: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        let wrong = || {
            let found = format!("strings of {:?} that do not fit", self.name());
            Error::corrupt("data", found, "ascending ends inside the text".to_owned())
                .in_file(&self.state.path)
        };
        let count = self.spec().shape().element_count().ok();
        let count = count.and_then(|count| usize::try_from(count).ok());
        let table = count.and_then(|count| count.checked_mul(8)).ok_or_else(wrong)?;
        let (ends, text) = data.split_at_checked(table).ok_or_else(wrong)?;
        let mut strings = Vec::with_capacity(table / 8);
        let mut begin = 0;
        for end in ends.chunks_exact(8) {
            let end = u64_at(end, 0);
            let end = usize::try_from(end).map_err(|_| wrong())?;
            strings.push(text.get(begin..end).ok_or_else(wrong)?.to_vec());
            begin = end;
        }
        if begin == text.len() { Ok(strings) } else { Err(wrong()) }
    }

    /// Converts an error of [`read`](Self::read).
    pub(crate) fn read_error(&self, path: &Path, error: io::Error) -> Error {
        match error.downcast() {
            Ok(error) => error,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let place = format!("data of {:?}", self.name());
                let expected = "the bytes that were saved".to_owned();
                Error::corrupt(&place, error.to_string(), expected).in_file(path)
            }
            Err(error) => Error::io("read", path, error),
        }
    }
}

/// Reader of a tensor, row by row.
enum TensorReader {
    /// A tensor of one piece.
    Whole(PieceReader),
    /// A tensor of several shards, which are joined.
    Shards(Box<Assembler>),
}

impl Read for TensorReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Whole(piece) => piece.read(out),
            Self::Shards(assembler) => assembler.read(out),
        }
    }
}
