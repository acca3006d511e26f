//! Opening a bundle, listing its tensors, finding one.

use std::{
    collections::{HashMap, HashSet},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use serdes_files::{ReadAt, open_together};
use serdes_version_registry::{Consumer, VersionDef};

use super::{
    entry::{TensorEntry, display},
    error::BundleError,
    files::{FileSystem, Files, data_path, index_path},
    messages::Header,
};
use crate::{
    slice::is_slice_key,
    table::{Cursor, Table, TableDefect},
};

/// Number of data files that are kept open.
const OPEN_SHARDS: usize = 128;

/// A bundle (V2 checkpoint) that is open for reading, with the first 128 of its data files open.
/// Further files, and files in remote storage, are opened when a tensor in them is read.
#[derive(Debug)]
pub struct Bundle {
    files: Arc<dyn Files>,
    prefix: PathBuf,
    /// The file that the table is in.
    index: Arc<dyn ReadAt>,
    table: Table<Arc<dyn ReadAt>>,
    header: Header,
    /// Key of the entry that was read as the header; empty for a real header.
    header_key: Box<[u8]>,
    shards: Mutex<HashMap<i32, Arc<Shard>>>,
}

/// An open data file.
pub(super) struct Shard {
    pub(super) path: PathBuf,
    pub(super) source: Arc<dyn ReadAt>,
    pub(super) len: u64,
}

impl std::fmt::Debug for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shard")
            .field("path", &self.path)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// The tensors of a bundle, and the defects of its index.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Listing {
    /// The tensors in the order of the index.
    pub tensors: Vec<TensorEntry>,
    /// Defects; they do not affect the listed tensors.
    pub defects: Vec<BundleError>,
}

impl Bundle {
    /// Opens the bundle with `prefix` (the path of its index without `.index`) for the newest
    /// TensorFlow of the release table as the consumer.
    ///
    /// # Errors
    /// The reason why it cannot be opened; nothing else is checked.
    pub fn open(prefix: impl AsRef<Path>) -> Result<Self, BundleError> {
        Self::open_in(FileSystem, prefix)
    }

    /// Opens the bundle with `prefix` from `files`, like [`open`](Self::open).
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(
        files: impl Files + 'static,
        prefix: impl AsRef<Path>,
    ) -> Result<Self, BundleError> {
        let bundle = Self::open_any(files, prefix)?;
        bundle.check_versions(&super::default_consumer())?;
        Ok(bundle)
    }

    /// Opens a bundle from `files` without checking its versions; [`Bundle::check_versions`] does
    /// that.
    ///
    /// # Errors
    /// The reason why it cannot be opened.
    pub fn open_any(
        files: impl Files + 'static,
        prefix: impl AsRef<Path>,
    ) -> Result<Self, BundleError> {
        Self::open_holding(Arc::new(files), prefix.as_ref(), |index| !index.answers_late())
    }

    /// Like [`open_any`](Self::open_any), for callers that will read the data: the reads see the
    /// opened bundle even if another one replaces it meanwhile.
    ///
    /// # Errors
    /// As [`open_any`](Self::open_any).
    pub fn open_for_data(
        files: impl Files + 'static,
        prefix: impl AsRef<Path>,
    ) -> Result<Self, BundleError> {
        Self::open_holding(Arc::new(files), prefix.as_ref(), |_| true)
    }

    /// Opens a bundle, and also its data files if `holds` returns true for the index: open files
    /// can be read to the end even if the bundle is replaced.
    fn open_holding(
        files: Arc<dyn Files>,
        prefix: &Path,
        holds: impl Fn(&dyn ReadAt) -> bool,
    ) -> Result<Self, BundleError> {
        let path = index_path(prefix);
        let index = |anew| {
            let opened = if anew { files.open_anew(&path) } else { files.open(&path) };
            opened.map_err(|source| match source.kind() {
                io::ErrorKind::NotFound => BundleError::IndexMissing { path: path.clone() },
                _ => BundleError::Io { path: path.clone(), source },
            })
        };
        let open = |source: Arc<dyn ReadAt>| {
            let bundle = Self::open_index(Arc::clone(&files), prefix.to_owned(), source)?;
            if holds(&*bundle.index) {
                bundle.hold_data();
            }
            Ok(bundle)
        };
        open_together(index, open, |bundle| !holds(&*bundle.index))
    }

