//! Reads tensors from the files that an index names.

use std::{
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use serdes_files::{Files as _, ReadAt, Tree as _, open_together};

use super::{
    super::{Error, Listing, Source},
    KIND,
    index::Index,
    set::ShardSet,
};
use crate::storage::Storage;

/// The files of an index as one source.
pub(in super::super) struct ShardedSource {
    path: PathBuf,
    shards: Vec<Box<dyn Source>>,
    listing: Listing,
    /// Shard of each tensor, and its position there.
    places: Vec<(usize, usize)>,
    /// Position of each shard's tensors in the list; `None` for one that the index assigns to
    /// another shard.
    positions: Vec<Vec<Option<usize>>>,
}

impl ShardedSource {
    /// Opens all files of the index at a path of any storage. If the set is replaced meanwhile,
    /// opens the new one.
    ///
    /// # Errors
    /// If a file is missing or cannot be read, or tensors are missing or duplicated: the message
    /// names them.
    pub(in super::super) fn open(storage: &Storage, path: &Path) -> Result<Self, Error> {
        let shown = PathBuf::from(storage.name(path));
        let index = |anew| {
            let opened = if anew { storage.open_anew(path) } else { storage.open(path) };
            opened.map_err(|error| Error::io("open", &shown, error))
        };
        let open = |index: Arc<dyn ReadAt>| {
            Self::of(path, ShardSet::of(storage, path, &Index::read(&*index, &shown)?))
        };
        open_together(index, open, |_| false)
    }

    fn of(path: &Path, mut set: ShardSet) -> Result<Self, Error> {
        if !set.errors.is_empty() {
            return Err(set.errors.swap_remove(0));
        }
        let sources: Vec<_> = set.files.iter_mut().filter_map(|file| file.source.take()).collect();
        let mut source = Self {
            path: path.to_owned(),
            shards: Vec::with_capacity(sources.len()),
            listing: Listing::default(),
            places: Vec::new(),
            positions: Vec::with_capacity(sources.len()),
        };
        for shard in sources {
            source.add(shard, &set);
        }
        Ok(source)
    }

    /// Adds a shard, without the tensors that the index assigns to another one.
    fn add(&mut self, shard: Box<dyn Source>, set: &ShardSet) {
        let number = self.shards.len();
        let listing = &mut self.listing;
        let mut positions = Vec::with_capacity(shard.tensors().len());
        for (place, info) in shard.tensors().iter().enumerate() {
            let is_taken = set.is_taken(&info.name, number);
            positions.push(is_taken.then_some(listing.tensors.len()));
            if is_taken {
                listing.tensors.push(info.clone());
                self.places.push((number, place));
            }
        }
        let refused = shard.refused().iter().filter(|refused| set.is_taken(&refused.name, number));
        listing.refused.extend(refused.cloned());
        listing.left_out.extend_from_slice(shard.left_out());
        listing.passed_over.extend_from_slice(shard.passed_over());
        listing.metadata = listing.metadata.take().or_else(|| shard.metadata().clone());
        self.positions.push(positions);
        self.shards.push(shard);
    }

    fn place(&self, position: usize) -> Result<(&dyn Source, usize), Error> {
        let place = self.places.get(position);
        let found = place.and_then(|(shard, place)| Some((&**self.shards.get(*shard)?, *place)));
        found.ok_or_else(|| Error::io("read", &self.path, std::io::ErrorKind::NotFound.into()))
    }
}

impl Source for ShardedSource {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn listing(&self) -> &Listing {
        &self.listing
    }

    fn alias_of(&self, position: usize) -> Option<usize> {
        let (shard, place) = self.places.get(position)?;
        let alias = self.shards.get(*shard)?.alias_of(*place)?;
        *self.positions.get(*shard)?.get(alias)?
    }

    fn announce(&self, positions: &[usize]) {
        let mut own = vec![Vec::new(); self.shards.len()];
        for (shard, place) in positions.iter().filter_map(|position| self.places.get(*position)) {
            if let Some(own) = own.get_mut(*shard) {
                own.push(*place);
            }
        }
        for (shard, places) in self.shards.iter().zip(own) {
            shard.announce(&places);
        }
    }

    fn read(&self, position: usize) -> Result<Box<dyn Read + Send + '_>, Error> {
        let (shard, place) = self.place(position)?;
        shard.read(place)
    }

    fn strings(&self, position: usize) -> Result<Vec<Vec<u8>>, Error> {
        let (shard, place) = self.place(position)?;
        shard.strings(place)
    }

    fn compare_size(&self) -> Result<(), Error> {
        self.shards.iter().try_for_each(|shard| shard.compare_size())
    }

    fn compare_checksums(&self, go_on: &mut dyn FnMut(u64) -> bool) -> Vec<Error> {
        self.shards.iter().flat_map(|shard| shard.compare_checksums(go_on)).collect()
    }
}
