//! Standard input and standard output where a file is expected.
//!
//! `-` and the system's names for the streams mean the streams, never files; a file with the name
//! `-` is `./-`.

use std::{
    fs::File,
    io::{self, IsTerminal, Read},
    path::Path,
    sync::Arc,
};

use serdes_device_state::files::{Files as _, LONGEST_STREAM, ReadAt, spool};
use serdes_tensors::{self as tensor_io, Form, Source, storage::Storage};

use crate::{
    commands::{failures, unread},
    failure::Failure,
    startup::{self, INPUT},
    terminal::shown_path,
};

/// Returns true if the path denotes standard input.
pub(crate) fn is_input(path: &Path) -> bool {
    ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].iter().any(|name| path == Path::new(name))
}

/// Returns true if the path denotes standard output.
pub(crate) fn is_output(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

/// Returns an error if standard input is named more than once, since it can be read only once.
pub(crate) fn once<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<(), Failure> {
    if paths.into_iter().filter(|path| is_input(path)).count() > 1 {
        return Err(Failure::new(
            "standard input can be read once; name a file instead of one of them",
        ));
    }
    Ok(())
}

/// Locks standard input for reading.
pub(crate) fn standard_input() -> Result<io::StdinLock<'static>, Failure> {
    if startup::standard_input_was_closed() {
        return Err(Failure::new("standard input is closed; expected a file or a pipe"));
    }
    Ok(io::stdin().lock())
}

/// Returns the format of `--kind`.
pub(crate) fn form(option: &str, name: Option<&str>) -> Result<Option<Form>, Failure> {
    name.map(|name| {
        name.parse::<Form>().map_err(|error| Failure::new(format_args!("{option} {error}")))
    })
    .transpose()
}

/// Reads standard input, if it is one of the paths. This happens before the Ctrl-C handler is
/// installed, so that Ctrl-C still ends a process that waits for input.
pub(crate) fn input_among<'a>(
    paths: impl IntoIterator<Item = &'a Path>,
) -> Result<Option<Arc<dyn ReadAt>>, Failure> {
    if paths.into_iter().any(is_input) { input().map(Some) } else { Ok(None) }
}

/// Opens tensors at a path of the storage or in standard input, whose format is given or detected
/// from its first bytes.
pub(crate) fn open(
    storage: &Storage,
    path: &Path,
    input: Option<&Arc<dyn ReadAt>>,
    form: Option<Form>,
) -> Result<Box<dyn Source>, Failure> {
    if let Some(input) = input.filter(|_| is_input(path)) {
        return match tensor_io::open_at(Arc::clone(input), INPUT, form) {
            Ok(source) if source.tensors().is_empty() => {
                unread::foreign_input(storage, input).map_or(Ok(source), Err)
            }
            Ok(source) => Ok(source),
            Err(error) => Err(unread::explained_input(failures::tensor_io(error), storage, input)),
        };
    }
    match tensor_io::open_in(storage, path) {
        // An archive without arrays may belong to another format.
        Ok(source) if source.tensors().is_empty() => {
            unread::foreign(storage, path).map_or(Ok(source), Err)
        }
        Ok(source) => Ok(source),
        Err(error) => Err(unread::explained(failures::tensor_io(error), storage, path)),
    }
}

/// Reads all bytes of a file, or of standard input.
///
/// # Errors
/// An error of the system, or an error for more than `longest` bytes, which names the `expected`
/// contents.
pub(crate) fn read_whole(
    storage: &Storage,
    path: &Path,
    longest: u64,
    expected: &str,
) -> Result<Vec<u8>, Failure> {
    let name = shown_path(path);
    let failed = |error: io::Error| Failure::new(format_args!("cannot read {name}: {error}"));
    let source = if is_input(path) { input()? } else { storage.open(path).map_err(failed)? };
    let size = source.size().map_err(failed)?;
    if size > longest {
        return Err(Failure::new(format_args!("{name} has {size} bytes; expected {expected}")));
    }
    let mut bytes = vec![0; usize::try_from(size).unwrap_or_default()];
    source.read_exact_at(&mut bytes, 0).map_err(failed)?;
    Ok(bytes)
}

/// Returns standard input as a random-access source: the file itself if it is one, or else the
/// buffered stream.
pub(crate) fn input() -> Result<Arc<dyn ReadAt>, Failure> {
    let stream = standard_input()?;
    if stream.is_terminal() {
        return Err(Failure::new(
            "standard input is a terminal; expected a file or a pipe, as in `serdes restore - < state.sds`",
        ));
    }
    let failed = |error| Failure::new(format_args!("cannot read standard input: {error}"));
    match file().map_err(failed)? {
        Some(file) => Ok(Arc::new(file)),
        None => kept(stream),
    }
}

/// Returns standard input as a file, if it is one and is at its beginning.
#[cfg(unix)]
fn file() -> io::Result<Option<File>> {
    use std::{io::Seek, os::fd::AsFd};
    let mut file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    Ok((file.metadata()?.is_file() && file.stream_position()? == 0).then_some(file))
}

#[cfg(not(unix))]
fn file() -> io::Result<Option<File>> {
    Ok(None)
}

fn kept(stream: impl Read) -> Result<Arc<dyn ReadAt>, Failure> {
    let kept = spool(stream, LONGEST_STREAM)
        .map_err(|error| Failure::new(format_args!("cannot keep standard input: {error}")))?;
    kept.ok_or_else(|| {
        Failure::new(format_args!(
            "standard input gave more than {LONGEST_STREAM} bytes; save them to a file and name that"
        ))
    })
}
