//! Web pages, which are read-only.

use std::{io, path::PathBuf, sync::Arc};

use serdes_device_state::{
    Durability, Error, Part, PartStore, PendingPart, SaveId, WriteOptions, Writer,
};
use serdes_files::{EntryKind, ReadAt};

use super::{super::location::Location, address::shown, web::Web};

/// A page of the web.
pub(super) struct Page {
    pub(super) web: Arc<Web>,
    pub(super) uri: http::Uri,
}

impl Page {
    /// Returns the error for an action that writes.
    fn refused(&self, action: &'static str) -> Error {
        Error::io(action, &self.name(), read_only())
    }
}

impl Location for Page {
    fn name(&self) -> PathBuf {
        PathBuf::from(shown(&self.uri))
    }

    fn open(&self) -> io::Result<Arc<dyn ReadAt>> {
        self.web.open(&self.uri)
    }

    fn open_anew(&self) -> io::Result<Arc<dyn ReadAt>> {
        self.web.forget();
        self.web.open(&self.uri)
    }

    fn look(&self) -> io::Result<EntryKind> {
        // A suffix of a signed address becomes part of its query: the server would answer with the
        // file itself.
        if self.uri.query().is_some_and(|query| query.ends_with(".index")) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.web.open(&self.uri).map(|_| EntryKind::File)
    }

    fn list(&self) -> io::Result<Vec<PathBuf>> {
        Err(no_listing())
    }

    fn visit(&self, _: &mut dyn FnMut(&str)) -> io::Result<()> {
        Err(no_listing())
    }

    fn remove(&self) -> io::Result<()> {
        Err(read_only())
    }

    fn put(&self, _: Durability) -> Result<PendingPart, Error> {
        Err(self.refused("create"))
    }

    fn create_state(&self, _: WriteOptions) -> Result<Writer, Error> {
        Err(self.refused("create"))
    }

    fn create_part(&self, _: Part, _: WriteOptions) -> Result<Writer, Error> {
        Err(self.refused("create"))
    }

    fn parts(&self) -> Result<Arc<dyn PartStore>, Error> {
        Err(self.refused("merge"))
    }

    fn remove_state(&self) -> Result<(), Error> {
        Err(self.refused("remove"))
    }

    fn discard(&self, _: SaveId) {}
}

fn read_only() -> io::Error {
    let reason = "addresses of the web are only read; write to a file, s3://, gs:// or az://";
    io::Error::new(io::ErrorKind::Unsupported, reason)
}

fn no_listing() -> io::Error {
    let reason = "a server of the web does not say what a folder holds; name a file";
    io::Error::new(io::ErrorKind::Unsupported, reason)
}
