//! The state of a server: its arrays by name, for later sessions and for the file.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serdes::{codec::Status, ifrt::AttributeMap};
use serdes_device_state::{Error, ProgressMonitor, Reader};
use tokio::sync::{OwnedMutexGuard, watch};

use super::{
    identity::FileIdentity,
    kept::{Contents, Given, LiveArrays, StateOptions},
    kept_array::{Kept, NameReservation},
    kept_arrays::KeptArrays,
    lock::Lock,
    names::{Claims, NamedArrays, Names, OWNER, Owner, foreign, name_bytes, number_of},
    plan::{self, Before, Plan, alive},
    restore::{RestoreBudget, restore},
    write::{self, Pulse},
};
use crate::{
    ProxyError,
    server::{
        arrays::{Array, Devices},
        budget::Budget,
        metrics::Gauges,
    },
    status::status,
};

/// Longest time that a new session waits for a name that is still claimed: a client may reconnect
/// before its old session is closed.
const NAME_TIMEOUT: Duration = Duration::from_secs(2);

/// The state of a server.
#[derive(Debug)]
pub(crate) struct State {
    options: Option<StateOptions>,
    /// Lock against other servers, from the start to the stop.
    lock: Mutex<Option<Arc<Lock>>>,
    contents: Mutex<Contents>,
    claims: Mutex<Claims>,
    /// Budget for names in the file's header that belong to no client.
    name_bytes: Budget,
    /// Changes when a session releases its names.
    released: watch::Sender<u64>,
    /// Serializes saves.
    pub(super) saving: Arc<tokio::sync::Mutex<()>>,
    /// Serializes replacements, so that many of them leave processors to others.
    replacing: Arc<tokio::sync::Mutex<()>>,
    /// Monitor of the current save.
    monitor: Mutex<ProgressMonitor>,
    pub(super) pulse: Arc<Pulse>,
    /// True once nothing more is to be saved.
    pub(super) abandoned: watch::Sender<bool>,
    gauges: Arc<Gauges>,
}

impl State {
    /// Opens the state of `options`, if its file exists; an empty state otherwise.
    ///
    /// # Errors
    /// [`ProxyError::Configuration`] if no state can be written there, or another server uses it;
    /// [`ProxyError::State`] if the file cannot be read, or its arrays do not fit on the devices.
    pub(crate) fn open(
        options: Option<StateOptions>,
        devices: &Devices,
        gauges: &Arc<Gauges>,
        budget: &RestoreBudget,
    ) -> Result<Self, ProxyError> {
        // Resolve the path once: the locked place is the one that is written, even if links or the
        // working directory change.
        let options = options
            .map(|options| StateOptions { path: serdes_files::resolve(&options.path), ..options });
        let mut contents = Contents::default();
        let mut lock = None;
        if let Some(options) = &options {
            write::try_place(options)?;
            lock = Some(Arc::new(Lock::take(&options.path, options.previous)?));
            contents = read(options, devices, gauges, budget)?;
        }
        let last = contents.arrays.keys().filter_map(|name| number_of(name)).max();
        Ok(Self {
            options,
            lock: Mutex::new(lock),
            claims: Mutex::new(Claims::after(last.unwrap_or(0))),
            contents: Mutex::new(contents),
            name_bytes: budget.name_bytes.clone(),
            released: watch::Sender::new(0),
            saving: Arc::default(),
            replacing: Arc::default(),
            monitor: Mutex::default(),
            pulse: Arc::default(),
            abandoned: watch::Sender::new(false),
            gauges: Arc::clone(gauges),
        })
    }

    pub(super) fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn monitor(&self) -> MutexGuard<'_, ProgressMonitor> {
        self.monitor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the lock, which a stopped server takes again for a save.
    fn lock(&self, options: &StateOptions) -> Result<Arc<Lock>, ProxyError> {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        match &*lock {
            Some(lock) => Ok(Arc::clone(lock)),
            None => {
                let taken = Lock::take(&options.path, options.previous)?;
                Ok(Arc::clone(lock.insert(Arc::new(taken))))
            }
        }
    }

