//! Replaces a set of files by another one, so that one of them can be read completely at any time.
//!
//! The files of the new set get unused names; the rename of its index switches to it; the files
//! that only the old index names are removed afterwards. Until all of this is done, a copy of each
//! index lies beside the target under a partial name: if the process dies, the next save finds
//! there which files are no longer in any index.

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs,
    io::{self, ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use serdes_files as files;
use serdes_files::{Durability, ReadAt as _, Replacement, Turn, read_at};

use super::{
    super::Error,
    index::{Index, names_files},
    names::{SetNames, new_mark},
};

/// The exclusive right to replace a set, with the set to be replaced.
pub(super) struct Switch {
    directory: PathBuf,
    names: SetNames,
    durability: Durability,
    old: Old,
    /// Files that have their final names already; removed unless the index follows.
    appeared: Vec<PathBuf>,
    /// The new index, while it has a partial name.
    index: Option<Replacement>,
    /// A copy of the old index, under a partial name.
    note: Option<Replacement>,
    stage: Stage,
    _turn: Turn,
}

/// Progress of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The old set is current.
    Old,
    /// The new set is current, and files of the old one may be left.
    New,
    /// The old set is removed.
    Done,
}

/// The set that is replaced.
#[derive(Default)]
struct Old {
    /// Contents of the index.
    index: Option<Vec<u8>>,
    /// Files of this set's names that the index names.
    shards: Vec<String>,
}

