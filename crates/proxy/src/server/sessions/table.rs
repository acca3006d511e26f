//! The table of a session's handles.

use std::{
    collections::{HashMap, hash_map::Entry as MapEntry},
    sync::Arc,
};

use serdes::codec::Status;

use crate::{
    server::{
        arrays::Array,
        budget::{Quota, Reserve},
        handles::{SERVER_HANDLES, unguessable},
        metrics::{Counted, Gauges},
        programs::{Call, HostCallback, Program},
        promise::Promised,
    },
    status::status,
};

/// Entry of a handle.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Live(Arc<Array>),
    Deleted,
    /// The request that should have created it failed.
    Failed(Status),
}

/// The handles of a session.
#[derive(Debug)]
pub(crate) struct Table {
    arrays: HashMap<u64, (Entry, Counted)>,
    /// Number of failed entries.
    failed: usize,
    futures: HashMap<u64, Promised<()>>,
    programs: HashMap<u64, Arc<Program>>,
    /// Client functions that the session's programs call.
    callbacks: HashMap<u64, Arc<HostCallback>>,
    /// Calls that the client has taken and not answered.
    calls: HashMap<u64, Call>,
    limit: usize,
    reserve: Reserve,
    gauges: Arc<Gauges>,
}

impl Table {
    /// Creates a table for at most `limit` arrays and as many futures, which count for `quota`.
    pub(crate) fn new(limit: usize, quota: Quota, gauges: Arc<Gauges>) -> Self {
        Self {
            arrays: HashMap::new(),
            failed: 0,
            futures: HashMap::new(),
            programs: HashMap::new(),
            callbacks: HashMap::new(),
            calls: HashMap::new(),
            limit,
            reserve: Reserve::new(quota),
            gauges,
        }
    }

    /// Returns a new server handle, which clients cannot guess.
    ///
    /// # Errors
    /// INTERNAL if the system provides no random numbers.
    fn server_handle(&self) -> Result<u64, Status> {
        loop {
            let handle = unguessable()? | SERVER_HANDLES;
            if !self.arrays.contains_key(&handle)
                && !self.futures.contains_key(&handle)
                && !self.programs.contains_key(&handle)
                && !self.callbacks.contains_key(&handle)
                && !self.calls.contains_key(&handle)
            {
                return Ok(handle);
            }
        }
    }

    /// Returns the handles for `count` new arrays: those that the client chose, or the server's if
    /// it chose none.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a wrong number of handles, a server handle, or a duplicate;
    /// ALREADY_EXISTS for one in use; RESOURCE_EXHAUSTED if there are too many.
    pub(crate) fn claim(&mut self, wanted: &[u64], count: usize) -> Result<Vec<u64>, Status> {
        if !wanted.is_empty() && wanted.len() != count {
            return Err(status!(
                InvalidArgument,
                "found {} result handles; expected {count}, one for each array",
                wanted.len()
            ));
        }
        self.room(count)?;
        let mut handles = Vec::with_capacity(count);
        for at in 0..count {
            let handle = match wanted.get(at).copied().unwrap_or(0) {
                0 => self.server_handle()?,
                handle if handle >= SERVER_HANDLES => {
                    return Err(status!(
                        InvalidArgument,
                        "array handle {handle} is one of the server's; expected one below {SERVER_HANDLES}"
                    ));
                }
                handle => handle,
            };
            if self.arrays.contains_key(&handle) {
                return Err(status!(
                    AlreadyExists,
                    "array {handle} is there already; use each handle once"
                ));
            }
            handles.push(handle);
        }
        let mut sorted = handles.clone();
        sorted.sort_unstable();
        if let Some(twice) =
            sorted.windows(2).find(|pair| pair.first() == pair.last()).and_then(<[u64]>::first)
        {
            return Err(status!(
                InvalidArgument,
                "the request names the result handle {twice} twice"
            ));
        }
        Ok(handles)
    }

    /// Returns the number of arrays, deleted ones included.
    pub(crate) fn array_count(&self) -> usize {
        self.arrays.len().saturating_sub(self.failed)
    }

    fn room(&mut self, count: usize) -> Result<(), Status> {
        if self.arrays.len().saturating_add(count) > self.limit {
            return Err(status!(
                ResourceExhausted,
                "the session has {} arrays, and the limit `session-handles` of this server is {}; destruct some first",
                self.arrays.len(),
                self.limit,
            ));
        }
        self.reserve.make(self.arrays.len() + self.futures.len() + count)
    }

    fn shrink(&mut self) {
        self.reserve.shrink(self.arrays.len() + self.futures.len());
    }

