//! Golden bytes: the bytes in which each format of a type was written when it was new.

use std::{
    fmt::Debug,
    fs, io,
    path::{Path, PathBuf},
};

use prost::Message;

use crate::{
    codec::{DecodeError, DeserializeOptions, EncodeError, ErrorKind, FromProto, ToProto},
    version::{AnyVersionAccessor, Line, Version},
};

/// The variable with which [`golden`] writes missing files: `serdes versions golden` sets it to
/// `write`.
const SWITCH: &str = "SERDES_GOLDEN";

/// An error of comparing golden bytes with the bytes that a type writes and reads.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GoldenError {
    /// Some formats have no golden bytes yet.
    #[error(
        "there are no golden bytes for {type_name} in {}; `serdes versions golden` writes them, once the format is as it will be released (this test with {SWITCH}=write)",
        shown(paths)
    )]
    #[non_exhaustive]
    Missing {
        /// The type.
        type_name: &'static str,
        /// The files.
        paths: Vec<PathBuf>,
    },
    /// The type writes different bytes than when the format was new.
    #[error(
        "{}: {type_name} is written otherwise at version {number} than these bytes, which builds in the field read; restore the format, or add one with a new number (`serdes versions add`)",
        path.display()
    )]
    #[non_exhaustive]
    Changed {
        /// The file.
        path: PathBuf,
        /// The type.
        type_name: &'static str,
        /// The number of the format.
        number: i32,
    },
    /// The sample cannot be written at a version.
    #[error("the sample of {type_name} for version {number} cannot be written at it: {source}")]
    #[non_exhaustive]
    NotWritten {
        /// The type.
        type_name: &'static str,
        /// The number.
        number: i32,
        /// The cause.
        source: EncodeError,
    },
    /// Golden bytes cannot be read.
    #[error("{}: {type_name} is not read: {source}", path.display())]
    #[non_exhaustive]
    NotRead {
        /// The file.
        path: PathBuf,
        /// The type.
        type_name: &'static str,
        /// The cause.
        source: DecodeError,
    },
    /// Golden bytes are read as a different value than the one that was written.
    #[error("{}: read as {found}, written as {expected}", path.display())]
    #[non_exhaustive]
    ReadOtherwise {
        /// The file.
        path: PathBuf,
        /// The value that was read.
        found: String,
        /// The sample.
        expected: String,
    },
    /// The bytes of a format whose code was removed are still read.
    #[error("{}: the format is removed or below the minimum, and its bytes are still read", path.display())]
    #[non_exhaustive]
    NotRefused {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    #[non_exhaustive]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl GoldenError {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Missing { .. } => ErrorKind::NotFound,
            Self::NotWritten { source, .. } => source.kind(),
            Self::NotRead { source, .. } => source.kind(),
            Self::Changed { .. } | Self::ReadOtherwise { .. } | Self::NotRefused { .. } => {
                ErrorKind::Faulty
            }
            Self::File { source, .. } => ErrorKind::of_io(source),
        }
    }
}

fn shown(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(", ")
}

/// Checks that each format of a type is written as the golden bytes below
/// `root/tests/golden/LINE/TYPE/vNUMBER.bin`, and that these are read as the value that was
/// written. Bytes of a format whose code was removed must be refused.
///
/// `sample` returns the fullest value that a version can hold; it must be the same in every run.
/// For a test of the crate that has the type:
///
/// ```no_run
/// use serdes::codec::{DeserializeOptions, testing};
/// use serdes::ifrt::Shape;
/// use serdes::version::Ifrt;
///
/// # fn main() {
/// // #[test] fn golden_bytes_of_shapes()
/// let root = env!("CARGO_MANIFEST_DIR");
/// testing::golden::<Ifrt, _>(root, &DeserializeOptions::new(), |_| Shape::scalar())
///     .unwrap_or_else(|error| panic!("{error}"));
/// # }
/// ```
///
/// With `SERDES_GOLDEN=write` in the environment, as `serdes versions golden` runs the tests, files
/// that are missing are written. None is ever overwritten.
///
/// # Errors
/// [`GoldenError`] for the first failure; missing files are reported together, at the end.
pub fn golden<L, T>(
    root: impl AsRef<Path>,
    options: &DeserializeOptions,
    sample: impl Fn(Version<L>) -> T,
) -> Result<(), GoldenError>
where
    L: Line,
    T: ToProto<L> + FromProto<Proto = <T as ToProto<L>>::Proto> + PartialEq + Debug,
    <T as ToProto<L>>::Proto: Message + Default,
{
    let writes = std::env::var_os(SWITCH).is_some_and(|value| value == "write");
    check(root.as_ref(), options, sample, writes)
}

