//! Sets of shards at an address, where there are no partial files and no locks.

use std::{
    collections::HashSet,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use serdes_files::{Files as _, Tree as _, read_at::read_arriving};

use super::{
    super::Error,
    index::{Index, names_files},
    names::SetNames,
};
use crate::storage::Storage;

/// The existing set at an address, before another one is uploaded.
pub(in super::super) struct RemoteSet {
    storage: Storage,
    to: PathBuf,
    names: SetNames,
    /// Contents of its index.
    pub(in super::super) index: Option<Vec<u8>>,
    /// Files of this set's names that the index names.
    shards: HashSet<String>,
    /// True if a file has a name of this set's files.
    pub(in super::super) is_taken: bool,
}

impl RemoteSet {
    /// Reads the existing set.
    pub(in super::super) fn look(storage: &Storage, to: &Path) -> Result<Self, Error> {
        let names = SetNames::of(to);
        let mut is_taken = false;
        if let Some(folder) = to.parent() {
            let failed = |error| Error::io("list", Path::new(&storage.name(folder)), error);
            let visited = storage.visit(folder, &mut |name| is_taken |= names.has_shard(name));
            visited.map_err(failed)?;
        }
        let (storage, to) = (storage.clone(), to.to_owned());
        let mut set = Self { storage, to, names, index: None, shards: HashSet::new(), is_taken };
        let path = set.index_path();
        let shown = PathBuf::from(set.storage.name(&path));
        let file = match set.storage.open_anew(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(set),
            Err(error) => return Err(Error::io("open", &shown, error)),
        };
        match Index::read(&*file, &shown) {
            Ok(index) => {
                let named = index.weights.into_iter().map(|(_, file)| file);
                set.shards = named.filter(|file| set.names.has_shard(file)).collect();
                let size = file.size();
                let text = size.and_then(|size| read_arriving(&*file, 0, size));
                set.index = Some(text.map_err(|error| Error::io("read", &shown, error))?);
            }
            // The files of a damaged index are unknown and stay.
            Err(Error::Corrupt { .. }) => set.index = Some(Vec::new()),
            Err(error) => return Err(error),
        }
        Ok(set)
    }

    /// Returns the path of the index.
    pub(in super::super) fn index_path(&self) -> PathBuf {
        self.to.with_file_name(self.names.index())
    }

    /// Removes the files of a set that the new files have replaced.
    ///
    /// # Errors
    /// If the index of the old set cannot be removed.
    pub(in super::super) fn remove_superseded(&self, new: &HashSet<String>) -> Result<(), Error> {
        let index = self.index_path();
        let old = match new.contains(&self.names.index()) {
            true => Some(&self.to).filter(|path| self.storage.has_file(path)),
            false => Some(&index).filter(|_| self.index.is_some()),
        };
        if let Some(old) = old {
            let failed = |error| Error::io("remove", Path::new(&self.storage.name(old)), error);
            self.storage.remove(old).map_err(failed)?;
        }
        let is_old = |name: &&String| !new.contains(*name);
        if self.shards.iter().any(|name| is_old(&name))
            && let Some(named) = self.named()
        {
            for name in self.shards.iter().filter(is_old).filter(|name| !named.contains(*name)) {
                // A remaining file is not read.
                let _ = self.storage.remove(&self.to.with_file_name(name));
            }
        }
        Ok(())
    }

    /// Returns the files that other indexes in the folder name; `None` if one of them cannot be
    /// read.
    fn named(&self) -> Option<HashSet<String>> {
        let mut indexes = Vec::new();
        let list = &mut |name: &str| indexes.extend(names_files(name).then(|| name.to_owned()));
        self.storage.visit(self.to.parent()?, list).ok()?;
        let mut named = HashSet::new();
        for name in indexes {
            let path = self.to.with_file_name(name);
            let file = match self.storage.open_anew(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                opened => opened.ok()?,
            };
            named
                .extend(Index::read(&*file, &path).ok()?.weights.into_iter().map(|(_, file)| file));
        }
        Some(named)
    }
}