    /// Stores an array under a claimed handle.
    pub(crate) fn insert(&mut self, handle: u64, entry: Entry) {
        let counted = self.gauges.hold(|gauges| &gauges.arrays, 1);
        self.arrays.insert(handle, (entry, counted));
    }

    /// Stores an error under those of the handles that are unused.
    pub(crate) fn poison(&mut self, handles: &[u64], status: &Status) {
        let status = &short(status);
        for handle in handles.iter().copied().filter(|handle| (1..SERVER_HANDLES).contains(handle))
        {
            if self.room(1).is_err() {
                return;
            }
            if let MapEntry::Vacant(entry) = self.arrays.entry(handle) {
                let counted = self.gauges.hold(|gauges| &gauges.arrays, 1);
                entry.insert((Entry::Failed(status.clone()), counted));
                self.failed += 1;
            }
        }
    }

    /// # Errors
    /// NOT_FOUND.
    pub(crate) fn entry(&self, handle: u64) -> Result<&Entry, Status> {
        self.arrays.get(&handle).map(|(entry, _)| entry).ok_or_else(|| unknown_array(handle))
    }

    /// Returns the array of a handle.
    ///
    /// # Errors
    /// NOT_FOUND for an unknown handle, INVALID_ARGUMENT for a deleted array, the error of one that
    /// could not be created.
    pub(crate) fn array(&self, handle: u64) -> Result<Arc<Array>, Status> {
        match self.entry(handle)? {
            Entry::Live(array) => Ok(Arc::clone(array)),
            Entry::Deleted => {
                Err(status!(InvalidArgument, "array {handle} has been deleted or donated"))
            }
            Entry::Failed(status) => Err(status.clone()),
        }
    }

    /// # Errors
    /// As [`array`](Self::array), for the first invalid handle.
    pub(crate) fn arrays(&self, handles: &[u64]) -> Result<Vec<Arc<Array>>, Status> {
        handles.iter().map(|handle| self.array(*handle)).collect()
    }

    /// Frees the memory of an array; the handle stays.
    ///
    /// # Errors
    /// NOT_FOUND for an unknown handle, the error of an array that could not be created.
    pub(crate) fn delete(&mut self, handle: u64) -> Result<(), Status> {
        match self.arrays.get_mut(&handle) {
            None => Err(unknown_array(handle)),
            Some((Entry::Failed(status), _)) => Err(status.clone()),
            Some((entry, _)) => {
                *entry = Entry::Deleted;
                Ok(())
            }
        }
    }

    /// Removes a handle.
    ///
    /// # Errors
    /// NOT_FOUND.
    pub(crate) fn destruct(&mut self, handle: u64) -> Result<(), Status> {
        let removed = self.arrays.remove(&handle);
        if let Some((Entry::Failed(_), _)) = removed {
            self.failed -= 1;
        }
        self.shrink();
        removed.map(drop).ok_or_else(|| unknown_array(handle))
    }

    /// Creates a future of an outcome.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if there are too many.
    pub(crate) fn future(&mut self, outcome: Promised<()>) -> Result<u64, Status> {
        let handle = self.server_handle()?;
        self.named_future(handle, outcome).map(|()| handle)
    }

    /// Creates a future under a handle that the client chose.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if there are too many.
    pub(crate) fn named_future(
        &mut self,
        handle: u64,
        outcome: Promised<()>,
    ) -> Result<(), Status> {
        if self.futures.len() >= self.limit {
            return Err(status!(
                ResourceExhausted,
                "the session has {} futures, and the limit `session-handles` of this server is {}; check some first",
                self.futures.len(),
                self.limit,
            ));
        }
        self.reserve.make(self.arrays.len() + self.futures.len() + 1)?;
        self.futures.insert(handle, outcome);
        Ok(())
    }

    /// Takes a future out; each can be queried once.
    ///
    /// # Errors
    /// NOT_FOUND.
    pub(crate) fn take_future(&mut self, handle: u64) -> Result<Promised<()>, Status> {
        let outcome = self.futures.remove(&handle);
        self.shrink();
        outcome.ok_or_else(|| {
            status!(
                NotFound,
                "there is no future {handle}; it was never made, or was checked already"
            )
        })
    }

    /// Stores a program under a new server handle.
    ///
    /// # Errors
    /// INTERNAL if the system provides no random numbers.
    pub(crate) fn add_program(&mut self, program: Arc<Program>) -> Result<u64, Status> {
        let handle = self.server_handle()?;
        self.programs.insert(handle, program);
        Ok(handle)
    }

