//! Callbacks that plug-ins call when something is ready.
//!
//! A plug-in gets a number, never an address: if it calls twice, or after the receiver is gone, the
//! number refers to nothing.

use std::{
    collections::HashMap,
    ffi::c_void,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    sync::{Mutex, PoisonError},
};

use serdes_abi::pjrt::args::{PJRT_Error, PJRT_Event, PJRT_Event_OnReady_Args};

use super::table::{Handed, Table};
use crate::PjrtError;

/// The reaction to a ready event. It gets the error of the plug-in, or NULL.
type Action = Box<dyn FnOnce(*mut PJRT_Error) + Send>;

struct Waiting {
    next: usize,
    actions: Option<HashMap<usize, Action>>,
}

static WAITING: Mutex<Waiting> = Mutex::new(Waiting { next: 1, actions: None });

fn waiting() -> std::sync::MutexGuard<'static, Waiting> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take(number: usize) -> Option<Action> {
    waiting().actions.as_mut().and_then(|actions| actions.remove(&number))
}

fn insert(action: Action) -> usize {
    let mut waiting = waiting();
    let number = waiting.next;
    waiting.next += 1;
    waiting.actions.get_or_insert_default().insert(number, action);
    number
}

/// Calls `action` when the event is ready, on the thread on which the plug-in reports it;
/// immediately, if it is ready. An event that never becomes ready keeps the action forever.
///
/// # Errors
/// As [`Table::call`]; returns the action unused, because values that it owns may still be in use.
///
/// # Safety
/// The event is alive, and belongs to the plug-in of this table.
pub(in crate::host) unsafe fn call_when_ready(
    table: &Table,
    event: *mut PJRT_Event,
    action: Action,
) -> Result<(), (PjrtError, Option<Action>)> {
    let number = insert(action);
    let mut arguments = Handed::<PJRT_Event_OnReady_Args>::new();
    arguments.event = event;
    arguments.callback = Some(ready);
    arguments.user_arg = ptr::without_provenance_mut(number);
    // SAFETY: the caller guarantees that the event is alive; the callback accepts any number.
    unsafe { table.call(&mut arguments) }.map_err(|error| (error, take(number)))
}

/// Keeps a value that a plug-in uses until it calls [`freed`] with the number; if it never does,
/// the value is kept forever.
pub(super) fn keep_until_freed<T: Send + 'static>(kept: T) -> usize {
    insert(Box::new(|_| drop(kept)))
}

/// The callback for data that the plug-in no longer needs.
pub(super) unsafe extern "C" fn freed(_data: *mut c_void, number: *mut c_void) {
    // SAFETY: the action registered under such a number ignores the error.
    unsafe { ready(ptr::null_mut(), number) };
}

/// The callback for a ready event.
unsafe extern "C" fn ready(error: *mut PJRT_Error, number: *mut c_void) {
    if let Some(action) = take(number.addr()) {
        // A panic must not unwind into the plug-in.
        let _ = catch_unwind(AssertUnwindSafe(|| action(error)));
    }
}
