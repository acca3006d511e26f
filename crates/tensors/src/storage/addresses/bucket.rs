//! A bucket as a tree of files.
//!
//! The listing of a prefix is requested once and cached, unless it is long: code that reads a model
//! asks for each file by its name. So a bucket is used for one piece of work, not for a whole
//! process.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt, io,
    ops::ControlFlow,
    sync::{Arc, Mutex, PoisonError},
};

use object_store::{
    Error as StoreError, ListResult, ObjectMeta, ObjectStore, ObjectStoreExt,
    list::{PaginatedListOptions, PaginatedListStore},
    path::Path as Key,
};
use serdes_files::{
    EntryKind, ReadAt,
    object::{Driver, Object, RangeCache, Upload, UploadSink, system_error},
};

/// Maximum number of cached prefixes.
const KEPT: usize = 256;

/// Maximum number of cached entries of a prefix; longer listings are requested again.
const LONGEST: usize = 10_000;

/// The client of a bucket.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) store: Arc<dyn ObjectStore>,
    /// Paginated listing, if the store supports it; otherwise a prefix is listed at once.
    pub(super) pages: Option<Arc<dyn PaginatedListStore>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.store).finish()
    }
}

/// A bucket, with its cached listings.
#[derive(Debug)]
pub(super) struct Bucket {
    pub(super) driver: Arc<Driver>,
    pub(super) client: Client,
    listings: Mutex<HashMap<String, Arc<Listing>>>,
}

/// Listing of a prefix, or its beginning if it exceeds the limit.
#[derive(Debug, Default)]
struct Listing {
    objects: BTreeMap<String, ObjectMeta>,
    prefixes: BTreeSet<String>,
    is_long: bool,
}

impl Listing {
    fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.prefixes.is_empty()
    }

    fn add(&mut self, prefix: &Key, page: ListResult) {
        for meta in page.objects {
            // An object with the prefix itself as its name is a marker and no entry.
            let name = name_below(prefix, &meta.location);
            self.objects.extend(name.map(|name| (name, meta)));
        }
        let names = page.common_prefixes.iter().filter_map(|found| name_below(prefix, found));
        self.prefixes.extend(names);
        self.is_long = self.objects.len() + self.prefixes.len() > LONGEST;
    }
}

/// Kind of the entry at a key.
enum Found {
    Object(ObjectMeta),
    /// An object from a listing.
    Listed(ObjectMeta),
    Prefix,
}

impl Bucket {
    pub(super) fn new(driver: Arc<Driver>, client: Client) -> Self {
        Self { driver, client, listings: Mutex::default() }
    }

    /// Returns the kind of the entry at a key.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is no entry, or the store's error.
    pub(super) fn look(&self, key: &Key) -> io::Result<EntryKind> {
        Ok(match self.find(key)? {
            Found::Object(_) | Found::Listed(_) => EntryKind::File,
            Found::Prefix => EntryKind::Directory,
        })
    }

    /// Opens the object at a key for reading by ranges.
    ///
    /// # Errors
    /// As [`look`](Self::look); an error for a prefix.
    pub(super) fn open(&self, key: &Key) -> io::Result<Arc<dyn ReadAt>> {
        let (driver, store) = (Arc::clone(&self.driver), self.store());
        let object = match self.find(key)? {
            Found::Listed(meta) => Object::listed(driver, store, meta),
            Found::Object(meta) => Object::described(driver, store, meta),
            Found::Prefix => return Err(io::ErrorKind::IsADirectory.into()),
        };
        Ok(Arc::new(RangeCache::new(object)?))
    }

