//! What a file has besides its bytes and its name, which its successor gets.

#[cfg(not(unix))]
mod elsewhere;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(super) use elsewhere::Attributes;
#[cfg(unix)]
pub(super) use unix::Attributes;