fn check<L, T>(
    root: &Path,
    options: &DeserializeOptions,
    sample: impl Fn(Version<L>) -> T,
    writes: bool,
) -> Result<(), GoldenError>
where
    L: Line,
    T: ToProto<L> + FromProto<Proto = <T as ToProto<L>>::Proto> + PartialEq + Debug,
    <T as ToProto<L>>::Proto: Message + Default,
{
    let folder = root.join("tests/golden").join(L::NAME).join(T::NAME);
    let mut missing = Vec::new();
    for entry in L::ENTRIES.iter().filter(|entry| entry.formats.contains(&T::NAME)) {
        let path = folder.join(format!("v{}.bin", entry.number));
        let frozen = match fs::read(&path) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(GoldenError::File { path, source }),
        };
        let version = AnyVersionAccessor::<L>::get(entry.number);
        let (Ok(version), false) = (version, entry.removed.contains(&T::NAME)) else {
            let read = frozen.map(|bytes| T::from_bytes(bytes.into(), options));
            if !entry.withdrawn && read.is_some_and(|read| read.is_ok()) {
                return Err(GoldenError::NotRefused { path });
            }
            continue;
        };
        let (type_name, number) = (T::NAME, entry.number);
        let value = sample(version);
        let written = value.to_bytes(version).map_err(|source| GoldenError::NotWritten {
            type_name,
            number,
            source,
        })?;
        match frozen {
            Some(bytes) if bytes != written => {
                return Err(GoldenError::Changed { path, type_name, number });
            }
            Some(_) => {}
            None if writes => {
                write(&path, &written)
                    .map_err(|source| GoldenError::File { path: path.clone(), source })?;
            }
            None => missing.push(path.clone()),
        }
        match T::from_bytes(written, options) {
            Ok(read) if read == value => {}
            Ok(read) => {
                let (found, expected) = (format!("{read:?}"), format!("{value:?}"));
                return Err(GoldenError::ReadOtherwise { path, found, expected });
            }
            Err(source) => return Err(GoldenError::NotRead { path, type_name, source }),
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(GoldenError::Missing { type_name: T::NAME, paths: missing })
}

/// Writes a file completely or not at all. Never overwrites a file.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let unfinished = path.with_extension(format!("{}.tmp", std::process::id()));
    fs::write(&unfinished, bytes)?;
    let made = fs::hard_link(&unfinished, path);
    fs::remove_file(&unfinished)?;
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ifrt::Shape, version::Ifrt};

    fn of_shapes(root: &Path, dimension: i64, writes: bool) -> Result<(), GoldenError> {
        let sample = |_| Shape::new([dimension]).unwrap();
        check::<Ifrt, Shape>(root, &DeserializeOptions::new(), sample, writes)
    }

    #[test]
    fn golden_bytes_are_written_once_and_then_compared() {
        let folder = tempfile::tempdir().unwrap();
        let missing = of_shapes(folder.path(), 4, false).unwrap_err();
        let GoldenError::Missing { type_name: "Shape", paths } = &missing else {
            panic!("{missing}")
        };
        assert!(missing.to_string().contains("serdes versions golden"), "{missing}");
        assert!(paths.iter().all(|path| !path.exists()) && !paths.is_empty());
        of_shapes(folder.path(), 4, true).unwrap();
        of_shapes(folder.path(), 4, false).unwrap();
        let changed = of_shapes(folder.path(), 5, true).unwrap_err();
        assert!(matches!(changed, GoldenError::Changed { .. }), "{changed}");
        of_shapes(folder.path(), 4, false).unwrap();
        let files = fs::read_dir(paths[0].parent().unwrap()).unwrap().count();
        assert_eq!(files, paths.len(), "nothing else is left");
    }

    #[test]
    fn golden_bytes_that_cannot_be_made_say_why() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("tests"), "no folder").unwrap();
        let error = of_shapes(folder.path(), 4, true).unwrap_err();
        assert!(matches!(error, GoldenError::File { .. }), "{error}");
    }
}
