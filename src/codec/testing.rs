//! Checks of formats, for the tests of crates with types of their own: that the requested version
//! reaches everything inside a value, that no format of the registry is left unwritten, and that
//! each format keeps the bytes that it was released with ([`golden`]). Needs the feature `testing`,
//! which belongs under `[dev-dependencies]`.
//!
//! A version that is lost on the way is easily overlooked (seed 001): the value is written, and
//! only an older reader notices. Here every [request for a format](super::Formats::for_request) is
//! recorded.
//!
//! ```
//! use serdes::codec::{EncodeError, Formats, ToProto, testing};
//! use serdes::ifrt::Shape;
//! use serdes::version::{Ifrt, SerDesAnyVersionAccessor, SerDesVersion};
//!
//! /// Forgets which version it was asked for.
//! struct Forgetful(Shape);
//!
//! impl ToProto for Forgetful {
//!     type Proto = <Shape as ToProto>::Proto;
//!     fn to_proto(&self, _: SerDesVersion) -> Result<Self::Proto, EncodeError> {
//!         self.0.to_proto(SerDesAnyVersionAccessor::minimum())
//!     }
//! }
//!
//! let shape = Shape::new([4, 2])?;
//! testing::check_propagation::<Ifrt, _>(&shape)?;
//! let lost = testing::check_propagation::<Ifrt, _>(&Forgetful(shape)).unwrap_err();
//! assert_eq!((lost.type_name, lost.expected, lost.requested), ("Shape", 1, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod golden;

use std::cell::RefCell;

pub use golden::{GoldenError, golden};

use super::{ErrorKind, ToProto};
use crate::version::{AnyVersionAccessor, Line};

thread_local! {
    static REQUESTS: RefCell<Vec<Vec<Request>>> = const { RefCell::new(Vec::new()) };
}

/// One request for the format of a type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Request {
    /// The name of the line in versions.toml.
    pub line: &'static str,
    /// The type.
    pub type_name: &'static str,
    /// The number that was requested.
    pub requested: i32,
    /// The number that is recorded; `None` if the type does not exist at the request.
    pub recorded: Option<i32>,
}

pub(super) fn add<L: Line>(type_name: &'static str, requested: i32, recorded: Option<i32>) {
    REQUESTS.with_borrow_mut(|listeners| {
        for requests in listeners {
            requests.push(Request { line: L::NAME, type_name, requested, recorded });
        }
    });
}

/// Runs `write` and returns its result with the requests that were made on this thread meanwhile,
/// in order.
///
/// ```
/// use serdes::codec::{ToProto, testing};
/// use serdes::ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding};
/// use serdes::version::SerDesWeek4OldVersionAccessor;
///
/// let spec = ArraySpec::new(DType::F32, Shape::scalar(), SingleDeviceSharding::new(DeviceId(0)));
/// let version = SerDesWeek4OldVersionAccessor::get();
/// let (message, requests) = testing::record(|| spec.to_proto(version));
/// assert!(message.is_ok() && requests.iter().any(|request| request.type_name == "DType"));
/// assert!(requests.iter().all(|request| request.requested == version.number()));
/// ```
pub fn record<R>(write: impl FnOnce() -> R) -> (R, Vec<Request>) {
    /// Stops recording on drop, also if `write` panics.
    struct Listener;
    impl Drop for Listener {
        fn drop(&mut self) {
            REQUESTS.with_borrow_mut(Vec::pop);
        }
    }
    REQUESTS.with_borrow_mut(|listeners| listeners.push(Vec::new()));
    let listener = Listener;
    let result = write();
    let requests = REQUESTS.with_borrow_mut(|all| all.last_mut().map(std::mem::take));
    drop(listener);
    (result, requests.unwrap_or_default())
}

