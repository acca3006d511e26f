//! Adds arrays of one piece: from device memory, from a reader, or of strings.

use std::io::{self, Read};

use serdes::ifrt::{ArraySpec, DType};

use super::{
    Writer,
    writer::{OpenArray, OpenPiece},
};
use crate::{Error, HostedMemory, WriteOptions, format::index::Placement, pump::Contents};

impl Writer {
    /// Adds a tensor in device memory: memory of a StreamExecutor plug-in, or an array of a PJRT
    /// client.
    ///
    /// The copies are complete when this returns; the bytes may still be in transfer to the file.
    ///
    /// # Errors
    /// If the name is in use, the spec cannot be written at the requested version, the memory has
    /// another length than the spec, the device holds another array, or the device or the file
    /// fails.
    pub fn add<M: HostedMemory>(
        &mut self,
        name: &str,
        spec: &ArraySpec,
        memory: &M,
    ) -> Result<(), Error> {
        let (_, piece) = self.put_whole(name, spec, memory)?;
        self.end_piece(piece)
    }

    /// Like [`add`](Self::add), for memory whose chunks had these checksums when it was filled.
    ///
    /// # Errors
    /// As [`add`](Self::add); [`Error::OtherBytes`] if the device returns other bytes.
    pub fn add_uploaded<M: HostedMemory>(
        &mut self,
        name: &str,
        spec: &ArraySpec,
        memory: &M,
        sums: &[u32],
    ) -> Result<(), Error> {
        let (array, piece) = self.put_whole(name, spec, memory)?;
        self.end_piece_of(&array, piece, sums)
    }

    /// Starts an array of one piece, with all of `memory`.
    fn put_whole<'a, M: HostedMemory>(
        &mut self,
        name: &'a str,
        spec: &ArraySpec,
        memory: &M,
    ) -> Result<(OpenArray<'a>, OpenPiece), Error> {
        check_size(name, spec, memory.bytes())?;
        check_contents(name, spec, spec.shape().dims().iter().copied(), memory)?;
        self.use_memory_of(memory);
        let array = self.begin_array(name, spec)?;
        let mut piece = self.begin_piece(&array, whole(spec), memory.bytes())?;
        self.put_memory(&array, &mut piece, memory)?;
        Ok((array, piece))
    }

    /// Adds a tensor in memory of this process.
    ///
    /// Large data are passed to the system in place: they are not copied, and the system has all of
    /// them when this returns.
    ///
    /// # Errors
    /// If the name is in use, the spec cannot be written at the requested version, the length does
    /// not match the spec, or the file cannot be written.
    pub fn add_bytes(&mut self, name: &str, spec: &ArraySpec, bytes: &[u8]) -> Result<(), Error> {
        let count = bytes.len() as u64;
        check_size(name, spec, count)?;
        let array = self.begin_array(name, spec)?;
        let mut piece = self.begin_piece(&array, whole(spec), count)?;
        self.put_bytes(&mut piece, bytes)?;
        self.end_piece(piece)
    }

    /// Adds a tensor of `bytes` bytes from a reader.
    ///
    /// # Errors
    /// As [`add_bytes`](Self::add_bytes); or if the reader fails or ends early.
    pub fn add_reader(
        &mut self,
        name: &str,
        spec: &ArraySpec,
        reader: &mut dyn Read,
        bytes: u64,
    ) -> Result<(), Error> {
        check_size(name, spec, bytes)?;
        let array = self.begin_array(name, spec)?;
        let mut piece = self.begin_piece(&array, whole(spec), bytes)?;
        self.put_reader(&mut piece, reader, bytes)?;
        self.end_piece(piece)
    }

    /// Adds a tensor of byte strings, in row-major order; the spec's type is
    /// [`DType::String`].
    ///
    /// # Errors
    /// As [`add_bytes`](Self::add_bytes).
    pub fn add_strings(
        &mut self,
        name: &str,
        spec: &ArraySpec,
        strings: &[impl AsRef<[u8]>],
    ) -> Result<(), Error> {
        let elements = spec.shape().element_count().ok().and_then(|count| count.try_into().ok());
        if spec.dtype() != DType::String || elements != Some(strings.len()) {
            return Err(Error::Unsupported {
                name: name.to_owned(),
                reason: format!(
                    "{} strings do not make {}{}",
                    strings.len(),
                    spec.dtype(),
                    spec.shape()
                ),
            });
        }
        // The end of each string in the text, followed by the text.
        let mut ends = Vec::with_capacity(8 * strings.len());
        let mut end = 0_u64;
        for string in strings {
            end += string.as_ref().len() as u64;
            ends.extend(end.to_le_bytes());
        }
        let array = self.begin_array(name, spec)?;
        let mut piece = self.begin_piece(&array, whole(spec), ends.len() as u64 + end)?;
        for bytes in std::iter::once(&ends[..]).chain(strings.iter().map(AsRef::as_ref)) {
            self.put_bytes(&mut piece, bytes)?;
        }
        self.end_piece(piece)
    }
}

impl WriteOptions {
    /// Returns the length in bytes of the state that [`stream`](Self::stream) would write for whole
    /// tensors with data of these lengths in bytes. A string takes 8 bytes more than its text.
    ///
    /// # Errors
    /// As [`Writer::add_bytes`], except that lengths are not compared with specs.
    pub fn length_of<'a>(
        mut self,
        tensors: impl IntoIterator<Item = (&'a str, &'a ArraySpec, u64)>,
    ) -> Result<u64, Error> {
        self.threaded = false;
        let mut writer = self.stream(io::sink())?;
        for (name, spec, bytes) in tensors {
            let array = writer.begin_array(name, spec)?;
            let piece = writer.begin_piece(&array, whole(spec), bytes)?;
            writer.leave_out(&piece, bytes)?;
        }
        Ok(writer.finish()?.file_bytes)
    }
}

/// Returns the placement of the whole array on the first device of its sharding.
fn whole(spec: &ArraySpec) -> Placement {
    let device = spec.sharding().devices().ids().first().map_or(0, |id| id.0);
    Placement { device, domain: None }
}

/// Returns an error if the device holds another array than one of these dimensions.
pub(super) fn check_contents<M: HostedMemory>(
    name: &str,
    spec: &ArraySpec,
    dims: impl IntoIterator<Item = i64>,
    memory: &M,
) -> Result<(), Error> {
    let Some(contents) = Contents::new(spec.dtype(), dims) else { return Ok(()) };
    match memory.other_than(&contents) {
        None => Ok(()),
        Some(found) => Err(Error::OtherArray {
            name: name.to_owned(),
            found,
            expected: format!("{}{:?}", contents.dtype(), contents.dims()),
        }),
    }
}

fn check_size(name: &str, spec: &ArraySpec, bytes: u64) -> Result<(), Error> {
    let expected = spec.byte_size().ok().flatten().and_then(|size| u64::try_from(size).ok());
    match expected {
        Some(expected) if expected == bytes => Ok(()),
        Some(expected) => {
            Err(Error::SizeMismatch { name: name.to_owned(), found: bytes, expected })
        }
        None => Err(Error::Unsupported {
            name: name.to_owned(),
            reason: format!("{}{} has no size in bytes", spec.dtype(), spec.shape()),
        }),
    }
}
