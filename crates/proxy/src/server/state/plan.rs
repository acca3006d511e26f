//! Contents of the next state, and the sources of its arrays.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Weak},
    time::Duration,
};

use serdes::{codec::Status, ifrt::IndexDomain};
use serdes_device_state::{Error, Reader, Tensor};
use tokio::runtime::Handle;

use super::{
    identity::FileIdentity,
    kept::{Contents, Given, LiveArrays, StateOptions},
    kept_array::{Kept, NameReservation},
    names::{NamedArray, NamedArrays, OWNER, Owner},
};
use crate::{
    ProxyError,
    server::{
        arrays::{Array, Memory},
        budget::Budget,
        metrics::Gauges,
    },
};

/// Shards that cover a whole array, each part once.
pub(crate) type Parts = Vec<(Arc<Memory>, IndexDomain)>;

/// Source of an array's bytes.
pub(crate) enum Source {
    Memory {
        array: Arc<Array>,
        parts: Parts,
    },
    /// A tensor of the previous state.
    File(Tensor),
}

/// An array of the next state.
pub(crate) struct Planned {
    owner: Owner,
    pub(crate) source: Source,
    /// True if the state had an array of this name when the plan was made; `before` is that array,
    /// if it was in memory.
    known: bool,
    before: Option<Arc<Array>>,
}

/// The reason why an array cannot be saved now.
pub(crate) enum Missing {
    /// Its data have not arrived.
    NotYet,
    /// It could not be created.
    Failed(Status),
}

/// Contents of a state before it is saved.
pub(crate) struct Before {
    arrays: BTreeMap<String, Kept>,
    file: Option<Reader>,
    metadata: Vec<(String, String)>,
    given: Vec<Given>,
}

impl Before {
    pub(crate) fn of(contents: &Contents) -> Self {
        let (arrays, file) = (BTreeMap::clone(&contents.arrays), contents.file.clone());
        let (metadata, given) = (contents.metadata.clone(), contents.given.clone());
        Self { arrays, file, metadata, given }
    }
}

/// Returns the live arrays of the sessions, oldest session first: arrays of younger sessions are
/// newer.
pub(crate) fn alive(live: &dyn LiveArrays) -> Vec<NamedArrays> {
    let mut live = live.live();
    settle(&live);
    live.sort_unstable_by_key(|session| session.number);
    live
}

/// A plan for the next state.
pub(crate) struct Plan {
    pub(crate) arrays: BTreeMap<String, Planned>,
    missing: Vec<(String, Missing)>,
    /// Arrays whose bytes turned out to be unreadable.
    dropped: Vec<String>,
    /// Arrays that were given to programs, and are left out because the results are here.
    given: Vec<Given>,
    /// The previous state, for arrays that are only there.
    file: Option<Reader>,
    /// Names of arrays that are in both the file and memory.
    in_file: HashSet<String>,
    metadata: Vec<(String, String)>,
    /// True if the file has exactly these arrays.
    pub(crate) is_written_already: bool,
}

impl Plan {
    /// # Errors
    /// If the previous state is needed and cannot be read.
    pub(crate) fn new(
        live: Vec<NamedArrays>,
        before: Before,
        options: &StateOptions,
    ) -> Result<Self, ProxyError> {
        let Before { arrays: kept, mut file, metadata, given } = before;
        if file.is_none() && kept.values().any(|kept| kept.saved.is_some()) {
            file = Some(Reader::open(&options.path)?);
        }
        let mut plan = Self {
            arrays: BTreeMap::new(),
            missing: Vec::new(),
            dropped: Vec::new(),
            given: Vec::new(),
            in_file: HashSet::new(),
            file,
            metadata,
            is_written_already: false,
        };
        for (name, kept) in kept {
            plan.add_kept(name, kept)?;
        }
        let mut there = BTreeMap::new();
        for session in live {
            let names = session.arrays.iter().map(|array| array.name.clone()).collect();
            there.insert(session.number, names);
            for array in session.arrays {
                plan.add_live(array, &session.owner);
            }
        }
        plan.leave_out(given, &there);
        Ok(plan)
    }

