//! Something that will be done.

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

/// Something that a plug-in does while the host goes on.
#[derive(Debug)]
pub struct Event {
    client: Arc<ClientHandle>,
    raw: NonNull<PJRT_Event>,
}

// SAFETY: the C API lets any thread use any object, several at once but for destroying it; that is
// done by the owner alone.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// Takes an event that a plug-in handed over; NULL is one that has happened.
    ///
    /// # Safety
    /// It is NULL or alive, of a plug-in of that client, and owned by no other handle.
    pub(super) unsafe fn taken(client: &Arc<ClientHandle>, raw: *mut PJRT_Event) -> Option<Self> {
        NonNull::new(raw).map(|raw| Self { client: Arc::clone(client), raw })
    }

    /// Returns true if the event has happened, or has failed.
    ///
    /// # Errors
    /// As the plug-in's.
    #[inline]
    pub fn is_ready(&self) -> Result<bool, PjrtError> {
        let raw = self.raw.as_ptr();
        let table = self.client.table();
        // SAFETY: the event is alive until it is dropped.
        let found = unsafe { table.ask(|call: &mut PJRT_Event_IsReady_Args| call.event = raw) }?;
        Ok(found.is_ready != 0)
    }

    /// Waits until it has happened.
    ///
    /// # Errors
    /// [`PjrtError::Status`] if what it stands for failed.
    pub fn wait(&self) -> Result<(), PjrtError> {
        let raw = self.raw.as_ptr();
        let table = self.client.table();
        // SAFETY: the event is alive until it is dropped.
        unsafe { table.ask(|call: &mut PJRT_Event_Await_Args| call.event = raw) }.map(drop)
    }

    /// Waits until it has happened, and no longer than that; whether it has.
    ///
    /// # Errors
    /// [`PjrtError::Status`] if what it stands for failed, or if the plug-in cannot say when it is
    /// ready.
    pub fn wait_at_most(&self, limit: Duration) -> Result<bool, PjrtError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let plugin = self.client.plugin().clone();
        let action = Box::new(move |error| {
            let result = plugin.table().taken("PJRT_Event_OnReady", error);
            // The receiver may have stopped waiting.
            let _ = sender.try_send(result);
        });
        // SAFETY: the event is alive until it is dropped, and its client's.
        unsafe { call_when_ready(self.client.table(), self.raw.as_ptr(), action) }
            .map_err(|(error, _)| error)?;
        match receiver.recv_timeout(limit) {
            Ok(result) => result.map(|()| true),
            Err(_) => Ok(false),
        }
    }

    /// Has `action` done once it has happened or failed, on whatever thread the plug-in says so; at
    /// once, if it has. The event itself may be dropped before.
    ///
    /// It must not be what destroys an object of the plug-in.
    ///
    /// # Errors
    /// [`PjrtError::Missing`] or [`PjrtError::Status`] if the plug-in cannot say when it is ready;
    /// the action is not done then.
    pub fn when_ready(
        &self,
        action: impl FnOnce(Result<(), PjrtError>) + Send + 'static,
    ) -> Result<(), PjrtError> {
        let plugin = self.client.plugin().clone();
        let action =
            Box::new(move |error| action(plugin.table().taken("PJRT_Event_OnReady", error)));
        // SAFETY: the event is alive until it is dropped, and its client's.
        unsafe { call_when_ready(self.client.table(), self.raw.as_ptr(), action) }
            .map_err(|(error, _)| error)
    }

    /// Keeps something until it has happened: memory that the plug-in is using. Where the plug-in
    /// cannot say when that is, it is kept for good.
    ///
    /// It is dropped by a thread of the plug-in's, so that it must not be what destroys a client.
    pub(super) fn keep<T: Send + 'static>(&self, kept: T) {
        let plugin = self.client.plugin().clone();
        let action = Box::new(move |error| {
            // What failed is said by the event that somebody waits for.
            let _ = plugin.table().taken("PJRT_Event_OnReady", error);
            drop(kept);
        });
        // SAFETY: the event is alive until it is dropped, and its client's.
        let result = unsafe { call_when_ready(self.client.table(), self.raw.as_ptr(), action) };
        if let Err((_, Some(action))) = result {
            std::mem::forget(action);
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let raw = self.raw.as_ptr();
        // SAFETY: it is alive, and this is its only owner's last word. An error changes nothing.
        let _ = unsafe {
            self.client.table().ask(|call: &mut PJRT_Event_Destroy_Args| call.event = raw)
        };
    }
}
