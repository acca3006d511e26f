//! `TF_Status`: its codes, and the functions that act on one.

use core::{
    ffi::{c_char, c_int},
    fmt,
};

/// A status; known to the side that made it alone. All access goes through [`StatusFunctions`].
#[repr(C)]
#[derive(Debug)]
pub struct TF_Status {
    _opaque: [u8; 0],
}

/// A status code, a C `int`. Open: numbers without a name survive.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TF_Code(pub c_int);

impl TF_Code {
    /// Not an error.
    pub const OK: Self = Self(0);
    /// The operation was cancelled.
    pub const CANCELLED: Self = Self(1);
    /// An error of no known kind.
    pub const UNKNOWN: Self = Self(2);
    /// The caller gave an argument that is never valid.
    pub const INVALID_ARGUMENT: Self = Self(3);
    /// The time was up.
    pub const DEADLINE_EXCEEDED: Self = Self(4);
    /// Something asked for is not there.
    pub const NOT_FOUND: Self = Self(5);
    /// Something to be made is there already.
    pub const ALREADY_EXISTS: Self = Self(6);
    /// The caller may not do this.
    pub const PERMISSION_DENIED: Self = Self(7);
    /// Memory or another resource is used up.
    pub const RESOURCE_EXHAUSTED: Self = Self(8);
    /// The system is not in the state that the operation needs.
    pub const FAILED_PRECONDITION: Self = Self(9);
    /// The operation was given up.
    pub const ABORTED: Self = Self(10);
    /// Beyond the valid range.
    pub const OUT_OF_RANGE: Self = Self(11);
    /// Not implemented, or not supported here.
    pub const UNIMPLEMENTED: Self = Self(12);
    /// An invariant of the other side is broken.
    pub const INTERNAL: Self = Self(13);
    /// Not available now; may work later.
    pub const UNAVAILABLE: Self = Self(14);
    /// Data is lost or corrupt beyond repair.
    pub const DATA_LOSS: Self = Self(15);
    /// The caller did not say who it is.
    pub const UNAUTHENTICATED: Self = Self(16);

    /// The code's name in the C API without its prefix, if it has one.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        const NAMES: [&str; 17] = [
            "OK",
            "CANCELLED",
            "UNKNOWN",
            "INVALID_ARGUMENT",
            "DEADLINE_EXCEEDED",
            "NOT_FOUND",
            "ALREADY_EXISTS",
            "PERMISSION_DENIED",
            "RESOURCE_EXHAUSTED",
            "FAILED_PRECONDITION",
            "ABORTED",
            "OUT_OF_RANGE",
            "UNIMPLEMENTED",
            "INTERNAL",
            "UNAVAILABLE",
            "DATA_LOSS",
            "UNAUTHENTICATED",
        ];
        if self.0 >= 0 && (self.0 as usize) < NAMES.len() {
            Some(NAMES[self.0 as usize])
        } else {
            None
        }
    }
}

impl fmt::Display for TF_Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => formatter.write_str(name),
            None => write!(formatter, "code {}", self.0),
        }
    }
}

/// The five status functions that a plug-in calls.
///
/// A shared library finds them by name when it is loaded. A plug-in that is linked into its host gets this table instead, so that
/// nobody has to export symbols for it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct StatusFunctions {
    /// `TF_NewStatus`: a new status, OK.
    pub new_status: unsafe extern "C" fn() -> *mut TF_Status,
    /// `TF_DeleteStatus`: frees a status of `new_status`; NULL is allowed.
    pub delete_status: unsafe extern "C" fn(*mut TF_Status),
    /// `TF_SetStatus`: sets code and message; the message is copied. OK ignores the message.
    pub set_status: unsafe extern "C" fn(*mut TF_Status, TF_Code, *const c_char),
    /// `TF_GetCode`.
    pub get_code: unsafe extern "C" fn(*const TF_Status) -> TF_Code,
    /// `TF_Message`: NUL-terminated, valid until the status is set again or deleted.
    pub message: unsafe extern "C" fn(*const TF_Status) -> *const c_char,
}