    fn open_index(
        files: Arc<dyn Files>,
        prefix: PathBuf,
        source: Arc<dyn ReadAt>,
    ) -> Result<Self, BundleError> {
        let path = index_path(&prefix);
        let index = Arc::clone(&source);
        let table = match Table::open(source) {
            Ok(table) => table,
            Err(source) => return Err(BundleError::Index { path, source }),
        };
        let mut cursor = table.cursor();
        cursor.seek(b"");
        if !cursor.valid() {
            return Err(match cursor.take_defects().into_iter().next() {
                Some(source) => BundleError::HeaderBlock { path, source },
                None => BundleError::NoHeader { path },
            });
        }
        // The first entry is read as the header, as in TensorFlow.
        let header =
            Header::parse(cursor.value()).map_err(|source| BundleError::Header { path, source })?;
        let header_key = cursor.key().into();
        drop(cursor);
        Ok(Self { files, prefix, index, table, header, header_key, shards: Mutex::default() })
    }

    /// Opens the data files, up to the limit. A missing file is reported when it is read.
    fn hold_data(&self) {
        let mut shards = self.shards.lock().unwrap_or_else(PoisonError::into_inner);
        let most = i32::try_from(OPEN_SHARDS).unwrap_or(i32::MAX);
        for number in 0..self.header.num_shards.min(most) {
            let path = data_path(&self.prefix, number, self.header.num_shards);
            let Ok(source) = self.files.open(&path) else { continue };
            let Ok(len) = source.size() else { continue };
            shards.insert(number, Arc::new(Shard { path, source, len }));
        }
    }

    /// Checks that `consumer` may read this bundle.
    ///
    /// # Errors
    /// [`BundleError::Version`].
    pub fn check_versions(&self, consumer: &Consumer) -> Result<(), BundleError> {
        let check = consumer.check(&self.header.versions);
        check.map_err(|source| BundleError::Version { path: index_path(&self.prefix), source })
    }

    /// Returns the prefix that the bundle was opened with.
    #[must_use]
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// Returns the header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the versions in the header.
    #[must_use]
    pub fn versions(&self) -> &VersionDef {
        &self.header.versions
    }

    /// Returns the table that is the index.
    #[must_use]
    pub fn table(&self) -> &Table<Arc<dyn ReadAt>> {
        &self.table
    }

    /// Returns the defects of the header that do not keep the bundle from being opened.
    #[must_use]
    pub fn header_defects(&self) -> Vec<BundleError> {
        let path = index_path(&self.prefix);
        if !self.header_key.is_empty() {
            return vec![BundleError::HeaderMissing { path, name: display(&self.header_key) }];
        }
        if !self.header.has_versions {
            return vec![BundleError::NoVersions { path }];
        }
        Vec::new()
    }

    /// Returns every tensor of the index, in its order, and the defects met. Pieces of partitioned
    /// tensors are not listed; a tensor whose entry was read as the header is not listed either, as
    /// in TensorFlow.
    #[must_use]
    pub fn tensors(&self) -> Listing {
        let mut listing = Listing::default();
        let path = index_path(&self.prefix);
        let mut pieces: Vec<Box<[u8]>> = Vec::new();
        let mut previous: Vec<u8> = Vec::new();
        let mut names = 0u64;
        let limit = self.table.file_len().saturating_mul(64).saturating_add(16 << 20);
        let mut cursor = self.table.cursor();
        cursor.first();
        previous.extend_from_slice(cursor.key());
        cursor.advance();
        while cursor.valid() {
            let key = cursor.key();
            let order = key.cmp(&previous);
            if order.is_le() {
                let key = key.into();
                let defect = if order.is_eq() {
                    TableDefect::DuplicateKey { key }
                } else {
                    TableDefect::KeyOrder { key }
                };
                listing.defects.push(BundleError::TableDefect { path: path.clone(), defect });
            }
            previous.clear();
            previous.extend_from_slice(key);
            names = names.saturating_add(key.len() as u64);
            if names > limit {
                listing.defects.push(BundleError::TooManyNames { limit });
                break;
            }
            if is_slice_key(key) {
                pieces.push(key.into());
            } else {
                match TensorEntry::parse(key, cursor.value()) {
                    Ok(entry) => listing.tensors.push(entry),
                    // A repeated key of the header was reported already, and no tensor is lost.
                    Err(_) if key.is_empty() => {}
                    Err(defect) => listing.defects.push(defect),
                }
            }
            cursor.advance();
        }
        listing.defects.extend(cursor.take_defects().into_iter().map(|source| {
            BundleError::TableDefect { path: path.clone(), defect: TableDefect::Block(source) }
        }));
        if !pieces.is_empty() {
            listing.defects.extend(orphans(&listing.tensors, &pieces));
        }
        listing
    }

