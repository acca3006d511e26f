//! Writes `serde` forms at a requested version, which `serde` itself cannot pass as an argument.

use std::cell::Cell;

use serde::{Serialize, Serializer, ser::Error as _};

use super::ToProto;
use crate::version::{AnyVersionAccessor, DefaultVersionAccessor, Ifrt, SerDesVersion};

thread_local! {
    /// The version number at which the current thread is writing a value.
    static REQUESTED: Cell<Option<i32>> = const { Cell::new(None) };
}

/// Returns the version at which types that are kept as messages are written: the version of the
/// enclosing [`At`], else the default.
#[track_caller]
pub(crate) fn requested() -> SerDesVersion {
    let number = REQUESTED.get().and_then(|number| AnyVersionAccessor::<Ifrt>::get(number).ok());
    match number {
        Some(version) => version,
        None => DefaultVersionAccessor::get(),
    }
}

/// A value whose `serde` form is readable by builds of a given version.
///
/// Without this wrapper, the `serde` form of a value is written at the default version. Types that
/// are kept as a message (options, versions and metadata of programs) are then written at the
/// current version, and a feature that came later is not an error. Use the wrapper for data that a
/// build of another day reads.
///
/// ```
/// use serdes::codec::At;
/// use serdes::ifrt::{DType, XlaCompileOptions};
/// use serdes::version::{SerDesAnyVersionAccessor, SerDesWeek4OldVersionAccessor};
///
/// let options = XlaCompileOptions::new(&b"\x10\x01"[..])?;
/// let for_older_builds = At::new(SerDesWeek4OldVersionAccessor::get(), &options);
/// assert_eq!(serde_json::to_string(&for_older_builds)?, "\"0a0210011804\"");
/// // Version 3 has no number in these options, and no floats of six bits.
/// let three = SerDesAnyVersionAccessor::get(3)?;
/// assert_eq!(serde_json::to_string(&At::new(three, &options))?, "\"0a021001\"");
/// let error = serde_json::to_string(&At::new(three, &DType::F6E2M3FN)).unwrap_err();
/// assert!(error.to_string().contains("version 4 is the first that can"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct At<'v, T> {
    version: SerDesVersion,
    value: &'v T,
}

impl<'v, T> At<'v, T> {
    /// Creates the form of `value` for readers of `version`.
    pub const fn new(version: SerDesVersion, value: &'v T) -> Self {
        Self { version, value }
    }
}

impl<T: Serialize + ToProto> Serialize for At<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// Restores the previous version on drop, also if writing panics.
        struct Around(Option<i32>);
        impl Drop for Around {
            fn drop(&mut self) {
                REQUESTED.set(self.0);
            }
        }
        self.value.can_serialize_at(self.version).map_err(S::Error::custom)?;
        let _around = Around(REQUESTED.replace(Some(self.version.number())));
        self.value.serialize(serializer)
    }
}
