//! The completion of a plug-in's asynchronous work.

use std::{
    ptr::NonNull,
    sync::{Arc, mpsc},
    time::Duration,
};

use serdes_abi::pjrt::args::{
    PJRT_Event, PJRT_Event_Await_Args, PJRT_Event_Destroy_Args, PJRT_Event_IsReady_Args,
};

use super::{border::call_when_ready, client::ClientHandle};
use crate::PjrtError;

/// The completion of work that a plug-in does while the host continues.
#[derive(Debug)]
pub struct Event {
    client: Arc<ClientHandle>,
    raw: NonNull<PJRT_Event>,
}

// SAFETY: the C API lets any thread use any object, several at once except for destroying it, which
// only the owner does.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// Takes ownership of an event that a plug-in returned; NULL is one that is done.
    ///
    /// # Safety
    /// It is NULL or alive, belongs to a plug-in of this client, and is owned by no other handle.
    pub(super) unsafe fn taken(client: &Arc<ClientHandle>, raw: *mut PJRT_Event) -> Option<Self> {
        NonNull::new(raw).map(|raw| Self { client: Arc::clone(client), raw })
    }

    /// Returns true if the work is done, or has failed.
    ///
    /// # Errors
    /// The plug-in's errors.
    #[inline]
    pub fn is_ready(&self) -> Result<bool, PjrtError> {
        let raw = self.raw.as_ptr();
        let table = self.client.table();
        // SAFETY: the event is alive until it is dropped.
        let found = unsafe { table.ask(|call: &mut PJRT_Event_IsReady_Args| call.event = raw) }?;
        Ok(found.is_ready != 0)
    }

    /// Waits until the work is done.
    ///
    /// # Errors
    /// [`PjrtError::Status`] if the work failed.
    pub fn wait(&self) -> Result<(), PjrtError> {
        let raw = self.raw.as_ptr();
        let table = self.client.table();
        // SAFETY: the event is alive until it is dropped.
        unsafe { table.ask(|call: &mut PJRT_Event_Await_Args| call.event = raw) }.map(drop)
    }

    /// Waits until the work is done, for at most `limit`; returns true if it is done.
    ///
    /// # Errors
    /// [`PjrtError::Status`] if the work failed, or if the plug-in cannot report its completion.
    pub fn wait_at_most(&self, limit: Duration) -> Result<bool, PjrtError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let plugin = self.client.plugin().clone();
        let action = Box::new(move |error| {
            let result = plugin.table().taken("PJRT_Event_OnReady", error);
            // The receiver may have stopped waiting.
            let _ = sender.try_send(result);
        });
        // SAFETY: the event is alive until it is dropped, and belongs to its client.
        unsafe { call_when_ready(self.client.table(), self.raw.as_ptr(), action) }
            .map_err(|(error, _)| error)?;
        match receiver.recv_timeout(limit) {
            Ok(result) => result.map(|()| true),
            Err(_) => Ok(false),
        }
    }

    /// Calls `action` when the work is done or has failed, on the thread on which the plug-in
    /// reports it; immediately, if it is done. The event itself may be dropped before.
    ///
    /// The action must not destroy an object of the plug-in.
    ///
    /// # Errors
    /// [`PjrtError::Missing`] or [`PjrtError::Status`] if the plug-in cannot report completion; the
    /// action is not called then.
    pub fn when_ready(
        &self,
        action: impl FnOnce(Result<(), PjrtError>) + Send + 'static,
    ) -> Result<(), PjrtError> {
        let plugin = self.client.plugin().clone();
        let action =
            Box::new(move |error| action(plugin.table().taken("PJRT_Event_OnReady", error)));
        // SAFETY: the event is alive until it is dropped, and belongs to its client.
        unsafe { call_when_ready(self.client.table(), self.raw.as_ptr(), action) }
            .map_err(|(error, _)| error)
    }

    /// Keeps a value until the work is done, such as memory that the plug-in uses. If the plug-in
    /// cannot report completion, it is kept forever.
    ///
    /// A thread of the plug-in drops the value, so dropping it must not destroy a client.
    pub(super) fn keep<T: Send + 'static>(&self, kept: T) {
        let plugin = self.client.plugin().clone();
        let action = Box::new(move |error| {
            // The failure is reported by the event that the caller waits for.
            let _ = plugin.table().taken("PJRT_Event_OnReady", error);
            drop(kept);
        });
        // SAFETY: the event is alive until it is dropped, and belongs to its client.
        let result = unsafe { call_when_ready(self.client.table(), self.raw.as_ptr(), action) };
        if let Err((_, Some(action))) = result {
            std::mem::forget(action);
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let raw = self.raw.as_ptr();
        // SAFETY: it is alive, and its only owner is being dropped. An error has no consequence.
        let _ = unsafe {
            self.client.table().ask(|call: &mut PJRT_Event_Destroy_Args| call.event = raw)
        };
    }
}