impl Switch {
    /// Waits for the lock and reads the existing set.
    pub(super) fn begin(
        directory: &Path,
        names: SetNames,
        durability: Durability,
    ) -> Result<Self, Error> {
        let turn = Turn::take(directory).map_err(|error| Error::io("open", directory, error))?;
        let directory = directory.to_owned();
        let mut switch = Self {
            directory,
            names,
            durability,
            old: Old::default(),
            appeared: Vec::new(),
            index: None,
            note: None,
            stage: Stage::Old,
            _turn: turn,
        };
        switch.old = switch.look()?;
        Ok(switch)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Reads the set at the target.
    fn look(&self) -> Result<Old, Error> {
        let path = self.path(&self.names.index());
        let file = match read_at::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Old::default()),
            Err(error) => return Err(Error::io("open", &path, error)),
        };
        let index = match Index::read(&file, &path) {
            Ok(index) => index,
            // The files of a damaged index are unknown and stay.
            Err(Error::Corrupt { .. }) => {
                return Ok(Old { index: Some(Vec::new()), shards: Vec::new() });
            }
            Err(error) => return Err(error),
        };
        let read = |error| Error::io("read", &path, error);
        let size = file.size().map_err(read)?;
        let text = read_at::read_arriving(&file, 0, size).map_err(read)?;
        let shards: HashSet<String> = self.own(index).collect();
        Ok(Old { index: Some(text), shards: shards.into_iter().collect() })
    }

    /// Returns the files of this set's names that an index names.
    fn own(&self, index: Index) -> impl Iterator<Item = String> {
        index.weights.into_iter().map(|(_, file)| file).filter(|file| self.names.has_shard(file))
    }

    /// Returns unused names for the files of the new set. The plain names are used if no file there
    /// could have them: a reader with an index that was removed meanwhile then finds no files.
    pub(super) fn free_names(&self, count: usize, is_taken: bool) -> Result<Vec<String>, Error> {
        let failed = |error| Error::io("list", &self.directory, error);
        let mut is_taken = is_taken || self.old.index.is_some();
        for entry in fs::read_dir(&self.directory).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            is_taken |= name.to_str().is_some_and(|name| self.names.has_shard(name));
        }
        if !is_taken {
            return Ok(self.names.shards(count, None));
        }
        loop {
            let names = self.names.shards(count, Some(&new_mark()));
            if names.iter().all(|name| fs::symlink_metadata(self.path(name)).is_err()) {
                return Ok(names);
            }
        }
    }

    /// Takes the partial file of the index, and records in it and beside it which files to remove
    /// if this process dies: those that are then in no index. `text` is the new index, if the new
    /// set has one.
    pub(super) fn note(&mut self, index: Replacement, text: Option<&[u8]>) -> Result<(), Error> {
        let path = self.path(&self.names.index());
        let write = |file: &Replacement, text: &[u8]| {
            let written = file.file().write_all(text);
            written.map_err(|error| Error::io("write", &path, error))
        };
        if let Some(old) = self.old.index.as_ref().filter(|_| !self.old.shards.is_empty()) {
            let note = index.another()?;
            write(&note, old)?;
            self.note = Some(note);
        }
        if let Some(text) = text {
            write(&index, text)?;
            index.settle(self.durability)?;
            self.index = Some(index);
        }
        Ok(())
    }

    /// Renames a file of the new set to its final name.
    pub(super) fn put(&mut self, file: Replacement, name: &str) -> Result<(), Error> {
        let mut file = self.modelled(file.named(OsStr::new(name)))?;
        file.settle(self.durability)?;
        file.appear()?;
        self.appeared.push(self.path(name));
        Ok(())
    }

    /// Sets the attributes of a file from the one that it replaces.
    pub(super) fn modelled(&self, file: Replacement) -> Result<Replacement, Error> {
        let mut models = self.old.shards.iter().chain([&self.names.target]);
        match models.find(|name| self.path(name).is_file()) {
            Some(name) => Ok(file.modelled_on(&self.path(name))?),
            None => Ok(file),
        }
    }

    /// Switches to the new set, whose files have their final names: renames the index, and removes
    /// the replaced files.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        // The names of the files are on the disk before that of the index.
        self.sync()?;
        if let Some(index) = &mut self.index {
            index.appear()?;
        }
        self.stage = Stage::New;
        self.sync()?;
        // A file with the target's own name is also an old set.
        self.remove(&self.names.target)?;
        self.remove_superseded();
        Ok(())
    }

    /// Switches to a new set of one file. The index of the old set is removed, and then its files.
    pub(super) fn finish_single(mut self, file: Replacement) -> Result<(), Error> {
        let directory = file.directory().to_owned();
        let mut file = self.modelled(file)?;
        file.settle(self.durability)?;
        file.appear()?;
        self.stage = Stage::New;
        if self.durability == Durability::Data {
            files::sync_directory(&directory)?;
        }
        if self.old.index.is_some() {
            self.remove(&self.names.index())?;
            self.sync()?;
        }
        self.remove_superseded();
        Ok(())
    }

    /// Removes a file that the new set has replaced.
    fn remove(&self, name: &str) -> Result<(), Error> {
        let path = self.path(name);
        is_gone(fs::remove_file(&path)).map_err(|error| Error::io("remove", &path, error))
    }

    fn sync(&self) -> Result<(), Error> {
        if self.durability == Durability::Data {
            files::sync_directory(&self.directory)?;
        }
        Ok(())
    }

    /// Removes the files of the old set. Failures do not affect the save.
    fn remove_superseded(&mut self) {
        let old = std::mem::take(&mut self.old.shards);
        if self.remove_unnamed(old.into_iter().collect()) {
            self.stage = Stage::Done;
        }
    }

    /// Removes files that no index in the directory names; returns true if none of them is left. If
    /// one of the indexes cannot be read, all stay.
    fn remove_unnamed(&self, mut doomed: HashSet<String>) -> bool {
        if doomed.is_empty() {
            return true;
        }
        let Some(named) = self.named() else { return false };
        doomed.retain(|name| !named.contains(name));
        remove_all(doomed.iter().map(|name| self.path(name)))
    }

    /// Returns the files that the indexes in the directory name; `None` if one of them cannot be
    /// read.
    fn named(&self) -> Option<HashSet<String>> {
        let mut named = HashSet::new();
        for entry in fs::read_dir(&self.directory).ok()? {
            let name = entry.ok()?.file_name();
            if !name.to_str().is_some_and(names_files) {
                continue;
            }
            let path = self.directory.join(&name);
            let file = match read_at::open(&path) {
                // Removed since it was listed.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                opened => opened.ok()?,
            };
            let index = Index::read(&file, &path).ok()?;
            named.extend(index.weights.into_iter().map(|(_, file)| file));
        }
        Some(named)
    }

    /// Removes leftovers of dead savers of this target: partial files, and files that only a
    /// saver's note names. Failures do not affect the save. The caller must not have a partial file
    /// yet: where locks fail, it would look like a leftover.
    pub(super) fn remove_leftovers(&self) {
        for name in listed(&self.directory) {
            let of = files::target_of(&name);
            if of.is_some_and(|of| of == self.names.target || self.names.has_shard(of)) {
                files::remove_if_dead(&self.path(&name));
            }
        }
        let index = self.names.index();
        for note in files::dead_partials(&self.directory, OsStr::new(&index)) {
            let named = match Index::read(&note.file, Path::new(&index)) {
                Ok(named) => self.own(named).collect(),
                // The note is incomplete, so no file had its final name yet.
                Err(Error::Corrupt { .. }) => HashSet::new(),
                Err(_) => continue,
            };
            if self.remove_unnamed(named) {
                note.remove();
            }
        }
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        let is_clean = match self.stage {
            Stage::Old => remove_all(self.appeared.drain(..)),
            Stage::New => false,
            Stage::Done => true,
        };
        if !is_clean {
            // The next save removes the files recorded there.
            self.index.take().into_iter().chain(self.note.take()).for_each(Replacement::leave);
        }
    }
}

/// Removes files; returns true if none of them is left.
fn remove_all(paths: impl Iterator<Item = PathBuf>) -> bool {
    let left = paths.filter(|path| is_gone(fs::remove_file(path)).is_err());
    left.count() == 0
}

/// Returns the names in a directory; empty if it cannot be listed.
fn listed(directory: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

/// Treats a file that another process removed as removed.
fn is_gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
