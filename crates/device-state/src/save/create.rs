//! Creates states: in files, in stores, in streams.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use super::Writer;
use crate::{
    Error, LocalParts, Part, PartStore, WriteOptions,
    store::{NewFile, WholeFile, clean_before},
};

impl WriteOptions {
    /// Creates a state at `path`, which appears when it is finished.
    ///
    /// # Errors
    /// If no file can be created beside `path`.
    pub fn create(self, path: impl AsRef<Path>) -> Result<Writer, Error> {
        let path = path.as_ref();
        let mut file = NewFile::create(path)?.keeping(self.previous);
        let sink = file.sink(self.durability, self.direct)?;
        let commit = WholeFile { file, parts: LocalParts::new(path) };
        Writer::new(self, sink, path.to_path_buf(), Some(Box::new(commit)))
    }

    /// Creates this process's part of a state at `path` that several processes save together; the
    /// state appears when all parts are finished and [merged](crate::merge).
    ///
    /// Leftovers of dead processes from other attempts are removed. Every process adds the arrays,
    /// or the shards of arrays, that it has; the specs of one array's shards must be the same in
    /// all.
    ///
    /// # Errors
    /// If no file can be created in the directory `<name>.parts` beside `path`.
    pub fn create_part(self, path: impl AsRef<Path>, part: Part) -> Result<Writer, Error> {
        let store = LocalParts::new(path.as_ref()).with_direct(self.direct);
        self.create_part_in(&store, part)
    }

    /// Like [`create_part`](Self::create_part), in any store.
    ///
    /// # Errors
    /// If the store refuses it.
    pub fn create_part_in(mut self, store: &dyn PartStore, part: Part) -> Result<Writer, Error> {
        clean_before(store, part.save());
        let pending = store.put_part(part)?;
        self.part = Some(part);
        let path = store.place().with_file_name(store.directory()).join(part.name());
        Writer::new(self, pending.sink, path, Some(pending.commit))
    }

    /// Creates a state that is written to a stream: a pipe, a socket. It is never read or rewound.
    ///
    /// # Errors
    /// If the metadata is too large.
    pub fn stream(self, sink: impl Write + Send + 'static) -> Result<Writer, Error> {
        Writer::new(self, Box::new(sink), PathBuf::from("the output stream"), None)
    }
}