    /// Waits for the replacement of arrays in progress.
    pub(crate) async fn turn_to_replace(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.replacing).lock_owned().await
    }

    /// Releases the state to other servers, once a hanging save is over.
    pub(crate) fn release(&self) {
        *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns true if the state has a file.
    pub(crate) const fn is_kept(&self) -> bool {
        self.options.is_some()
    }

    /// Returns the names of a new session. Requested names are not in effect until
    /// [`grant`](Self::grant).
    pub(crate) fn names(&self, initialization: &AttributeMap, identity: Option<String>) -> Names {
        let contents = self.contents();
        let is_taken = |prefix: &str| {
            let begin = format!("{prefix}/");
            let mut from = contents.arrays.range(begin.clone()..);
            from.next().is_some_and(|(name, _)| name.starts_with(&begin))
        };
        let number = self.claims().take_number(is_taken);
        Names::new(number, initialization, identity)
    }

    /// Grants a session the names that its client requests, once no other session has them.
    ///
    /// # Errors
    /// ALREADY_EXISTS for names of another client, INVALID_ARGUMENT for two arrays of one name.
    pub(crate) async fn grant(&self, names: &Names) -> Result<(), Status> {
        if !self.is_kept() || !names.are_wished() || names.is_granted() {
            return Ok(());
        }
        let taken = |name: String| {
            status!(
                AlreadyExists,
                "`{}` is the name of another client's arrays in the state of this server; give yours another",
                name.escape_debug()
            )
        };
        let deadline = tokio::time::Instant::now() + NAME_TIMEOUT;
        let mut released = self.released.subscribe();
        loop {
            let held = {
                // No client stores arrays under the names between the two checks.
                let contents = self.contents();
                let of_another = foreign(names, |begin| {
                    let from = contents.arrays.range(begin.to_owned()..);
                    from.map(|(name, kept)| (name.as_str(), &kept.owner))
                });
                if let Some(name) = of_another {
                    return Err(taken(name));
                }
                self.claims().take(names)?
            };
            let Some(name) = held else {
                names.grant();
                return Ok(());
            };
            if tokio::time::timeout_at(deadline, released.changed()).await.is_err() {
                return Err(taken(name));
            }
        }
    }

    /// Returns the arrays of the state that a session may see, by name.
    pub(crate) fn arrays(&self, names: &Names) -> Vec<(String, Arc<Array>)> {
        let there = |(name, kept): (&String, &Kept)| {
            names.owner.may_read(&kept.owner).then_some(())?;
            Some((name.clone(), Arc::clone(kept.array.as_ref()?)))
        };
        self.contents().arrays.iter().filter_map(there).collect()
    }

    /// Removes an array that a client deletes from the state, if the state has it: under the name
    /// that the client has seen, or under the name that its session saves it with, chosen by the
    /// client or not.
    ///
    /// # Errors
    /// PERMISSION_DENIED if it belongs to another client.
    pub(crate) fn delete(
        &self,
        names: &Names,
        handle: u64,
        array: &Arc<Array>,
    ) -> Result<(), Status> {
        if !self.is_kept() {
            return Ok(());
        }
        let shown = names.shown().get(&handle).cloned();
        let name = shown.unwrap_or_else(|| names.name(handle).0);
        let mut contents = self.contents();
        // This name may belong to an earlier array, which this one has not replaced.
        if let Some(kept) = contents.arrays.get(&name).filter(|kept| kept.is(array)) {
            if !names.owner.may_delete(&kept.owner) {
                return Err(status!(
                    PermissionDenied,
                    "`{}` belongs to another client; it alone can take it out of the state",
                    name.escape_debug()
                ));
            }
            contents.arrays.remove(&name);
        }
        if let Some(deleted) = &mut contents.deleted {
            deleted.push((name, Arc::downgrade(array)));
        }
        Ok(())
    }

    /// Records that a session gives an array to a program. If the state has it under a name that
    /// the client knows, it leaves the state with the next save of the session's results.
    pub(crate) fn give(&self, names: &Names, handle: u64, array: &Arc<Array>) {
        /// Maximum number of recorded arrays during a save, which may contain them. Further ones
        /// stay in the state until a client deletes them.
        const MOST: usize = 1 << 16;
        // Arrays that other clients can see stay.
        if !self.is_kept() || names.shown().contains_key(&handle) {
            return;
        }
        let name = names.name(handle).0;
        let mut contents = self.contents();
        let has_it = contents.arrays.get(&name).is_some_and(|kept| kept.is(array));
        if has_it || contents.deleted.is_some() && contents.given.len() < MOST {
            let array = Arc::downgrade(array);
            contents.given.push(Given { session: names.number, name, array });
        }
    }

    /// Stores the named arrays of a session when it ends, and releases its names. `live` has its
    /// arrays by handle; `reserve` transfers the permits for the bytes of a name.
    pub(crate) fn keep(
        &self,
        names: &Names,
        live: Vec<(u64, Arc<Array>)>,
        mut reserve: impl FnMut(usize) -> NameReservation,
    ) {
        if self.is_kept() && names.is_granted() {
            let NamedArrays { owner, arrays, .. } = names.named(live);
            let chosen = arrays.into_iter().filter(|array| array.is_chosen);
            // Data that have not arrived by now never will.
            let chosen: Vec<_> = chosen.filter(|array| plan::parts(&array.array).is_ok()).collect();
            let mut contents = self.contents();
            for named in chosen {
                let saved = contents.arrays.get(&named.name).and_then(|kept| kept.saved.clone());
                let (owner, array) = (owner.clone(), Some(named.array));
                let reservation = reserve(name_bytes(&named.name, &owner));
                let _reservation = Some(Arc::new(reservation));
                let kept = Kept { owner, array, saved, _reservation };
                contents.arrays.insert(named.name, kept);
            }
        }
        self.claims().release(names);
        self.released.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Saves all arrays: `live` ones, and those without a session. Returns their number.
    ///
    /// # Errors
    /// [`ProxyError::State`] if the file cannot be written, or if an array cannot be read, after
    /// all others were saved; [`ProxyError::Configuration`] without a path.
    pub(crate) async fn save(
        self: &Arc<Self>,
        live: &Arc<dyn LiveArrays>,
        occasion: Occasion,
    ) -> Result<usize, ProxyError> {
        let Some(options) = self.options.clone() else {
            return Err(ProxyError::configuration(
                "the state",
                "none",
                "the server was started without a place for one; name a file when it is started",
            ));
        };
        let one = Arc::clone(&self.saving).lock_owned().await;
        let lock = self.lock(&options)?;
        let (state, live) = (Arc::clone(self), Arc::clone(live));
        let monitor = self.pulse.start();
        *self.monitor() = monitor.clone();
        let saved = tokio::task::spawn_blocking(move || {
            // Held until the save is over, even if the caller has stopped waiting.
            let _one = one;
            let saved = state.carry_out(&*live, &options, &monitor, occasion);
            lock.follow(&options.path);
            state.gauges.note_save(saved.is_ok());
            saved
        });
        saved.await.map_err(|error| {
            ProxyError::Status(status!(Internal, "saving failed without a word: {error}"))
        })?
    }

    /// Executes a save. Waits for devices and the disk.
    fn carry_out(
        &self,
        live: &dyn LiveArrays,
        options: &StateOptions,
        monitor: &ProgressMonitor,
        occasion: Occasion,
    ) -> Result<usize, ProxyError> {
        self.contents().deleted = Some(Vec::new());
        let written = self.write(live, options, monitor, occasion);
        let mut contents = self.contents();
        let deleted = contents.deleted.take().unwrap_or_default();
        let (plan, unreadable) = written?;
        let arrays = plan.len();
        if !plan.is_written_already {
            contents.note(plan, deleted, options, &self.name_bytes);
        }
        drop(contents);
        self.gauges.note_saved(arrays);
        unreadable.map_or(Ok(arrays), Err)
    }

    /// Writes the state; returns the error of the first array that could not be written, if there
    /// is one.
    fn write(
        &self,
        live: &dyn LiveArrays,
        options: &StateOptions,
        monitor: &ProgressMonitor,
        occasion: Occasion,
    ) -> Result<(Plan, Option<ProxyError>), ProxyError> {
        // Read before the state: a session that ends meanwhile moves its arrays to the state before
        // it drops them.
        let live = alive(live);
        let mut plan = Plan::new(live, Before::of(&self.contents()), options)?;
        plan.report_missing(&self.gauges);
        plan.is_written_already =
            occasion == Occasion::Stop && plan.is_what_the_file_has(&self.contents(), options);
        let unreadable = if plan.is_written_already {
            None
        } else {
            write::write(options, &mut plan, monitor, &self.pulse)?
        };
        Ok((plan, unreadable))
    }
}

/// The reason for a save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// A client or the operator requested it.
    Request,
    /// The server stops: an unchanged file need not be written again.
    Stop,
}