    /// Leaves out arrays that sessions have given to programs. `live` has the sessions' current
    /// arrays: if a session has none, or one is not available, the given array may be the last
    /// version.
    fn leave_out(&mut self, given: Vec<Given>, live: &BTreeMap<u64, HashSet<String>>) {
        if !self.missing.is_empty() {
            return;
        }
        for given in given {
            let own = live.get(&given.session).filter(|own| !own.is_empty());
            // A new array of the same name is a different one.
            if own.is_some_and(|own| !own.contains(&given.name)) {
                self.arrays.remove(&given.name);
                self.given.push(given);
            }
        }
    }

    fn add_kept(&mut self, name: String, kept: Kept) -> Result<(), ProxyError> {
        if kept.saved.is_some() {
            self.in_file.insert(name.clone());
        }
        let source = match &kept.array {
            None => self.in_file_before(&name)?,
            Some(array) => match parts(array) {
                Ok(parts) => Some(Source::Memory { array: Arc::clone(array), parts }),
                Err(_) => self.in_file_before(&name)?,
            },
        };
        if let Some(source) = source {
            let (owner, before) = (kept.owner, kept.array);
            self.arrays.insert(name, Planned { owner, source, known: true, before });
        }
        Ok(())
    }

    fn add_live(&mut self, live: NamedArray, owner: &Owner) {
        match parts(&live.array) {
            Ok(parts) => {
                let source = Source::Memory { array: live.array, parts };
                let older = self.arrays.remove(&live.name);
                let known = older.as_ref().is_some_and(|older| older.known);
                let before = older.and_then(|older| older.before);
                let planned = Planned { owner: owner.clone(), source, known, before };
                self.arrays.insert(live.name, planned);
            }
            // If the state already has an array of this name, that one stays.
            Err(missing) => self.missing.push((live.name, missing)),
        }
    }

