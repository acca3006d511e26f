//! Writes archives of arrays.

use std::{
    fs::File,
    io::{self, BufWriter, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serdes_files::{Durability, Replacement};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use super::{
    super::{
        Announced, Error, Metadata, Target, TensorInfo, TensorSink, npy::write::encode_header,
        pass_on,
    },
    KIND,
};

/// Maximum length of an entry's name in bytes.
const LONGEST_NAME: usize = u16::MAX as usize;

/// The target of an npz file.
pub(in super::super) struct NpzTarget {
    path: PathBuf,
    replacement: Replacement,
    durability: Durability,
}

impl NpzTarget {
    pub(in super::super) fn create(path: &Path, durability: Durability) -> Result<Self, Error> {
        Ok(Self { path: path.to_path_buf(), replacement: Replacement::create(path)?, durability })
    }
}

/// An npz file that is being written; its arrays are not compressed, like those of `numpy.savez`.
struct NpzSink {
    path: PathBuf,
    replacement: Replacement,
    durability: Durability,
    archive: Archive,
    tensors: Announced,
}

/// Writer of the entries. If it is dropped before the end, the archive is discarded.
struct Archive {
    writer: Option<ZipWriter<Quiet<BufWriter<File>>>>,
    given_up: Arc<AtomicBool>,
}

impl Archive {
    fn new(file: File) -> Self {
        let given_up = Arc::new(AtomicBool::new(false));
        let out = Quiet::new(BufWriter::with_capacity(1 << 20, file), &given_up);
        Self { writer: Some(ZipWriter::new(out)), given_up }
    }

    /// Returns the open writer; an error after the end.
    fn writer(&mut self) -> io::Result<&mut ZipWriter<Quiet<BufWriter<File>>>> {
        self.writer.as_mut().ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    /// Writes the end of the archive.
    fn finish(mut self) -> io::Result<()> {
        match self.writer.take() {
            Some(writer) => writer.finish()?.flush(),
            None => Ok(()),
        }
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        self.given_up.store(true, Ordering::Relaxed);
    }
}

/// A writer that drops bytes once the archive is discarded. The archive's own drop tries to
/// complete it, and prints failures, such as a full disk, to standard error, which a library must
/// not do.
struct Quiet<W> {
    inner: W,
    given_up: Arc<AtomicBool>,
    /// Position of the next byte, and of the end of the last one; tracked because the file may be
    /// closed.
    position: u64,
    end: u64,
}

impl<W> Quiet<W> {
    fn new(inner: W, given_up: &Arc<AtomicBool>) -> Self {
        Self { inner, given_up: Arc::clone(given_up), position: 0, end: 0 }
    }

    /// Performs `work` unless an earlier attempt failed; then returns `otherwise`.
    fn attempt<T>(
        &mut self,
        otherwise: T,
        work: impl FnOnce(&mut W) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.given_up.load(Ordering::Relaxed) {
            return Ok(otherwise);
        }
        work(&mut self.inner).inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                self.given_up.store(true, Ordering::Relaxed);
            }
        })
    }
}

impl<W: Write> Write for Quiet<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.attempt(bytes.len(), |inner| inner.write(bytes))?;
        self.position += count as u64;
        self.end = self.end.max(self.position);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.attempt((), Write::flush)
    }
}

impl<W: Seek> Seek for Quiet<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let place = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::End(distance) => self.end.checked_add_signed(distance),
            SeekFrom::Current(distance) => self.position.checked_add_signed(distance),
        };
        let place = place.ok_or(io::ErrorKind::InvalidInput)?;
        if self.given_up.load(Ordering::Relaxed) {
            // After a failure, the archive assumes that its last entry ends after its beginning.
            self.position = self.end;
            return Ok(place.max(self.end));
        }
        self.position = self.attempt(place, |inner| inner.seek(SeekFrom::Start(place)))?;
        Ok(self.position)
    }
}

/// Returns the reason if no entry of an archive may have this name: a reader that trusts names
/// would write it outside of its folder.
fn objection(name: &str) -> Option<&'static str> {
    // `C:x` is a file on a drive; `w:0` is TensorFlow's name for the first output of `w`.
    let has_drive = name.split_once(':').is_some_and(|(drive, rest)| {
        drive.len() == 1
            && drive.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && !(rest.starts_with(|digit: char| digit.is_ascii_digit())
                && rest.bytes().all(|digit| digit.is_ascii_digit()))
    });
    if name.starts_with('/') || has_drive {
        Some("begins at the root of a disk")
    } else if name.contains('\\') {
        Some("has a backslash, which parts folders on some systems")
    } else if name.split('/').any(|part| part == "..") {
        Some("leads out of the folder in which it is unpacked")
    } else if name.contains('\0') {
        Some("has a zero byte, where some programs end it")
    } else if name.len() > LONGEST_NAME - ".npy".len() {
        Some("is longer than an archive can say")
    } else {
        None
    }
}