/// Reads the state from the file, if it exists, and restores its arrays to the devices.
fn read(
    options: &StateOptions,
    devices: &Devices,
    gauges: &Arc<Gauges>,
    budget: &RestoreBudget,
) -> Result<Contents, ProxyError> {
    let path = &options.path;
    let is_there = path.try_exists().map_err(|error| {
        ProxyError::configuration(
            "the place of the state",
            path.display().to_string(),
            format!("{error}; the server must be able to read it"),
        )
    })?;
    if !is_there {
        return Ok(Contents::default());
    }
    let reader = Reader::open(path)?;
    let mut owners = BTreeMap::new();
    let mut metadata = Vec::new();
    for (key, value) in reader.metadata().unwrap_or_default() {
        match key.strip_prefix(OWNER) {
            Some(name) => drop(owners.insert(name.to_owned(), Owner::from_text(value))),
            None => metadata.push((key.clone(), value.clone())),
        }
    }
    let mut arrays = KeptArrays::default();
    for tensor in reader.tensors() {
        let tensor = tensor?;
        let array = Arc::new(restore(&tensor, devices, gauges, budget)?);
        let name = tensor.name().to_owned();
        let owner = owners.remove(&name).unwrap_or_default();
        let saved = Some(Arc::downgrade(&array));
        let _reservation = Some(budget.name(&name, &owner));
        arrays.insert(name, Kept { owner, array: Some(array), saved, _reservation });
    }
    tracing::info!(path = %path.display(), arrays = arrays.len(), "state restored");
    budget.report();
    let identity = FileIdentity::of(path);
    let (file, given) = (Some(reader), Vec::new());
    Ok(Contents { arrays, file, identity, metadata, given, deleted: None })
}

impl From<Error> for ProxyError {
    fn from(error: Error) -> Self {
        Self::State(Box::new(error))
    }
}
