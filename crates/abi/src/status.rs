//! The canonical status codes, and `TF_Status` of the C API with its functions.

use core::{
    ffi::{c_char, c_int},
    fmt,
};

/// A status of the C API, opaque to all but the side that created it: other code uses
/// [`StatusFunctions`].
#[repr(C)]
#[derive(Debug)]
pub struct TF_Status {
    _opaque: [u8; 0],
}

/// A status code as the C API passes it, a C `int`. Any number is valid, also one without a name.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TF_Code(pub c_int);

impl TF_Code {
    /// Returns the canonical code of this number, if it is one.
    #[must_use]
    pub const fn canonical(self) -> Option<StatusCode> {
        StatusCode::from_number(self.0)
    }

    /// Returns the name in the C API without the prefix `TF_`, if the number has one.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self.canonical() {
            Some(code) => Some(code.name()),
            None => None,
        }
    }
}

impl From<StatusCode> for TF_Code {
    fn from(code: StatusCode) -> Self {
        Self(code.number())
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

/// Defines [`StatusCode`] and the constants of [`TF_Code`] from one list.
macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident, $name:ident = $number:literal;)*) => {
        /// The canonical status codes, with the names and numbers that Abseil, gRPC and TensorFlow
        /// share.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum StatusCode {
            $($(#[$doc])* $variant = $number,)*
        }

        impl StatusCode {
            /// All codes, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the code with this number; `None` for a number that is not canonical.
            #[must_use]
            pub const fn from_number(number: i32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// Returns the name in capitals, as in `INVALID_ARGUMENT`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($name),)*
                }
            }
        }

        impl TF_Code {
            $($(#[$doc])* pub const $name: Self = Self($number);)*
        }
    };
}

codes! {
    /// No error.
    Ok, OK = 0;
    /// The caller cancelled the operation.
    Cancelled, CANCELLED = 1;
    /// An error that no other code describes.
    Unknown, UNKNOWN = 2;
    /// The argument is wrong, regardless of the state of the system.
    InvalidArgument, INVALID_ARGUMENT = 3;
    /// The deadline passed before the operation was done.
    DeadlineExceeded, DEADLINE_EXCEEDED = 4;
    /// The requested item does not exist.
    NotFound, NOT_FOUND = 5;
    /// The item to create exists already.
    AlreadyExists, ALREADY_EXISTS = 6;
    /// The caller is not permitted to do this.
    PermissionDenied, PERMISSION_DENIED = 7;
    /// A quota, a limit or the memory is used up.
    ResourceExhausted, RESOURCE_EXHAUSTED = 8;
    /// The system is not in the state that the operation needs.
    FailedPrecondition, FAILED_PRECONDITION = 9;
    /// The operation was aborted, for example because of a conflict with another one.
    Aborted, ABORTED = 10;
    /// Past the end of a valid range.
    OutOfRange, OUT_OF_RANGE = 11;
    /// The operation is not implemented, or not for these arguments.
    Unimplemented, UNIMPLEMENTED = 12;
    /// An invariant of the system is broken.
    Internal, INTERNAL = 13;
    /// The service is not reachable now; a retry may succeed.
    Unavailable, UNAVAILABLE = 14;
    /// Data is lost or damaged beyond repair.
    DataLoss, DATA_LOSS = 15;
    /// The caller has no valid credentials.
    Unauthenticated, UNAUTHENTICATED = 16;
}

impl StatusCode {
    /// Returns the number, 0 to 16.
    #[must_use]
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// Returns the code with this name, in capitals; `None` for any other text.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.name() == name)
    }
}

impl fmt::Display for StatusCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The five status functions that a plug-in calls.
///
/// A shared library finds them by name when it is loaded. A plug-in that is linked into its host
/// gets this table instead, so that the host does not need to export symbols for it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct StatusFunctions {
    /// `TF_NewStatus`: creates a status, which is OK.
    pub new_status: unsafe extern "C" fn() -> *mut TF_Status,
    /// `TF_DeleteStatus`: frees a status of `new_status`; NULL is allowed.
    pub delete_status: unsafe extern "C" fn(*mut TF_Status),
    /// `TF_SetStatus`: sets code and message; the message is copied. OK ignores the message.
    pub set_status: unsafe extern "C" fn(*mut TF_Status, TF_Code, *const c_char),
    /// `TF_GetCode`: returns the code.
    pub get_code: unsafe extern "C" fn(*const TF_Status) -> TF_Code,
    /// `TF_Message`: returns the message, NUL-terminated and valid until the status is set again or
    /// deleted.
    pub message: unsafe extern "C" fn(*const TF_Status) -> *const c_char,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_canonical_numbers_and_names() {
        assert_eq!(StatusCode::InvalidArgument.number(), 3);
        assert_eq!(StatusCode::NotFound.number(), 5);
        assert_eq!(StatusCode::FailedPrecondition.number(), 9);
        assert_eq!(StatusCode::Unimplemented.number(), 12);
        assert_eq!(StatusCode::Internal.number(), 13);
        assert_eq!(StatusCode::DataLoss.number(), 15);
        assert_eq!(StatusCode::Unauthenticated.number(), 16);
        for (number, code) in StatusCode::ALL.iter().copied().enumerate() {
            assert_eq!(code.number(), number as i32);
            assert_eq!(StatusCode::from_number(code.number()), Some(code));
            assert_eq!(StatusCode::from_name(code.name()), Some(code));
            assert_eq!(TF_Code::from(code).canonical(), Some(code));
            assert_eq!(TF_Code::from(code).name(), Some(code.name()));
        }
        for number in [17, -1, i32::MIN, i32::MAX] {
            assert_eq!(StatusCode::from_number(number), None);
            assert_eq!(TF_Code(number).canonical(), None);
        }
        assert_eq!(StatusCode::from_name("invalid_argument"), None);
        assert_eq!(TF_Code::DATA_LOSS, StatusCode::DataLoss.into());
    }
}