impl Target for NpzTarget {
    fn keeps_metadata(&self) -> bool {
        false
    }

    fn check(&self, info: &TensorInfo) -> Result<(), Error> {
        encode_header(info)?;
        match objection(&info.name) {
            None => Ok(()),
            Some(objection) => {
                let reason = format!(
                    "as the name of a file in an archive, this name {objection}; rename the tensor, or write safetensors"
                );
                Err(Error::refused(&info.name, reason))
            }
        }
    }

    fn begin(
        self: Box<Self>,
        tensors: Vec<TensorInfo>,
        _: &Metadata,
    ) -> Result<Box<dyn TensorSink>, Error> {
        tensors.iter().try_for_each(|info| self.check(info))?;
        let Self { path, replacement, durability } = *self;
        let file = replacement.file().try_clone();
        let file = file.map_err(|error| Error::io("create", &path, error))?;
        let (archive, tensors) = (Archive::new(file), Announced::in_order(tensors));
        Ok(Box::new(NpzSink { path, replacement, durability, archive, tensors }))
    }
}

impl TensorSink for NpzSink {
    fn order(&self) -> &[usize] {
        self.tensors.order()
    }

    fn write(&mut self, position: usize, data: &mut dyn Read) -> Result<(), Error> {
        let info = self.tensors.get(position)?;
        let failed = |error| Error::io("write", &self.path, error);
        let archive = self.archive.writer().map_err(failed)?;
        let header = encode_header(info)?;
        let bytes = header.len() as u64 + info.bytes;
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(bytes >= u64::from(u32::MAX));
        let name = format!("{}.npy", info.name);
        archive.start_file(name, options).map_err(|error| failed(error.into()))?;
        let mut put = |bytes: &[u8]| archive.write_all(bytes).map_err(failed);
        put(&header)?;
        pass_on(&info.name, data, info.bytes, put)
    }

    fn write_strings(&mut self, position: usize, _: &[Vec<u8>]) -> Result<(), Error> {
        Err(self.tensors.refuse_strings(position, format!("{KIND} files hold no strings")))
    }

    fn finish(self: Box<Self>) -> Result<Duration, Error> {
        let Self { path, replacement, durability, archive, .. } = *self;
        archive.finish().map_err(|error| Error::io("write", &path, error))?;
        Ok(replacement.finish(durability)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_climb_out_of_a_folder_are_no_names_of_entries() {
        for name in [
            "../x",
            "a/../../x",
            "..",
            "a/..",
            "/etc/x",
            "C:\\x",
            "c:x",
            "c:0x",
            "c:",
            "c:/x",
            "..\\x",
            "a\\b",
            "a\0b",
        ] {
            assert!(objection(name).is_some(), "{name:?}");
        }
        assert!(objection(&"a".repeat(1 << 16)).is_some());
        for name in ["x", "a/b", "..a/b..", "...", "layer:0", "ab:0", "w:0", "", "a b", ".hidden"] {
            assert!(objection(name).is_none(), "{name:?}");
        }
    }

    #[test]
    fn an_archive_that_fails_on_its_way_back_ends_quietly() {
        struct Broken(io::Cursor<Vec<u8>>, usize);
        impl Write for Broken {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        impl Seek for Broken {
            fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
                self.1 = self.1.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
                self.0.seek(to)
            }
        }
        for seeks in 0..12 {
            let given_up = Arc::new(AtomicBool::new(false));
            let out = Quiet::new(Broken(io::Cursor::default(), seeks), &given_up);
            let mut archive = ZipWriter::new(out);
            let mut fill = || -> io::Result<()> {
                for name in ["a.npy", "b.npy"] {
                    archive.start_file(name, SimpleFileOptions::default())?;
                    archive.write_all(&[7; 100])?;
                }
                Ok(())
            };
            assert!(fill().is_ok() || given_up.load(Ordering::Relaxed));
            given_up.store(true, Ordering::Relaxed);
            // An assertion in its destructor would end the process.
            drop(archive);
        }
    }

    #[test]
    fn failed_write_is_not_tried_again() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Err(io::ErrorKind::StorageFull.into())
            }
        }
        let given_up = Arc::new(AtomicBool::new(false));
        let mut out = Quiet::new(Full, &given_up);
        assert!(out.write(b"a").is_err());
        assert!(given_up.load(Ordering::Relaxed));
        out.write_all(b"b").unwrap();
        out.flush().unwrap();
    }
}
