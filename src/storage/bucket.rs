//! A bucket as a tree of files.
//!
//! What a prefix holds is asked for once and kept: whoever looks at the files of a model asks for
//! each by its name. So a bucket is for one piece of work, and not for a process.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io,
    sync::{Arc, Mutex, PoisonError},
};

use object_store::{
    Error as StoreError, ObjectMeta, ObjectStore, ObjectStoreExt, path::Path as Key,
};

use crate::files::{
    EntryKind, ReadAt,
    object::{Driver, Object, RangeCache, Upload, UploadSink, system_error},
};

/// Prefixes of which it is kept what they hold.
const KEPT: usize = 256;

/// A bucket, and what was seen of it.
#[derive(Debug)]
pub(super) struct Bucket {
    pub(super) driver: Arc<Driver>,
    pub(super) store: Arc<dyn ObjectStore>,
    listings: Mutex<HashMap<String, Arc<Listing>>>,
}

/// What a prefix holds.
#[derive(Debug, Default)]
struct Listing {
    objects: BTreeMap<String, ObjectMeta>,
    prefixes: BTreeSet<String>,
}

impl Listing {
    fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.prefixes.is_empty()
    }
}

/// What lies at a key.
enum Found {
    Object(ObjectMeta),
    Prefix,
}

impl Bucket {
    pub(super) fn new(driver: Arc<Driver>, store: Arc<dyn ObjectStore>) -> Self {
        Self { driver, store, listings: Mutex::default() }
    }

    /// What lies at a key.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if nothing does, or what the store says.
    pub(super) fn look(&self, key: &Key) -> io::Result<EntryKind> {
        Ok(match self.find(key)? {
            Found::Object(_) => EntryKind::File,
            Found::Prefix => EntryKind::Directory,
        })
    }

    /// The object at a key, read by ranges.
    ///
    /// # Errors
    /// As [`look`](Self::look), and for a prefix.
    pub(super) fn open(&self, key: &Key) -> io::Result<Arc<dyn ReadAt>> {
        let Found::Object(meta) = self.find(key)? else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        let object = Object::described(Arc::clone(&self.driver), Arc::clone(&self.store), meta);
        Ok(Arc::new(RangeCache::new(object)?))
    }

    /// The names under a prefix.
    ///
    /// # Errors
    /// As [`look`](Self::look), and for an object.
    pub(super) fn list(&self, prefix: &Key) -> io::Result<Vec<String>> {
        let listing = self.listing(prefix)?;
        if listing.is_empty() && !prefix.is_root() {
            return Err(match self.find(prefix)? {
                Found::Object(_) => io::ErrorKind::NotADirectory.into(),
                Found::Prefix => io::ErrorKind::NotFound.into(),
            });
        }
        // Where an object has the name of a prefix, there is one entry of it.
        let names: BTreeSet<&String> = listing.objects.keys().chain(&listing.prefixes).collect();
        Ok(names.into_iter().cloned().collect())
    }

    /// Begins the object at a key.
    ///
    /// # Errors
    /// What the store says.
    pub(super) fn put(&self, key: Key) -> io::Result<(UploadSink, Upload)> {
        Upload::begin(Arc::clone(&self.driver), Arc::clone(&self.store), key)
    }

    /// Removes the object at a key.
    ///
    /// # Errors
    /// What the store says.
    pub(super) fn remove(&self, key: Key) -> io::Result<()> {
        let store = Arc::clone(&self.store);
        self.driver.run(async move { store.delete(&key).await })
    }

    fn find(&self, key: &Key) -> io::Result<Found> {
        if key.is_root() {
            return Ok(Found::Prefix);
        }
        let kept = |key: &str| self.listings().get(key).cloned();
        if kept(key.as_ref()).is_some_and(|listing| !listing.is_empty()) {
            return Ok(Found::Prefix);
        }
        let (parent, name) = key.as_ref().rsplit_once('/').unwrap_or(("", key.as_ref()));
        if let Some(listing) = kept(parent) {
            return match listing.objects.get(name) {
                Some(meta) => Ok(Found::Object(meta.clone())),
                None if listing.prefixes.contains(name) => Ok(Found::Prefix),
                None => Err(not_found()),
            };
        }
        let (store, asked) = (Arc::clone(&self.store), key.clone());
        // Which error it is decides what comes next.
        let answer = self.driver.run(async move { Ok(store.head(&asked).await) })?;
        match answer {
            Ok(meta) => Ok(Found::Object(meta)),
            Err(error @ StoreError::NotFound { .. }) => {
                // A bucket that is not there is not found in other words.
                let listing = self.listing(key)?;
                if listing.is_empty() { Err(system_error(error)) } else { Ok(Found::Prefix) }
            }
            Err(error) => Err(system_error(error)),
        }
    }

    fn listing(&self, prefix: &Key) -> io::Result<Arc<Listing>> {
        if let Some(listing) = self.listings().get(prefix.as_ref()) {
            return Ok(Arc::clone(listing));
        }
        let (store, asked) = (Arc::clone(&self.store), prefix.clone());
        let found = self.driver.run(async move {
            let prefix = (!asked.is_root()).then_some(&asked);
            store.list_with_delimiter(prefix).await
        })?;
        let mut listing = Listing::default();
        for meta in found.objects {
            // What is called as the prefix itself marks it, and is in no directory.
            let name = name_below(prefix, &meta.location);
            listing.objects.extend(name.map(|name| (name, meta)));
        }
        let names = found.common_prefixes.iter().filter_map(|found| name_below(prefix, found));
        listing.prefixes.extend(names);
        let listing = Arc::new(listing);
        let mut listings = self.listings();
        if listings.len() == KEPT {
            listings.clear();
        }
        listings.insert(prefix.as_ref().to_owned(), Arc::clone(&listing));
        Ok(listing)
    }

    fn listings(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Listing>>> {
        self.listings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_found() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "not found")
}

/// The name of a key directly below a prefix.
fn name_below(prefix: &Key, key: &Key) -> Option<String> {
    let rest = if prefix.is_root() {
        key.as_ref()
    } else {
        key.as_ref().strip_prefix(prefix.as_ref())?.strip_prefix('/')?
    };
    (!rest.is_empty() && !rest.contains('/')).then(|| rest.to_owned())
}