    /// Returns the program of a handle.
    ///
    /// # Errors
    /// NOT_FOUND.
    pub(crate) fn program(&self, handle: u64) -> Result<Arc<Program>, Status> {
        self.programs.get(&handle).cloned().ok_or_else(|| unknown_program(handle))
    }

    /// Removes a program.
    ///
    /// # Errors
    /// NOT_FOUND.
    pub(crate) fn take_program(&mut self, handle: u64) -> Result<Arc<Program>, Status> {
        self.programs.remove(&handle).ok_or_else(|| unknown_program(handle))
    }

    /// Stores functions that a program calls under new server handles; there are at most `most` of
    /// them.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED; INTERNAL if the system provides no random numbers.
    pub(crate) fn add_callbacks(
        &mut self,
        callbacks: &[Arc<HostCallback>],
        most: usize,
    ) -> Result<Vec<u64>, Status> {
        let is_too_many =
            |table: &Self| table.callbacks.len().saturating_add(callbacks.len()) > most;
        if is_too_many(self) {
            // Remove functions that no program calls any more and that no client has polled since.
            self.callbacks.retain(|_, callback| !callback.is_over());
        }
        if is_too_many(self) {
            return Err(status!(
                ResourceExhausted,
                "the programs of the session call {} functions of its client, each of which waits in a request of its own, and half of the limit `session-requests` of this server is {most}; there is no room for {} more: destruct some programs first",
                self.callbacks.len(),
                callbacks.len(),
            ));
        }
        let handles = callbacks.iter().map(|callback| {
            let handle = self.server_handle()?;
            self.callbacks.insert(handle, Arc::clone(callback));
            Ok(handle)
        });
        handles.collect()
    }

    /// Returns the function of a handle.
    ///
    /// # Errors
    /// NOT_FOUND.
    pub(crate) fn callback(&self, handle: u64) -> Result<Arc<HostCallback>, Status> {
        self.callbacks.get(&handle).cloned().ok_or_else(|| {
            status!(
                NotFound,
                "there is no function {handle} in this session that a program calls; it never was, or no program calls it any more"
            )
        })
    }

    /// Removes a function that no program calls any more.
    pub(crate) fn drop_callback(&mut self, handle: u64) {
        self.callbacks.remove(&handle);
    }

    /// Stores a call that the client takes under a new server handle.
    ///
    /// # Errors
    /// INTERNAL if the system provides no random numbers.
    pub(crate) fn add_call(&mut self, call: Call) -> Result<u64, Status> {
        let handle = self.server_handle()?;
        self.calls.insert(handle, call);
        Ok(handle)
    }

    /// Takes a call out, to answer it.
    ///
    /// # Errors
    /// NOT_FOUND.
    pub(crate) fn take_call(&mut self, handle: u64) -> Result<Call, Status> {
        self.calls.remove(&handle).ok_or_else(|| {
            status!(
                NotFound,
                "there is no call {handle} of a function in this session; it never was, or was answered"
            )
        })
    }

    /// Returns all live arrays, by handle.
    pub(crate) fn live(&self) -> Vec<(u64, Arc<Array>)> {
        let live = self.arrays.iter().filter_map(|(handle, (entry, _))| match entry {
            Entry::Live(array) => Some((*handle, Arc::clone(array))),
            _ => None,
        });
        let mut live: Vec<_> = live.collect();
        live.sort_unstable_by_key(|(handle, _)| *handle);
        live
    }

    /// Removes all entries.
    pub(crate) fn clear(&mut self) {
        self.arrays.clear();
        self.failed = 0;
        self.futures.clear();
        // Ends the calls of programs that wait for the client.
        self.callbacks.drain().for_each(|(_, callback)| callback.end());
        self.calls.clear();
        self.programs.clear();
        self.reserve.clear();
    }

    /// Returns true if there is no entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.arrays.is_empty() && self.futures.is_empty() && self.programs.is_empty()
    }
}

/// Returns a shortened copy of an error for storage: its text may come from a client, and is stored
/// for every handle.
pub(crate) fn short(status: &Status) -> Status {
    const MOST: usize = 1 << 10;
    let message = status.message();
    if message.len() <= MOST {
        return status.clone();
    }
    Status::new(status.code(), message.chars().take(MOST).chain(['…']).collect::<String>())
}

fn unknown_program(handle: u64) -> Status {
    status!(
        NotFound,
        "there is no executable {handle} in this session; it was never compiled, or was destructed"
    )
}

fn unknown_array(handle: u64) -> Status {
    status!(
        NotFound,
        "there is no array {handle} in this session; it was never made, or was destructed"
    )
}
