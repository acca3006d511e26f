//! Functions whose names are those of operations.

use crate::{
    release::{PerRelease, ReleaseId, Releases},
    rules::shown,
};

/// A function that has the name of an operation.
#[derive(Clone, Debug)]
pub struct NameClash {
    /// Its position in the library.
    pub number: u32,
    /// Its name, cut for messages.
    pub name: String,
}

/// The first such function, for each release.
#[derive(Debug)]
pub struct NameClashes {
    functions: u32,
    by_release: PerRelease<Option<NameClash>>,
}

impl NameClashes {
    pub(super) fn of(releases: Releases<'_>) -> Self {
        Self { functions: 0, by_release: releases.all(None) }
    }

    /// Adds the next function of the library.
    pub(super) fn function(&mut self, name: &[u8], releases: Releases<'_>) {
        let number = self.functions;
        self.functions = self.functions.saturating_add(1);
        let Ok(text) = std::str::from_utf8(name) else { return };
        for (release, first) in self.by_release.iter_mut() {
            if first.is_none() && releases.registry(release).operation(text).is_some() {
                *first = Some(NameClash { number, name: shown(name) });
            }
        }
    }

    /// Returns the first function of the library that has the name of an operation of this release.
    pub fn first(&self, release: ReleaseId) -> Option<&NameClash> {
        self.by_release[release].as_ref()
    }
}
