//! Views of tensors in a mapped file, without a copy.
//!
//! The only file of this module with unsafe code: a mapping is sound only if the caller guarantees
//! that the file does not change.
#![allow(
    unsafe_code,
    reason = "the system maps files without a promise that they stay as they are"
)]

use std::{fmt, fs::File, path::Path};

use memmap2::{Mmap, MmapOptions};
use serdes_files::read_at;

use super::{Reader, Tensor};
use crate::{Error, pump::ChunkSums};

/// A state whose file is mapped into memory. The system reads pages on access, and reclaims them
/// when it needs the memory.
///
/// # Examples
/// ```
/// use serdes_device_state::{MappedState, Versions, Writer};
/// use serdes::ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding};
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("a.sds");
/// let spec = ArraySpec::new(DType::U8, Shape::new([5])?, SingleDeviceSharding::new(DeviceId(0)));
/// let mut state = Writer::create(&path, Versions::current())?;
/// state.add_bytes("greeting", &spec, b"hello")?;
/// state.finish()?;
///
/// // SAFETY: the file is in a directory of its own, and does not change here.
/// let state = unsafe { MappedState::open(&path)? };
/// assert_eq!(state.verified_bytes("greeting")?, b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MappedState {
    reader: Reader,
    file: File,
    map: Mmap,
}

impl fmt::Debug for MappedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappedState").field("reader", &self.reader).finish_non_exhaustive()
    }
}

