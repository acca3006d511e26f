//! Arrays whose bytes arrive in pieces.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{
    Buffer, Event, Plugin, Shape,
    array::Array,
    client::{BufferOf, OpenClient, enqueue},
    event::Completer,
};
use crate::{HostSource, Result, Status};

/// A transfer manager, which receives the bytes of some arrays in pieces.
pub(super) struct Transfers<P: Plugin> {
    client: Arc<OpenClient<P>>,
    memory: usize,
    arrays: Vec<Incoming<P>>,
}

/// An array whose bytes arrive in pieces.
struct Incoming<P: Plugin> {
    array: Arc<Array<P>>,
    storage: Arc<BufferOf<P>>,
    state: Arc<Mutex<State>>,
}

struct State {
    /// Taken when the array is ready.
    completer: Option<Completer>,
    /// The number of pieces being written.
    pending: usize,
    /// True once the last piece has arrived.
    is_last_given: bool,
    failure: Option<Status>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<P: Plugin> Transfers<P> {
    /// Creates arrays of these shapes.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is not enough memory.
    pub(super) fn new(
        client: &Arc<OpenClient<P>>,
        memory: usize,
        shapes: Vec<Shape>,
    ) -> Result<Self> {
        let arrays = shapes.into_iter().map(|shape| {
            let (completer, ready) = Event::pending();
            let array = Array::allocate(client, memory, shape, ready)?;
            let state = State {
                completer: Some(completer),
                pending: 0,
                is_last_given: false,
                failure: None,
            };
            Ok(Incoming {
                storage: array.storage()?,
                array: Arc::new(array),
                state: Arc::new(Mutex::new(state)),
            })
        });
        let arrays = arrays.collect::<Result<_>>()?;
        Ok(Self { client: Arc::clone(client), memory, arrays })
    }

    pub(super) fn client(&self) -> &Arc<OpenClient<P>> {
        &self.client
    }

    pub(super) fn memory(&self) -> usize {
        self.memory
    }

    pub(super) fn len(&self) -> usize {
        self.arrays.len()
    }

    fn incoming(&self, index: i32) -> Result<&Incoming<P>> {
        let found = usize::try_from(index).ok().and_then(|index| self.arrays.get(index));
        found.ok_or_else(|| {
            let count = self.arrays.len();
            Status::invalid_argument(format!("the array {index} of a transfer of {count}"))
        })
    }

    /// Returns the array with this number.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if there is none.
    pub(super) fn array(&self, index: i32) -> Result<&Arc<Array<P>>> {
        Ok(&self.incoming(index)?.array)
    }

    /// Writes bytes of an array, in the device's layout, at `offset`; returns an event that is done
    /// when they have been read.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if they are not inside the array; `FAILED_PRECONDITION` if its last bytes
    /// have arrived already, or it has failed.
    pub(super) fn transfer(
        &self,
        index: i32,
        offset: i64,
        source: HostSource,
        is_last: bool,
    ) -> Result<Event> {
        let incoming = self.incoming(index)?;
        let size = i64::try_from(source.len()).unwrap_or(i64::MAX);
        let bytes = incoming.array.range(offset, size)?;
        let mut state = lock(&incoming.state);
        if state.is_last_given || state.completer.is_none() {
            return Err(Status::failed_precondition(format!(
                "more bytes for the array {index} of a transfer, which was complete or had failed"
            )));
        }
        state.pending += 1;
        state.is_last_given = is_last;
        drop(state);
        let (completer, done) = Event::pending();
        let state = Arc::clone(&incoming.state);
        done.on_done(move |outcome| settle(&state, outcome));
        if bytes.is_empty() {
            completer.complete(Ok(()));
            return Ok(done);
        }
        let storage = Arc::clone(&incoming.storage);
        let queue = &self.client.device_of(self.memory)?.writes;
        enqueue(queue, bytes.len(), completer, move || storage.write(bytes.start as u64, &source));
        Ok(done)
    }

    /// Marks an array as failed.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if there is no array with this number.
    pub(super) fn fail(&self, index: i32, failure: Status) -> Result<()> {
        let completer = lock(&self.incoming(index)?.state).completer.take();
        if let Some(completer) = completer {
            completer.complete(Err(failure));
        }
        Ok(())
    }
}

/// Records that a piece was written or has failed. When no piece is missing, the array is ready.
fn settle(state: &Mutex<State>, outcome: Result<()>) {
    let mut state = lock(state);
    state.pending -= 1;
    if let (Err(failure), None) = (outcome, &state.failure) {
        state.failure = Some(failure);
    }
    if state.pending > 0 || !state.is_last_given {
        return;
    }
    let outcome = state.failure.clone().map_or(Ok(()), Err);
    let completer = state.completer.take();
    drop(state);
    if let Some(completer) = completer {
        completer.complete(outcome);
    }
}

impl<P: Plugin> Drop for Transfers<P> {
    fn drop(&mut self) {
        for incoming in &self.arrays {
            let mut state = lock(&incoming.state);
            if state.is_last_given {
                continue;
            }
            let completer = state.completer.take();
            drop(state);
            if let Some(completer) = completer {
                completer.complete(Err(Status::new(
                    serdes_abi::TF_Code::CANCELLED,
                    "the transfer was given up before the array's last bytes came",
                )));
            }
        }
    }
}
