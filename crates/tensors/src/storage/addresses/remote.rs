//! Remote storage: buckets and the web, each with one client.

use std::{
    collections::HashMap,
    fmt, io,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use object_store::ObjectStore;
use serdes_files::{ProgressMonitor, object::Driver};

use super::{
    address::Scheme,
    bucket::{Bucket, Client},
    stores,
    web::Web,
};

/// A bucket's name among those of all storage.
type Name = (Scheme, String);

/// The clients of one piece of work.
#[derive(Clone, Default)]
pub(in super::super) struct Remote {
    monitor: ProgressMonitor,
    /// Clients of buckets that were given, in place of those that the environment describes.
    given: HashMap<Name, Arc<dyn ObjectStore>>,
    open: Arc<Open>,
}

/// Clients and buckets that were made on demand.
#[derive(Default)]
struct Open {
    driver: OnceLock<Arc<Driver>>,
    buckets: Mutex<HashMap<Name, Arc<Bucket>>>,
    web: OnceLock<Arc<Web>>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").finish_non_exhaustive()
    }
}

impl Remote {
    /// Clients without listings, for work that this monitor cancels.
    pub(in super::super) fn watched(&self, monitor: ProgressMonitor) -> Self {
        Self { monitor, given: self.given.clone(), open: Arc::default() }
    }

    /// Sets the client for a bucket.
    pub(super) fn given(
        mut self,
        scheme: Scheme,
        bucket: String,
        store: Arc<dyn ObjectStore>,
    ) -> Self {
        self.given.insert((scheme, bucket), store);
        Self { open: Arc::default(), ..self }
    }

    /// Returns a bucket, with the client that was made of the environment when it was asked for
    /// first.
    ///
    /// # Errors
    /// If the environment does not describe one.
    pub(super) fn bucket(&self, scheme: Scheme, bucket: &str) -> io::Result<Arc<Bucket>> {
        let name = (scheme, bucket.to_owned());
        let mut buckets = self.open.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = buckets.get(&name) {
            return Ok(Arc::clone(known));
        }
        let client = match self.given.get(&name) {
            Some(store) => Client { store: Arc::clone(store), pages: None },
            None => stores::connect(scheme, bucket)?,
        };
        let made = Arc::new(Bucket::new(self.driver()?, client));
        buckets.insert(name, Arc::clone(&made));
        Ok(made)
    }

    /// Files of the web.
    ///
    /// # Errors
    /// If there can be no client.
    pub(super) fn web(&self) -> io::Result<Arc<Web>> {
        if let Some(web) = self.open.web.get() {
            return Ok(Arc::clone(web));
        }
        let web = Arc::new(Web::new(self.driver()?, self.monitor.clone())?);
        Ok(Arc::clone(self.open.web.get_or_init(|| web)))
    }

    fn driver(&self) -> io::Result<Arc<Driver>> {
        if let Some(driver) = self.open.driver.get() {
            return Ok(Arc::clone(driver));
        }
        let driver = Arc::new(Driver::new(self.monitor.clone())?);
        Ok(Arc::clone(self.open.driver.get_or_init(|| driver)))
    }
}
