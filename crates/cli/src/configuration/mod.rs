//! The configuration of `serdes check`: `serdes.toml`, and what the command line says besides.
//!
//! Knows the keys of the file and the options that they stand for. It must never open an artifact.

mod effective;
mod file;
mod key;
mod search;

pub(crate) use effective::{Effective, Origin};

/// Returns true if a text is a configuration.
#[cfg(test)]
pub(crate) fn accepts(text: &str) -> bool {
    file::Content::parse(text).is_ok()
}

/// Returns the keys of the table `check`.
#[cfg(test)]
pub(crate) fn keys() -> impl Iterator<Item = &'static str> {
    key::Key::ALL.into_iter().map(key::Key::name)
}
