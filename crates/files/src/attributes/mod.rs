//! Attributes of a file that a replacement preserves.

#[cfg(not(unix))]
mod elsewhere;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(super) use elsewhere::Attributes;
#[cfg(unix)]
pub(super) use unix::Attributes;