impl MappedState {
    /// Opens the state at `path` as [`Reader::open`] does, and maps its file.
    ///
    /// # Safety
    /// While the mapping exists, no process may write to the file or truncate it: the bytes of a
    /// view would change under a reference, and accessing pages after the new end kills the process
    /// (SIGBUS). This library never does that to a state: saving over one creates a new file, and
    /// mappings keep the old one. Other programs may (`cp` onto an existing file, `truncate`,
    /// network file systems).
    ///
    /// # Errors
    /// As [`Reader::open`]; [`Error::Io`] if the file system cannot map the file;
    /// [`Error::Invalid`] if the state consists of several files.
    pub unsafe fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let io = |action, error| Error::io(action, path, error);
        let file = read_at::open(path).map_err(|error| io("open", error))?;
        let source = file.try_clone().map_err(|error| io("open", error))?;
        let reader = Reader::from_source(source, path)?;
        if reader.parts() > 0 {
            return Err(Error::invalid(format!(
                "a mapping is of one file, and {} lies in {} parts; restore it",
                path.display(),
                reader.parts()
            )));
        }
        let length = usize::try_from(reader.file_bytes()).map_err(|_| Error::TooLarge {
            what: "file, for a mapping on this machine,",
            found: reader.file_bytes(),
        })?;
        // SAFETY: by the caller's guarantee the file does not change while the mapping exists; it
        // was `length` bytes long when the reader checked, and `file` is read-only here.
        let map = unsafe { MmapOptions::new().len(length).map(&file) };
        let map = map.map_err(|error| io("map", error))?;
        Ok(Self { reader, file, map })
    }

    /// Returns the reader of the state's index.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Returns the data of a tensor, row-major, in place: aligned to 64 bytes, and to 4096 from 1
    /// MiB on. Nothing is read, and no checksum is verified.
    ///
    /// # Errors
    /// [`Error::NoSuchTensor`]; [`Error::Unsupported`] if the tensor is stored in several shards;
    /// [`Error::Corrupt`] if the file was truncated after it was opened.
    pub fn bytes(&self, name: &str) -> Result<&[u8], Error> {
        self.view(&self.reader.tensor(name)?)
    }

    /// Like [`bytes`](Self::bytes), after comparing every chunk with its checksum.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes); [`Error::Corrupt`] if the bytes are damaged.
    pub fn verified_bytes(&self, name: &str) -> Result<&[u8], Error> {
        let tensor = self.reader.tensor(name)?;
        let bytes = self.view(&tensor)?;
        let mut sums = ChunkSums::new(self.reader.chunk_bytes());
        sums.update(bytes);
        let sums = sums.finish();
        for (_, piece) in tensor.pieces() {
            self.reader.state.compare_sums(name, &piece, &sums)?;
        }
        Ok(bytes)
    }

    fn view(&self, tensor: &Tensor) -> Result<&[u8], Error> {
        let (Some((_, piece)), true) = (tensor.pieces().next(), tensor.is_whole()) else {
            return Err(Error::Unsupported {
                name: tensor.name().to_owned(),
                reason: format!("it is stored in {} shards", tensor.piece_count),
            });
        };
        // If the file was truncated before, this returns an error instead of killing the process.
        let now =
            self.file.metadata().map_err(|e| Error::io("read", &self.reader.state.path, e))?;
        let expected = self.reader.file_bytes();
        let begin = usize::try_from(piece.data_offset).ok();
        let bytes = usize::try_from(piece.data_bytes).ok();
        begin
            .zip(bytes)
            .and_then(|(begin, bytes)| self.map.get(begin..begin.checked_add(bytes)?))
            .filter(|_| now.len() >= expected)
            .ok_or_else(|| {
                let found = format!("{} bytes", now.len());
                Error::corrupt("file", found, format!("{expected} as when it was opened"))
                    .in_file(&self.reader.state.path)
            })
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, fs::OpenOptions, path::PathBuf};

    use super::*;
    use crate::{Part, SaveId, Versions, WriteOptions, merge, tests::small};
    use serdes::ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding};
    use serdes_testkit::noise::noise;

    fn map(bytes: &[u8]) -> (tempfile::TempDir, PathBuf, MappedState) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sds");
        fs::write(&path, bytes).unwrap();
        // SAFETY: the tests that cut the file do not touch a view afterwards.
        let state = unsafe { MappedState::open(&path) }.unwrap();
        (directory, path, state)
    }

    #[test]
    fn views_are_the_saved_bytes_and_aligned() {
        let (_directory, _, state) = map(&small());
        let bytes = state.verified_bytes("w").unwrap();
        assert_eq!(bytes, noise(200, 1));
        assert_eq!(bytes.as_ptr().addr() % 64, 0);
        assert_eq!(state.bytes("empty").unwrap(), b"");
        assert_eq!(state.bytes("s").unwrap(), [7]);
        assert!(matches!(state.bytes("none"), Err(Error::NoSuchTensor { .. })));
    }

    #[test]
    fn a_state_in_parts_is_no_single_mapping() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sds");
        let save = SaveId::random();
        let spec = ArraySpec::new(
            DType::U8,
            Shape::new([3]).unwrap(),
            SingleDeviceSharding::new(DeviceId(0)),
        );
        let options = WriteOptions::new(Versions::current());
        let part = Part::new(save, 0, 1).unwrap();
        let mut writer = options.clone().create_part(&path, part).unwrap();
        writer.add_bytes("a", &spec, &[1, 2, 3]).unwrap();
        writer.finish().unwrap();
        merge(&path, save, &options).unwrap();
        // SAFETY: the directory is this test's alone.
        let error = unsafe { MappedState::open(&path) }.unwrap_err().to_string();
        assert!(error.contains("1 parts"), "{error}");
    }

    #[test]
    fn damage_shows_when_a_view_is_verified() {
        let mut bytes = small();
        let data = noise(200, 1);
        let at = bytes.windows(200).position(|part| part == data).unwrap();
        bytes[at + 100] ^= 1;
        let (_directory, _, state) = map(&bytes);
        assert_eq!(state.bytes("w").unwrap().len(), 200);
        assert!(matches!(state.verified_bytes("w"), Err(Error::Corrupt { .. })));
        assert!(state.verified_bytes("s").is_ok());
    }

    #[test]
    fn a_file_that_was_cut_is_an_error_and_not_a_signal() {
        let (_directory, path, state) = map(&small());
        OpenOptions::new().write(true).open(&path).unwrap().set_len(10).unwrap();
        assert!(matches!(state.verified_bytes("w"), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn a_replaced_file_does_not_change_a_mapping() {
        let (directory, path, state) = map(&small());
        let next = directory.path().join("next");
        fs::write(&next, "another").unwrap();
        fs::rename(&next, &path).unwrap();
        assert_eq!(state.verified_bytes("w").unwrap(), noise(200, 1));
    }
}
