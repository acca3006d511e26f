//! Events: asked, waited for, told of.

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

/// An event as a host has it.
pub(super) struct HostEvent {
    event: Event,
    /// Completer of an event that the host made.
    completer: Mutex<Option<Completer>>,
}

/// Hands an event over.
pub(super) fn give(event: Event) -> *mut PJRT_Event {
    pointers::give(HostEvent { event, completer: Mutex::new(None) })
}

/// Callback of a host, with its argument.
struct Listener {
    callback: PJRT_Event_OnReadyCallback,
    user_arg: *mut c_void,
}

// SAFETY: by the C API the callback is called on whichever thread does the work.
unsafe impl Send for Listener {}

impl Listener {
    fn call(self, outcome: Result<()>) {
        // SAFETY: by the C API it may be called once, with that argument, and gets an error that
        // it owns, or NULL; it is called once because `self` is consumed.
        unsafe { (self.callback)(errors::give(outcome), self.user_arg) };
    }
}

calls! {
    destroy(PJRT_Event_Destroy_Args: arguments) {
        // SAFETY: an event that was handed over is destroyed once.
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

/// Hands over no event.
pub(super) const NONE: *mut PJRT_Event = ptr::null_mut();
