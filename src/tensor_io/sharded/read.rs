//! Reading tensors out of the files that an index names.

use std::{
    collections::{HashMap, HashSet},
    io::Read,
    path::{Path, PathBuf},
};

use super::{
    super::{Error, Listing, Source, form},
    KIND,
    index::Index,
};
use crate::storage::Storage;

/// Names that a message lists.
const LISTED: usize = 5;

/// The files of an index as one source.
pub(in super::super) struct ShardedSource {
    path: PathBuf,
    shards: Vec<Box<dyn Source>>,
    listing: Listing,
    /// The shard of each tensor, and the position there.
    places: Vec<(usize, usize)>,
    /// Where the tensors of each shard begin.
    begins: Vec<usize>,
}

impl ShardedSource {
    /// Opens all files of the index at a path, each of whose tensors the index names and no other.
    ///
    /// # Errors
    /// If a file is not there, or tensors are missing, doubled, or not in the index: they are
    /// named.
    pub(in super::super) fn open(storage: &Storage, path: &Path) -> Result<Self, Error> {
        let index = Index::read(storage, path)?;
        let mut names = HashSet::new();
        let files: Vec<&str> = index
            .weights
            .iter()
            .map(|(_, file)| &**file)
            .filter(|file| names.insert(*file))
            .collect();
        let mut source = Self {
            path: path.to_owned(),
            shards: Vec::with_capacity(files.len()),
            listing: Listing::default(),
            places: Vec::new(),
            begins: Vec::new(),
        };
        for file in &files {
            source.add(form::open_shard(storage, &path.with_file_name(file))?);
        }
        source.compare(&index, &files)?;
        Ok(source)
    }

    fn add(&mut self, shard: Box<dyn Source>) {
        let number = self.shards.len();
        let listing = &mut self.listing;
        self.begins.push(listing.tensors.len());
        listing.tensors.extend_from_slice(shard.tensors());
        self.places.extend((0..shard.tensors().len()).map(|position| (number, position)));
        listing.refused.extend_from_slice(shard.refused());
        listing.metadata = listing.metadata.take().or_else(|| shard.metadata().clone());
        self.shards.push(shard);
    }

    /// Compares what the files hold with what the index says.
    fn compare(&self, index: &Index, files: &[&str]) -> Result<(), Error> {
        let numbers: HashMap<&str, usize> =
            files.iter().enumerate().map(|(number, file)| (*file, number)).collect();
        let (mut found, mut doubled) = (HashMap::new(), Vec::new());
        let mut note = |name: &str, shard: usize| {
            if found.insert(name.to_owned(), shard).is_some() {
                doubled.push(name.to_owned());
            }
        };
        for (number, shard) in self.shards.iter().enumerate() {
            shard.tensors().iter().for_each(|info| note(&info.name, number));
            shard.refused().iter().for_each(|refused| note(&refused.name, number));
        }
        let corrupt = |what: &str, names: &[String], expected| {
            let shown = names.iter().take(LISTED).map(|name| format!("{name:?}"));
            let shown = shown.collect::<Vec<_>>().join(", ");
            let more = names.len().saturating_sub(LISTED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            Err(Error::corrupt(&self.path, KIND, format!("{what}: {shown}{more}"), expected))
        };
        if !doubled.is_empty() {
            return corrupt("tensors in two files", &doubled, "each tensor in one file");
        }
        let is_there = |(name, file): &&(String, String)| {
            found.get(name).is_some_and(|shard| numbers.get(&**file) == Some(shard))
        };
        let missing: Vec<String> = index
            .weights
            .iter()
            .filter(|weight| !is_there(weight))
            .map(|(name, file)| format!("{name} in {file}"))
            .collect();
        if !missing.is_empty() {
            return corrupt("tensors that are not there", &missing, "all tensors of the index");
        }
        let named: HashSet<&str> = index.weights.iter().map(|(name, _)| &**name).collect();
        let mut besides: Vec<String> =
            found.into_keys().filter(|name| !named.contains(&**name)).collect();
        besides.sort();
        if !besides.is_empty() {
            return corrupt("tensors beside the index", &besides, "tensors that the index names");
        }
        Ok(())
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
        Some(self.begins.get(*shard)? + self.shards.get(*shard)?.alias_of(*place)?)
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
