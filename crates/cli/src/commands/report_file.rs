//! Report files, which appear completely or not at all.

use std::{
    fs::{self, OpenOptions},
    io::{self, BufWriter, Write},
    path::Path,
};

use crate::{failure::Failure, terminal::shown_path, unfinished::Unfinished};

/// Writes a file. Pipes and devices are written in place.
pub(crate) fn write(
    path: &Path,
    contents: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let failed =
        |error: io::Error| Failure::new(format_args!("cannot write {}: {error}", shown_path(path)));
    let is_special = fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir());
    if is_special {
        let mut file = BufWriter::new(OpenOptions::new().write(true).open(path).map_err(failed)?);
        return contents(&mut file).and_then(|()| file.flush()).map_err(failed);
    }
    let (unfinished, file) = Unfinished::beside(path)?;
    let mut file = BufWriter::new(file);
    contents(&mut file).and_then(|()| file.flush()).map_err(failed)?;
    drop(file);
    unfinished.keep()
}

/// Appends to a file, which is created if it does not exist.
pub(crate) fn append(path: &Path, contents: &[u8]) -> Result<(), Failure> {
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.and_then(|mut file| file.write_all(contents))
        .map_err(|error| Failure::new(format_args!("cannot write {}: {error}", shown_path(path))))
}
