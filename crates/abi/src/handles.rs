//! Scalars, opaque handles, and the type of the host functions that streams run.

use core::ffi::{c_int, c_void};

use crate::status::TF_Status;

/// C's `unsigned char` used as a truth value; anything but 0 is true.
pub type TF_Bool = u8;

/// The target of an [`SP_Stream`]; its content is private to the plug-in.
#[repr(C)]
#[derive(Debug)]
pub struct SP_Stream_st {
    _opaque: [u8; 0],
}

/// The target of an [`SP_Event`]; its content is private to the plug-in.
#[repr(C)]
#[derive(Debug)]
pub struct SP_Event_st {
    _opaque: [u8; 0],
}

/// The target of an [`SP_Timer`]; its content is private to the plug-in.
#[repr(C)]
#[derive(Debug)]
pub struct SP_Timer_st {
    _opaque: [u8; 0],
}

/// A stream of a plug-in. NULL is a legal handle.
pub type SP_Stream = *mut SP_Stream_st;
/// An event of a plug-in. NULL is a legal handle.
pub type SP_Event = *mut SP_Event_st;
/// A timer of a plug-in. NULL is a legal handle.
pub type SP_Timer = *mut SP_Timer_st;

/// The state of an event, a C `int`.
///
/// A plug-in may return any number, so the type is open: numbers without a name are kept.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SE_EventStatus(pub c_int);

impl SE_EventStatus {
    /// The plug-in does not know the state.
    pub const UNKNOWN: Self = Self(0);
    /// The work before the event failed.
    pub const ERROR: Self = Self(1);
    /// The work before the event is not done.
    pub const PENDING: Self = Self(2);
    /// The work before the event is done.
    pub const COMPLETE: Self = Self(3);
}

/// A function that a stream runs on the host: the argument that came with it, and a status that it
/// may set.
pub type SE_StatusCallbackFn = unsafe extern "C" fn(*mut c_void, *mut TF_Status);
