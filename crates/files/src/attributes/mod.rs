//! Attributes of a file that a replacement preserves.

#[cfg(not(unix))]
mod non_unix;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(super) use non_unix::Attributes;
#[cfg(unix)]
pub(super) use unix::Attributes;