    /// Returns the entry of the tensor with `name`.
    ///
    /// # Errors
    /// If there is none, or its entry does not parse, or its shape is impossible.
    pub fn tensor(&self, name: impl AsRef<[u8]>) -> Result<TensorEntry, BundleError> {
        self.find(&mut self.table.cursor(), name.as_ref())
    }

    /// Returns true if some tensor has a name that begins with `prefix`.
    pub fn has_prefix(&self, prefix: &[u8]) -> bool {
        let mut cursor = self.table.cursor();
        cursor.seek(prefix);
        cursor.valid() && cursor.key().starts_with(prefix)
    }

    /// Like `tensor`, with a cursor that keeps its block between searches.
    pub fn find(
        &self,
        cursor: &mut Cursor<'_, Arc<dyn ReadAt>>,
        key: &[u8],
    ) -> Result<TensorEntry, BundleError> {
        cursor.take_defects();
        cursor.seek(key);
        if !cursor.valid() || cursor.key() != key {
            let name = display(key);
            return Err(match cursor.take_defects().into_iter().next() {
                Some(source) if !cursor.valid() => BundleError::Lookup { name, source },
                _ => BundleError::TensorNotFound { name },
            });
        }
        let entry = TensorEntry::parse(key, cursor.value())?;
        entry.checked_count()?;
        Ok(entry)
    }

    /// Returns the data file that holds an entry.
    pub(super) fn shard(&self, entry: &TensorEntry) -> Result<Arc<Shard>, BundleError> {
        let number = entry.raw.shard;
        let mut shards = self.shards.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shard) = shards.get(&number) {
            return Ok(Arc::clone(shard));
        }
        let path = data_path(&self.prefix, number, self.header.num_shards);
        let source = self.files.open(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound if self.is_replaced() => {
                let reason = "another checkpoint took the place of this one while it was read; read it again";
                BundleError::Io { path: path.clone(), source: io::Error::other(reason) }
            }
            io::ErrorKind::NotFound => {
                BundleError::ShardMissing { name: entry.display(), path: path.clone() }
            }
            _ => BundleError::Io { path: path.clone(), source },
        })?;
        let len = source.size().map_err(|source| BundleError::Io { path: path.clone(), source })?;
        let shard = Arc::new(Shard { path, source, len });
        if shards.len() >= OPEN_SHARDS
            && let Some(other) = shards.keys().next().copied()
        {
            shards.remove(&other);
        }
        shards.insert(number, Arc::clone(&shard));
        Ok(shard)
    }

    /// Returns true if the index at the prefix was replaced after it was opened.
    fn is_replaced(&self) -> bool {
        let now = self.files.open_anew(&index_path(&self.prefix));
        let (now, then) = (now.ok().and_then(|index| index.stamp()), self.index.stamp());
        now.zip(then).is_some_and(|(now, then)| now != then)
    }
}

/// Returns the pieces to which no tensor refers.
fn orphans(tensors: &[TensorEntry], pieces: &[Box<[u8]>]) -> Vec<BundleError> {
    let mut referred = HashSet::new();
    for tensor in tensors {
        for slice in tensor.raw.slices.iter().filter_map(|slice| slice.check().ok()) {
            referred.insert(slice.key(&tensor.key));
        }
    }
    let orphans = pieces.iter().filter(|piece| !referred.contains(piece.as_ref()));
    orphans.map(|piece| BundleError::OrphanPiece { key: display(piece) }).collect()
}
