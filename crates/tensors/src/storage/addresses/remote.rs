//! Remote storage: buckets and the web, with one client each.

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

/// Identifies a bucket: kind of storage and name.
type Name = (Scheme, String);

/// The clients for one piece of work.
#[derive(Clone, Default)]
pub(in super::super) struct Remote {
    monitor: ProgressMonitor,
    /// Clients that were passed in, instead of those from the environment.
    given: HashMap<Name, Arc<dyn ObjectStore>>,
    open: Arc<Open>,
}

/// Clients and buckets created on demand.
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
    /// Returns clients without cached listings, for work that this monitor cancels.
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

    /// Returns a bucket; its client is created from the environment on first use.
    ///
    /// # Errors
    /// If the environment has no valid configuration for it.
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

    /// Returns the client for files of the web.
    ///
    /// # Errors
    /// If the client cannot be created.
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
