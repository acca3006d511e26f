//! Host buffers in the directory that the server shares with clients on this machine.
//!
//! The contents of the directory are not trusted: a file may be a link to one that only the server
//! may read, a pipe without a writer, or of another user. Anything but a plain file of a client of
//! this directory is treated as missing, and the answer reveals nothing else about it. Does not
//! depend on the owner of a handle.

use std::{
    fs::{self, File, Metadata},
    io::{self, Read as _},
    path::Path,
};

use serdes::codec::Status;

use crate::{server::arrays::zeroed, status::status};

/// Reads and removes the host buffer of a handle, which has `size` bytes, from the directory.
///
/// # Errors
/// NOT_FOUND if there is no readable file of this size; RESOURCE_EXHAUSTED.
pub(crate) fn take_file(directory: &Path, handle: u64, size: u64) -> Result<Vec<u8>, Status> {
    let path = directory.join(format!("lt_{handle}"));
    let refuse = |why: String| {
        // Only the operator sees the reason; a client might probe files of others.
        tracing::warn!(path = %path.display(), why, "a file of the transfer directory was not read");
        status!(
            NotFound,
            "the transfer directory has no file of {size} bytes for the host buffer {handle}; write it as a plain file of the directory's owner or the server's user, then ask"
        )
    };
    let file = open(&path).map_err(|error| refuse(error.to_string()))?;
    let found = file.metadata().map_err(|error| refuse(error.to_string()))?;
    check(&found, directory).map_err(|why| refuse(why.to_owned()))?;
    if found.len() != size {
        return Err(refuse(format!("found {} bytes; expected {size}", found.len())));
    }
    let mut bytes = zeroed(size)?;
    (&file).read_exact(&mut bytes).map_err(|error| refuse(error.to_string()))?;
    fs::remove_file(&path).map_err(|error| refuse(error.to_string()))?;
    Ok(bytes)
}

/// Opens the file without following a link, and without blocking on a pipe.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(open(path, flags, Mode::empty())?.into())
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    File::open(path)
}

/// Checks that an open file was left by a client of the directory.
#[cfg(unix)]
fn check(file: &Metadata, directory: &Path) -> Result<(), &'static str> {
    use std::os::unix::fs::MetadataExt as _;
    if !file.is_file() {
        return Err("it is no regular file");
    }
    // A hard link to a file that was not meant for the directory.
    if file.nlink() != 1 {
        return Err("it has another name elsewhere, or none any more");
    }
    let directory = fs::metadata(directory).map_err(|_| "its directory cannot be looked at")?;
    let server = rustix::process::geteuid();
    // If the server may read everything, the directory's owner could move one of the server's files
    // into it.
    let of_server = file.uid() == server.as_raw() && !server.is_root();
    if file.uid() != directory.uid() && !of_server {
        return Err("it belongs neither to the directory's owner nor to the server's user");
    }
    Ok(())
}

#[cfg(not(unix))]
fn check(file: &Metadata, _: &Path) -> Result<(), &'static str> {
    if file.is_file() { Ok(()) } else { Err("it is no regular file") }
}

#[cfg(all(test, unix))]
mod tests {
    use std::{os::unix::fs::symlink, path::PathBuf};

    use super::*;
    use serdes::codec::StatusCode;

    /// A directory with a secret beside it.
    struct Folders {
        root: tempfile::TempDir,
    }

    impl Folders {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir(root.path().join("transfer")).unwrap();
            fs::write(root.path().join("secret"), "eighteen bytes....").unwrap();
            Self { root }
        }

        fn directory(&self) -> PathBuf {
            self.root.path().join("transfer")
        }

        fn file(&self, handle: u64) -> PathBuf {
            self.directory().join(format!("lt_{handle}"))
        }

        fn secret(&self) -> PathBuf {
            self.root.path().join("secret")
        }

        fn refusal(&self, handle: u64, size: u64) -> Status {
            take_file(&self.directory(), handle, size).unwrap_err()
        }
    }

    #[test]
    fn a_plain_file_is_read_and_removed() {
        let place = Folders::new();
        fs::write(place.file(1), "abc").unwrap();
        assert_eq!(take_file(&place.directory(), 1, 3).unwrap(), b"abc");
        assert!(!place.file(1).exists());
        fs::write(place.file(2), "").unwrap();
        assert_eq!(take_file(&place.directory(), 2, 0).unwrap(), b"");
    }

    #[test]
    fn nothing_is_told_of_what_is_no_file_of_a_client() {
        let place = Folders::new();
        let size = fs::metadata(place.secret()).unwrap().len();
        let missing = place.refusal(5, size);
        assert_eq!(missing.code(), StatusCode::NotFound);
        let make: [&dyn Fn(&Path); 5] = [
            &|path| symlink(place.secret(), path).unwrap(),
            &|path| symlink("nowhere", path).unwrap(),
            &|path| fs::hard_link(place.secret(), path).unwrap(),
            &|path| fs::create_dir(path).unwrap(),
            &|path| fs::write(path, "of another size").unwrap(),
        ];
        for (case, make) in make.iter().enumerate() {
            make(&place.file(5));
            assert_eq!(place.refusal(5, size), missing, "case {case}");
            // The server must not remove it either.
            assert!(fs::symlink_metadata(place.file(5)).is_ok(), "case {case}");
            fs::remove_file(place.file(5)).or_else(|_| fs::remove_dir(place.file(5))).unwrap();
        }
        assert_eq!(fs::read(place.secret()).unwrap().len() as u64, size);
    }

    #[test]
    fn a_pipe_without_a_writer_is_not_waited_for() {
        let place = Folders::new();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, place.file(1), rustix::fs::FileType::Fifo, mode, 0)
            .unwrap();
        assert_eq!(place.refusal(1, 0).code(), StatusCode::NotFound);
        let _socket = std::os::unix::net::UnixListener::bind(place.file(2)).unwrap();
        assert_eq!(place.refusal(2, 0).code(), StatusCode::NotFound);
    }

    #[test]
    fn files_of_other_users_are_not_read() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: only root can give a file away");
            return;
        }
        let place = Folders::new();
        let give = |path: &Path, user| std::os::unix::fs::chown(path, Some(user), None).unwrap();
        fs::write(place.file(1), "abc").unwrap();
        give(&place.file(1), 1001);
        assert_eq!(place.refusal(1, 3).code(), StatusCode::NotFound);
        // The files belong to the directory's owner, who also moved the server's own file there.
        give(&place.directory(), 1001);
        fs::write(place.file(2), "def").unwrap();
        assert_eq!(place.refusal(2, 3).code(), StatusCode::NotFound);
        assert_eq!(take_file(&place.directory(), 1, 3).unwrap(), b"abc");
    }
}