    fn in_file_before(&self, name: &str) -> Result<Option<Source>, Error> {
        match &self.file {
            Some(file) if self.in_file.contains(name) => {
                file.tensor(name).map(Source::File).map(Some)
            }
            _ => Ok(None),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.arrays.len()
    }

    /// Reports the arrays that are left out, and their number.
    pub(crate) fn report_missing(&self, gauges: &Gauges) {
        gauges.note_left_out(self.missing.len());
        for (name, missing) in &self.missing {
            match missing {
                Missing::NotYet => tracing::debug!(name, "left out: its data have not arrived"),
                Missing::Failed(status) => {
                    tracing::debug!(name, code = %status.code(), reason = status.message(), "left out: it could not be made");
                }
            }
        }
        if let Some((first, _)) = self.missing.first() {
            tracing::warn!(
                arrays = self.missing.len(),
                first,
                "left out of the state: arrays whose data have not arrived or that could not be made"
            );
        }
    }

    /// Returns true if the file has exactly these arrays, at the requested versions.
    pub(crate) fn is_what_the_file_has(&self, contents: &Contents, options: &StateOptions) -> bool {
        let is_there = contents.identity.is_some()
            && contents.identity == FileIdentity::of(&options.path)
            && contents.file.as_ref().is_some_and(|file| {
                file.len() == self.arrays.len()
                    && file.format() == options.versions.container().number()
                    && file.ifrt_version() == options.versions.specs().number()
            });
        is_there
            && self.arrays.iter().all(|(name, planned)| match &planned.source {
                Source::File(_) => true,
                Source::Memory { array, .. } => {
                    let saved = contents.arrays.get(name).and_then(|kept| kept.saved.as_ref());
                    saved.is_some_and(|saved| saved.as_ptr() == Arc::as_ptr(array))
                }
            })
    }

    /// Replaces an unreadable array by the previous state's array of the same name, or by none.
    pub(crate) fn replace_unreadable(&mut self, name: &str) {
        let Some(planned) = self.arrays.remove(name) else { return };
        match (&planned.source, self.in_file_before(name)) {
            (Source::Memory { .. }, Ok(Some(source))) => {
                self.arrays.insert(name.to_owned(), Planned { source, ..planned });
            }
            _ => self.dropped.push(name.to_owned()),
        }
    }

    /// Returns true if the next state lacks an array of the previous one because its bytes are
    /// unreadable.
    pub(crate) fn loses(&self) -> bool {
        self.dropped.iter().any(|name| self.in_file.contains(name))
    }

    /// Returns the metadata of the next file: those of the previous one, and the owners of arrays.
    pub(crate) fn metadata(&self) -> Option<Vec<(String, String)>> {
        let owners = self.arrays.iter().filter_map(|(name, planned)| {
            Some((format!("{OWNER}{name}"), planned.owner.to_text()?))
        });
        let words: Vec<_> = self.metadata.iter().cloned().chain(owners).collect();
        (!words.is_empty()).then_some(words)
    }
}

impl Contents {
    /// Records that a plan was written, except for arrays that clients `deleted` meanwhile.
    pub(crate) fn note(
        &mut self,
        plan: Plan,
        deleted: Vec<(String, Weak<Array>)>,
        options: &StateOptions,
        name_bytes: &Budget,
    ) {
        let deleted: HashSet<(String, *const Array)> =
            deleted.into_iter().map(|(name, array)| (name, array.as_ptr())).collect();
        for Given { name, array, .. } in &plan.given {
            if self.arrays.get(name).is_some_and(|kept| kept.was(array)) {
                self.arrays.remove(name);
            }
        }
        for name in plan.dropped {
            let is_in_memory = self.arrays.get(&name).is_some_and(|kept| kept.array.is_some());
            if is_in_memory {
                self.arrays.change(&name, |kept| kept.saved = None);
            } else {
                self.arrays.remove(&name);
            }
        }
        for (name, planned) in plan.arrays {
            let Source::Memory { array, .. } = planned.source else { continue };
            let saved = Some(Arc::downgrade(&array));
            let is_deleted = deleted.contains(&(name.clone(), Arc::as_ptr(&array)));
            let Planned { owner, known, before, .. } = planned;
            if self.arrays.contains_key(&name) {
                self.arrays.change(&name, |kept| kept.note(saved, owner, before.as_ref(), &array));
            } else if !(known || is_deleted) {
                // Neither removed since the plan was made, nor in the state before.
                let (reservation, _) = NameReservation::of_all(name_bytes, &name, &owner);
                let _reservation = Some(reservation);
                let kept = Kept { owner, array: None, saved, _reservation };
                self.arrays.insert(name, kept);
            }
        }
        let arrays = &self.arrays;
        self.given
            .retain(|given| arrays.get(&given.name).is_some_and(|kept| kept.was(&given.array)));
        self.file = match Reader::open(&options.path) {
            Ok(file) => Some(file),
            Err(error) => {
                tracing::error!(%error, "the state that was just saved cannot be opened; the next save tries again");
                None
            }
        };
        self.identity = FileIdentity::of(&options.path);
    }
}

impl Kept {
    /// Records that `array` was written under its name, when the state had `before` there.
    fn note(
        &mut self,
        saved: Option<Weak<Array>>,
        owner: Owner,
        before: Option<&Arc<Array>>,
        array: &Arc<Array>,
    ) {
        self.saved = saved;
        let is_older = match (&self.array, before) {
            (None, _) => true,
            (Some(kept), Some(before)) => Arc::ptr_eq(kept, before),
            // A session has ended meanwhile.
            (Some(_), None) => false,
        };
        if is_older {
            self.owner = owner;
            self.array = self.array.take().filter(|kept| Arc::ptr_eq(kept, array));
        }
    }
}

/// Waits for arrays that programs compute: in a training loop these are all arrays, and each step
/// takes the results of the previous one.
fn settle(live: &[NamedArrays]) {
    /// Longest wait for arrays. Arrays that are not available then are left out and reported.
    const LONGEST: Duration = Duration::from_secs(10);
    let Ok(runtime) = Handle::try_current() else { return };
    let arrays = live.iter().flat_map(|session| &session.arrays);
    let shards = arrays.flat_map(|named| &named.array.shards);
    let computed = async {
        for shard in shards.filter(|shard| shard.buffer.is_of_program()) {
            // An array that fails is left out with its error.
            drop(shard.buffer.wait().await);
        }
    };
    drop(runtime.block_on(tokio::time::timeout(LONGEST, computed)));
}

/// Returns the shards of an array if all are available.
///
/// # Errors
/// The reason why the array cannot be saved now.
pub(crate) fn parts(array: &Array) -> Result<Parts, Missing> {
    let mut parts: Parts = Vec::new();
    for (shard, domain) in array.shards.iter().zip(array.domains().map_err(Missing::Failed)?) {
        let memory = shard.buffer.now().ok_or(Missing::NotYet)?.map_err(Missing::Failed)?;
        if parts.iter().all(|(_, other)| *other != domain) {
            parts.push((memory, domain));
        }
    }
    Ok(parts)
}
