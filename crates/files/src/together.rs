//! Opens files that belong together and whose index, which names the others, is replaced last.

use std::sync::Arc;

use super::ReadAt;

/// Attempts before the last outcome counts: between two attempts all files were replaced.
const MOST_ATTEMPTS: usize = 20;

/// Opens an index and the files that it names, all of one set.
///
/// `index` opens the index; with `true` it opens the current one and ignores earlier answers.
/// `open` gets the index and opens the other files. Both are called again while another index has
/// replaced the one in use: some of the files may belong to the new set, or be gone. `is_alone`
/// returns true for an outcome without other files.
///
/// # Errors
/// The error of the last attempt.
pub fn open_together<T, E>(
    mut index: impl FnMut(bool) -> Result<Arc<dyn ReadAt>, E>,
    mut open: impl FnMut(Arc<dyn ReadAt>) -> Result<T, E>,
    is_alone: impl Fn(&T) -> bool,
) -> Result<T, E> {
    let mut source = index(false)?;
    let mut attempts = 0;
    loop {
        attempts += 1;
        let opened = open(Arc::clone(&source));
        if attempts == MOST_ATTEMPTS || opened.as_ref().is_ok_and(&is_alone) {
            return opened;
        }
        let Some(stamp) = source.stamp() else { return opened };
        match index(true) {
            Ok(next) if next.stamp().is_some_and(|next| next != stamp) => source = next,
            Ok(_) => return opened,
            // If all files were opened, nothing is missing.
            Err(error) => return opened.map_err(|_| error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, fs, io, path::Path};

    use super::*;
    use crate::{FileSystem, Files};

    /// Reads a file of one byte, which is replaced `changes` times meanwhile; returns the byte, and
    /// how often it was read.
    fn read(path: &Path, changes: u32) -> (io::Result<u8>, u32) {
        let put = |text: &str| {
            let next = path.with_file_name("next");
            fs::write(&next, text).unwrap();
            fs::rename(next, path).unwrap();
        };
        let asked = Cell::new(0);
        put("0");
        let outcome = open_together(
            |_| FileSystem.open(path),
            |index| {
                let mut byte = [0];
                index.read_exact_at(&mut byte, 0)?;
                asked.set(asked.get() + 1);
                if asked.get() <= changes {
                    put(&asked.get().to_string());
                    // An error meanwhile is about removed files.
                    return Err(io::ErrorKind::NotFound.into());
                }
                Ok(byte[0])
            },
            |_| false,
        );
        (outcome, asked.get())
    }

    #[test]
    fn open_together_asks_again_while_the_index_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index");
        for changes in [0, 1, 3] {
            let (byte, asked) = read(&path, changes);
            assert_eq!((byte.unwrap(), asked), (b'0' + changes as u8, changes + 1));
        }
        // A file that is replaced again and again must not block the reader forever.
        let (outcome, asked) = read(&path, u32::MAX);
        assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(asked as usize, MOST_ATTEMPTS);
    }

    #[test]
    fn open_together_takes_what_was_opened_though_the_index_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index");
        let open = |outcome: io::Result<u8>| {
            fs::write(&path, "0").unwrap();
            let outcome = Cell::new(Some(outcome));
            open_together(
                |_| FileSystem.open(&path),
                |_| {
                    fs::remove_file(&path).unwrap();
                    outcome.take().unwrap()
                },
                |_| false,
            )
        };
        assert_eq!(open(Ok(7)).unwrap(), 7);
        let error = open(Err(io::ErrorKind::InvalidData.into())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "that the index is gone says more");
    }

    #[test]
    fn stamp_tells_a_file_from_its_successor() {
        let folder = tempfile::tempdir().unwrap();
        let (path, next) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&path, "1").unwrap();
        let [first, again] = [(); 2].map(|()| FileSystem.open(&path).unwrap());
        assert!(first.stamp().is_some() && first.stamp() == again.stamp());
        fs::write(&next, "1").unwrap();
        fs::rename(&next, &path).unwrap();
        assert_ne!(FileSystem.open(&path).unwrap().stamp(), first.stamp());
        assert_eq!(b"memory".to_vec().stamp(), None);
    }
}
