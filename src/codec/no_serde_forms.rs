//! Stand-in for the module `serde_forms` in builds without the feature `serde`.

macro_rules! serde_as_message {
    ($($arguments:tt)*) => {};
}
pub(crate) use serde_as_message;

macro_rules! deserialize_checked {
    ($($arguments:tt)*) => {};
}
pub(crate) use deserialize_checked;