    /// Opens the current object at a key. If it differs from the cached one, the cache is cleared.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(super) fn open_anew(&self, key: &Key) -> io::Result<Arc<dyn ReadAt>> {
        let (driver, store) = (Arc::clone(&self.driver), self.store());
        let opened = Object::open(driver, store, key.clone());
        let (parent, name) = key.as_ref().rsplit_once('/').unwrap_or(("", key.as_ref()));
        let listing = self.listings().get(parent).cloned();
        let seen = listing.and_then(|listing| Some(Object::stamp_of(listing.objects.get(name)?)));
        if seen != opened.as_ref().ok().and_then(ReadAt::stamp) {
            self.listings().clear();
        }
        Ok(Arc::new(RangeCache::new(opened?)?))
    }

    /// Returns the names under a prefix.
    ///
    /// # Errors
    /// As [`look`](Self::look); an error for an object.
    pub(super) fn list(&self, prefix: &Key) -> io::Result<Vec<String>> {
        let listing = self.listing(prefix)?;
        if listing.is_empty() && !prefix.is_root() {
            return Err(match self.find(prefix)? {
                Found::Object(_) | Found::Listed(_) => io::ErrorKind::NotADirectory.into(),
                Found::Prefix => io::ErrorKind::NotFound.into(),
            });
        }
        if listing.is_long {
            let mut names = BTreeSet::new();
            self.visit(prefix, &mut |name| {
                names.insert(name.to_owned());
            })?;
            return Ok(names.into_iter().collect());
        }
        // If an object and a prefix have the same name, it is listed once.
        let names: BTreeSet<&String> = listing.objects.keys().chain(&listing.prefixes).collect();
        Ok(names.into_iter().cloned().collect())
    }

    /// Calls `visit` with each name under a prefix; one page of them is in memory at a time.
    ///
    /// # Errors
    /// The error that the store reports.
    pub(super) fn visit(&self, prefix: &Key, visit: &mut dyn FnMut(&str)) -> io::Result<()> {
        self.each_page(prefix, &mut |page| {
            let objects = page.objects.iter().map(|meta| &meta.location);
            let names = objects.chain(&page.common_prefixes);
            names.filter_map(|key| name_below(prefix, key)).for_each(|name| visit(&name));
            ControlFlow::Continue(())
        })
    }

    /// Calls back with the contents of a prefix, page by page, until told to stop.
    fn each_page(
        &self,
        prefix: &Key,
        take: &mut dyn FnMut(ListResult) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let Some(pages) = &self.client.pages else {
            let (store, prefix) = (self.store(), prefix.clone());
            let whole = self.driver.run(async move {
                let prefix = (!prefix.is_root()).then_some(&prefix);
                store.list_with_delimiter(prefix).await
            })?;
            let _ = take(whole);
            return Ok(());
        };
        let below = (!prefix.is_root()).then(|| format!("{prefix}/"));
        let mut token: Option<String> = None;
        loop {
            let (pages, below) = (Arc::clone(pages), below.clone());
            let options = PaginatedListOptions {
                delimiter: Some("/".into()),
                page_token: token.clone(),
                ..PaginatedListOptions::default()
            };
            let page = self
                .driver
                .run(async move { pages.list_paginated(below.as_deref(), options).await })?;
            if take(page.result).is_break() || page.page_token.is_none() {
                return Ok(());
            }
            if page.page_token == token {
                let reason = "the store gives the same page of a listing again and again";
                return Err(io::Error::other(reason));
            }
            token = page.page_token;
        }
    }

    /// Starts the upload of the object at a key.
    ///
    /// # Errors
    /// The error that the store reports.
    pub(super) fn put(&self, key: Key) -> io::Result<(UploadSink, Upload)> {
        Upload::begin(Arc::clone(&self.driver), self.store(), key)
    }

    /// Removes the object at a key.
    ///
    /// # Errors
    /// The error that the store reports.
    pub(super) fn remove(&self, key: Key) -> io::Result<()> {
        let store = self.store();
        self.driver.run(async move { store.delete(&key).await })
    }

    fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.client.store)
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
                Some(meta) => Ok(Found::Listed(meta.clone())),
                None if listing.prefixes.contains(name) => Ok(Found::Prefix),
                None => Err(not_found()),
            };
        }
        let (store, asked) = (self.store(), key.clone());
        // The kind of the error decides how to continue.
        let answer = self.driver.run(async move { Ok(store.head(&asked).await) })?;
        match answer {
            Ok(meta) => Ok(Found::Object(meta)),
            Err(error @ StoreError::NotFound { .. }) => {
                // A missing bucket gives another message than a missing object.
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
        let mut listing = Listing::default();
        self.each_page(prefix, &mut |page| {
            listing.add(prefix, page);
            if listing.is_long { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        let listing = Arc::new(listing);
        if listing.is_long {
            return Ok(listing);
        }
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

/// Returns the name of a key directly below a prefix.
fn name_below(prefix: &Key, key: &Key) -> Option<String> {
    let rest = if prefix.is_root() {
        key.as_ref()
    } else {
        key.as_ref().strip_prefix(prefix.as_ref())?.strip_prefix('/')?
    };
    (!rest.is_empty() && !rest.contains('/')).then(|| rest.to_owned())
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use object_store::{Result as StoreResult, list::PaginatedListResult, memory::InMemory};
    use serdes_files::ProgressMonitor;

    use super::*;

    /// Pages of one object each, by number; the last one names itself as the next page if the
    /// listing is endless.
    struct Pages {
        numbers: Range<usize>,
        endless: bool,
        asked: Mutex<Vec<Option<String>>>,
    }

    #[async_trait::async_trait]
    impl PaginatedListStore for Pages {
        async fn list_paginated(
            &self,
            prefix: Option<&str>,
            options: PaginatedListOptions,
        ) -> StoreResult<PaginatedListResult> {
            assert_eq!((prefix, options.delimiter.as_deref()), (Some("run/"), Some("/")));
            self.asked.lock().unwrap().push(options.page_token.clone());
            let number =
                options.page_token.map_or(self.numbers.start, |token| token.parse().unwrap());
            let meta = |location: String| ObjectMeta {
                location: Key::parse(location).unwrap(),
                last_modified: Default::default(),
                size: 0,
                e_tag: None,
                version: None,
            };
            let result = ListResult {
                common_prefixes: vec![Key::parse(format!("run/{number}.parts")).unwrap()],
                // The first object is the marker of the prefix itself.
                objects: vec![meta("run".to_owned()), meta(format!("run/{number}"))],
                extensions: Default::default(),
            };
            let last = number + 1 == self.numbers.end;
            let page_token = match (last, self.endless) {
                (true, true) => Some(number.to_string()),
                (true, false) => None,
                _ => Some((number + 1).to_string()),
            };
            Ok(PaginatedListResult { result, page_token })
        }
    }

    fn bucket(pages: Option<Arc<Pages>>) -> Bucket {
        let pages = pages.map(|pages| pages as Arc<dyn PaginatedListStore>);
        let client = Client { store: Arc::new(InMemory::new()), pages };
        Bucket::new(Arc::new(Driver::new(ProgressMonitor::new()).unwrap()), client)
    }

    fn pages(numbers: Range<usize>, endless: bool) -> Arc<Pages> {
        Arc::new(Pages { numbers, endless, asked: Mutex::default() })
    }

    #[test]
    fn a_prefix_is_visited_page_by_page() {
        let pages = pages(0..3, false);
        let bucket = bucket(Some(Arc::clone(&pages)));
        let mut names = Vec::new();
        bucket.visit(&Key::from("run"), &mut |name| names.push(name.to_owned())).unwrap();
        assert_eq!(names, ["0", "0.parts", "1", "1.parts", "2", "2.parts"]);
        let asked = pages.asked.lock().unwrap().clone();
        assert_eq!(asked, [None, Some("1".to_owned()), Some("2".to_owned())]);
    }

    #[test]
    fn a_store_that_repeats_itself_is_an_error_and_no_loop() {
        let bucket = bucket(Some(pages(0..2, true)));
        let error = bucket.visit(&Key::from("run"), &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("again and again"), "{error}");
    }

    #[test]
    fn of_a_long_prefix_it_is_not_kept_what_it_holds() {
        let pages = pages(0..LONGEST, false);
        let bucket = bucket(Some(Arc::clone(&pages)));
        assert_eq!(bucket.look(&Key::from("run")).unwrap(), EntryKind::Directory);
        // Half of the pages suffice to show that the listing is long.
        assert_eq!(pages.asked.lock().unwrap().len(), LONGEST / 2 + 1);
        assert_eq!(bucket.list(&Key::from("run")).unwrap().len(), 2 * LONGEST);
        assert!(bucket.listings().is_empty());
    }

    #[test]
    fn listing_without_pages_is_visited_too() {
        let bucket = bucket(None);
        let store = bucket.store();
        let put = async move { store.put(&Key::from("run/a"), vec![1].into()).await };
        bucket.driver.run(put).unwrap();
        let mut names = Vec::new();
        for prefix in ["run", "nothing"] {
            bucket.visit(&Key::from(prefix), &mut |name| names.push(name.to_owned())).unwrap();
        }
        assert_eq!(names, ["a"]);
    }
}