/// The error that a type inside a value was asked for a different version than the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{type_name} was asked for version {requested} of {line}, but version {at} of the value around it needs {expected}: hand the requested version on"
)]
#[non_exhaustive]
pub struct LostVersion {
    /// The type that received the request.
    pub type_name: &'static str,
    /// The line of the type.
    pub line: &'static str,
    /// The version that the value was asked for.
    pub at: i32,
    /// The version that the type should have been asked for: the same one, or for a type of another
    /// line the one that versions.toml embeds.
    pub expected: i32,
    /// The version that the type was asked for.
    pub requested: i32,
}

impl LostVersion {
    /// Returns the kind of the error, which says what action it calls for.
    pub const fn kind(&self) -> ErrorKind {
        ErrorKind::Faulty
    }
}

/// Writes `value` at every version of the line and fails unless each type inside it is asked for
/// the same version; a type of another line must be asked for the version that the line's
/// versions.toml gives under `embeds`. Returns all requests.
///
/// # Errors
/// The first version that was lost.
pub fn check_propagation<L: Line, T: ToProto<L>>(value: &T) -> Result<Vec<Request>, LostVersion> {
    let mut all = Vec::new();
    for entry in L::ENTRIES {
        let Ok(version) = AnyVersionAccessor::<L>::get(entry.number) else { continue };
        let (_, requests) = record(|| value.to_proto(version).map(drop));
        for Request { line, type_name, requested, .. } in &requests {
            let expected = match *line == L::NAME {
                true => Some(entry.number),
                false => crate::version::embedded_number::<L>(line, entry.number),
            };
            // A line that is not embedded has no expected version.
            if let Some(expected) = expected.filter(|expected| expected != requested) {
                let (line, type_name, requested) = (*line, *type_name, *requested);
                let at = entry.number;
                return Err(LostVersion { type_name, line, at, expected, requested });
            }
        }
        all.extend(requests);
    }
    Ok(all)
}

/// Returns the formats of the line's versions.toml that none of `requests` recorded, as type and
/// number: no code writes them, or no sample does.
///
/// ```
/// use serdes::codec::{ToProto, testing};
/// use serdes::ifrt::Shape;
/// use serdes::version::{Ifrt, SerDesAnyVersionAccessor};
///
/// let write = || Shape::scalar().to_proto(SerDesAnyVersionAccessor::minimum());
/// let (_, requests) = testing::record(write);
/// let unwritten = testing::unwritten::<Ifrt>(&requests);
/// assert!(!unwritten.contains(&("Shape", 0)) && unwritten.contains(&("RemapPlan", 6)));
/// ```
pub fn unwritten<L: Line>(requests: &[Request]) -> Vec<(&'static str, i32)> {
    let is_written = |name: &str, number: i32| {
        requests.iter().any(|request| {
            let recorded = request.recorded == Some(number);
            request.line == L::NAME && request.type_name == name && recorded
        })
    };
    let types = L::TYPES.iter();
    types
        .flat_map(|found| found.recorded.iter().map(|number| (found.name, *number)))
        .filter(|(name, number)| !is_written(name, *number))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        codec::Formats,
        version::{Ifrt, SerDesAnyVersionAccessor},
    };

    #[test]
    fn requests_are_heard_at_every_nesting_and_not_after_a_panic() {
        let formats = Formats::<Ifrt>::of("RemapPlan");
        let ask = |number| formats.for_request(SerDesAnyVersionAccessor::get(number).unwrap());
        let ((_, inner), outer) = record(|| {
            ask(5).unwrap();
            record(|| ask(6))
        });
        let numbers = |requests: &[Request]| -> Vec<_> {
            requests.iter().map(|request| (request.requested, request.recorded)).collect()
        };
        assert_eq!(numbers(&inner), [(6, Some(6))]);
        assert_eq!(numbers(&outer), [(5, Some(0)), (6, Some(6))]);
        let panicked = std::panic::catch_unwind(|| record(|| panic!("on purpose")));
        assert!(panicked.is_err() && REQUESTS.with_borrow(Vec::is_empty));
    }
}
