//! The configuration of `serdes check`: `serdes.toml` and the command line.
//!
//! Maps the keys of the file to options. Opens no artifacts.

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
