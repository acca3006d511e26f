//! Calls on events: queries, waits and callbacks.

use std::{
    ffi::c_void,
    ptr,
    sync::{Mutex, PoisonError},
};

use serdes_abi::pjrt::args::*;

use super::{errors, pointers};
use crate::{
    Result, Status,
    pjrt::event::{Completer, Event},
};

/// An event as the host holds it.
pub(super) struct HostEvent {
    event: Event,
    /// The completer, if the host created the event.
    completer: Mutex<Option<Completer>>,
}

/// Hands out an event.
pub(super) fn give(event: Event) -> *mut PJRT_Event {
    pointers::give(HostEvent { event, completer: Mutex::new(None) })
}

/// A callback of the host, with its argument.
struct Listener {
    callback: PJRT_Event_OnReadyCallback,
    user_arg: *mut c_void,
}

// SAFETY: by the C API the callback may be called on any thread.
unsafe impl Send for Listener {}

impl Listener {
    fn call(self, outcome: Result<()>) {
        // SAFETY: by the C API it may be called once, with this argument, and gets an error that it
        // owns, or NULL; it is called once because `self` is consumed.
        unsafe { (self.callback)(errors::give(outcome), self.user_arg) };
    }
}

calls! {
    destroy(PJRT_Event_Destroy_Args: arguments) {
        // SAFETY: the host destroys an event once.
        drop(unsafe { pointers::take::<HostEvent, _>(arguments.event, "an event") }?);
    }

    is_ready(PJRT_Event_IsReady_Args: arguments, event: event) {
        arguments.is_ready = u8::from(event.event.outcome().is_some());
    }

    error(PJRT_Event_Error_Args: arguments, event: event) {
        event.event.outcome().unwrap_or_else(|| {
            Err(Status::failed_precondition("the event is not ready; wait for it first"))
        })?;
    }

    wait(PJRT_Event_Await_Args: arguments, event: event) {
        event.event.wait()?;
    }

    on_ready(PJRT_Event_OnReady_Args: arguments, event: event) {
        let callback = arguments
            .callback
            .ok_or_else(|| Status::invalid_argument("found NULL, expected a callback"))?;
        let listener = Listener { callback, user_arg: arguments.user_arg };
        event.event.on_done(move |outcome| listener.call(outcome));
    }

    create(PJRT_Event_Create_Args: arguments) {
        let (completer, event) = Event::pending();
        arguments.event =
            pointers::give(HostEvent { event, completer: Mutex::new(Some(completer)) });
    }

    set(PJRT_Event_Set_Args: arguments, event: event) {
        let mut completer = event.completer.lock().unwrap_or_else(PoisonError::into_inner);
        let completer = completer.take().ok_or_else(|| {
            Status::failed_precondition("the event was set before, or is not the caller's to set")
        })?;
        // SAFETY: the caller's promise.
        completer.complete(unsafe {
            errors::read(arguments.error_code, arguments.error_message, arguments.error_message_size)
        });
    }
}

/// The value of a missing event.
pub(super) const NONE: *mut PJRT_Event = ptr::null_mut();
