//! The files of an index, opened as far as possible and compared with the index.
//!
//! Loaders read all tensors of the files that an index names. So a tensor that the index does not
//! name belongs to the set; if two files have a tensor, the file in the index takes precedence.

use std::{
    collections::{HashMap, HashSet},
    io,
    path::{Path, PathBuf},
};

use serdes_files::Tree;

use super::{
    super::{Error, Source, TensorInfo, open},
    KIND,
    index::Index,
};

/// Maximum number of names in a message.
const LISTED: usize = 5;

/// The files of an index, and the errors found in them.
pub struct ShardSet {
    /// The files that the index names, in its order.
    pub files: Vec<ShardFile>,
    /// Errors that prevent reading the set, in order.
    pub errors: Vec<Error>,
    /// Sorted names of tensors in files that the index does not name.
    pub besides: Vec<String>,
    /// Size of all tensors in bytes, from the index.
    pub total_size: Option<u64>,
    /// Number of the file to which the index assigns each tensor.
    places: HashMap<String, usize>,
}

/// A file that an index names.
pub struct ShardFile {
    /// Name of the file beside the index.
    pub name: String,
    /// Its path.
    pub path: PathBuf,
    /// Number of tensors that the index assigns to the file.
    pub named: usize,
    /// The opened file; `None` if it could not be opened.
    pub source: Option<Box<dyn Source>>,
}

impl ShardSet {
    /// Opens the files of the index at a path.
    ///
    /// # Errors
    /// If the index cannot be read. Errors of its files are in [`errors`](Self::errors).
    pub fn open(tree: &dyn Tree, path: &Path) -> Result<Self, Error> {
        let shown = PathBuf::from(tree.name(path));
        let file = tree.open(path).map_err(|error| Error::io("open", &shown, error))?;
        Ok(Self::of(tree, path, &Index::read(&*file, &shown)?))
    }

    /// Opens the files that an index at a path names.
    pub(super) fn of(tree: &dyn Tree, path: &Path, index: &Index) -> Self {
        let shown = PathBuf::from(tree.name(path));
        let (mut files, mut errors) = (Vec::new(), Vec::new());
        for (name, named) in index.files() {
            let file = path.with_file_name(name);
            let source =
                open::open_shard(tree, &file).map_err(|error| missing(error, &shown, named));
            let source = source.map_err(|error| errors.push(error)).ok();
            files.push(ShardFile { name: name.to_owned(), path: file, named, source });
        }
        let numbers: HashMap<&str, usize> =
            files.iter().enumerate().map(|(number, file)| (&*file.name, number)).collect();
        let place = |(name, file): &(String, String)| Some((name.clone(), *numbers.get(&**file)?));
        let places = index.weights.iter().filter_map(place).collect();
        let mut set =
            Self { files, errors, besides: Vec::new(), total_size: index.total_size, places };
        set.compare(index, &shown);
        set
    }

    /// Returns true if a reader of the set gets this file's tensor of the name.
    pub fn is_taken(&self, name: &str, file: usize) -> bool {
        self.places.get(name).is_none_or(|place| *place == file)
    }

    /// Returns the size of the tensors in files: with tensors that share their bytes counted once,
    /// and for each name. `None` if a size is unknown.
    pub fn sizes(&self) -> Option<(u64, u64)> {
        let (mut once, mut each) = (0_u64, 0_u64);
        for (number, file) in self.files.iter().enumerate() {
            let source = file.source.as_ref().filter(|source| source.refused().is_empty())?;
            for (position, info) in source.tensors().iter().enumerate() {
                if self.is_taken(&info.name, number) {
                    let bytes = file_bytes(info);
                    each = each.checked_add(bytes)?;
                    once += if source.alias_of(position).is_none() { bytes } else { 0 };
                }
            }
        }
        Some((once, each))
    }

    /// Compares the contents of the files with the index.
    fn compare(&mut self, index: &Index, shown: &Path) {
        let (mut found, mut doubled) = (HashSet::new(), Vec::new());
        let mut besides = HashSet::new();
        for (number, file) in self.files.iter().enumerate() {
            let Some(source) = &file.source else { continue };
            let names = source.tensors().iter().map(|info| &info.name);
            for name in names.chain(source.refused().iter().map(|refused| &refused.name)) {
                if !self.places.contains_key(name) {
                    if !besides.insert(name.clone()) {
                        doubled.push(name.clone());
                    }
                } else if self.is_taken(name, number) {
                    found.insert(&**name);
                }
            }
        }
        let is_open = |file: usize| self.files.get(file).is_some_and(|file| file.source.is_some());
        let absent: Vec<String> = index
            .weights
            .iter()
            .filter(|(name, _)| !found.contains(&**name))
            .filter(|(name, _)| self.places.get(name).is_some_and(|file| is_open(*file)))
            .map(|(name, file)| format!("{name} in {file}"))
            .collect();
        let corrupt = |what: String, expected| Error::corrupt(shown, KIND, what, expected);
        if !doubled.is_empty() {
            let found = format!("{} in two files: {}", count(doubled.len()), listed(&doubled));
            self.errors.push(corrupt(found, "each tensor in one file"));
        }
        if !absent.is_empty() {
            let verb = if absent.len() == 1 { "is" } else { "are" };
            let found =
                format!("{} that {verb} not there: {}", count(absent.len()), listed(&absent));
            self.errors.push(corrupt(found, "all tensors of the index"));
        }
        self.besides = besides.into_iter().collect();
        self.besides.sort_unstable();
    }
}

/// Returns the error for a missing file, with the number of tensors that the index assigns to it.
fn missing(error: Error, index: &Path, named: usize) -> Error {
    match error {
        Error::Io { action, path, source } if source.kind() == io::ErrorKind::NotFound => {
            let name = index.file_name().unwrap_or_default().to_string_lossy();
            let words = format!("it is not there, and {name} has {} in it", count(named));
            Error::io(action, &path, io::Error::new(io::ErrorKind::NotFound, words))
        }
        error => error,
    }
}

/// Returns the size of a tensor in a file that packs elements narrower than a byte.
fn file_bytes(info: &TensorInfo) -> u64 {
    match info.dtype.bits() {
        Some(bits @ 1..8) => info.elements().saturating_mul(bits.into()).div_ceil(8),
        _ => info.bytes,
    }
}

/// Formats a number of tensors.
pub fn count(tensors: usize) -> String {
    format!("{tensors} tensor{}", if tensors == 1 { "" } else { "s" })
}

/// Formats the first of some names, and the number of the others.
pub fn listed(names: &[String]) -> String {
    let shown = names.iter().take(LISTED).map(|name| format!("{name:?}"));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
