//! Diagnostics that keep functions from being built, by function and release.

use std::rc::Rc;

use super::super::{
    by_release::{ByRelease, are_equal},
    instantiate::FunctionDiagnostic,
};
use crate::graph::release::{ReleaseId, Releases};

/// The diagnostic that keeps each release from building a function, by the function's number.
#[derive(Debug, Default)]
pub(super) struct DiagnosticTable {
    by_function: Vec<Option<ByRelease<FunctionDiagnostic>>>,
}

impl DiagnosticTable {
    /// Creates an empty table for this number of functions.
    pub(super) fn of(functions: usize) -> Self {
        Self { by_function: vec![None; functions] }
    }

    /// Returns the diagnostic of a function in a release, if any.
    pub(super) fn get(
        &self,
        function: usize,
        release: ReleaseId,
    ) -> Option<Rc<FunctionDiagnostic>> {
        self.by_function.get(function)?.as_ref()?.get(release).cloned()
    }

    /// Looks for a diagnostic in each release that has none for a function; returns true if one was
    /// found.
    pub(super) fn add(
        &mut self,
        releases: Releases<'_>,
        function: usize,
        find: impl Fn(&Self, ReleaseId) -> Option<Rc<FunctionDiagnostic>>,
    ) -> bool {
        let mut has_more = false;
        let all = releases.map(|release, _| {
            self.get(function, release).or_else(|| {
                let found = find(self, release);
                has_more |= found.is_some();
                found
            })
        });
        if has_more && let Some(known) = self.by_function.get_mut(function) {
            *known = ByRelease::of(all, |_| true, are_equal);
        }
        has_more
    }

    /// Sets the diagnostic of each release that has none for a function.
    pub(super) fn complete(
        &mut self,
        releases: Releases<'_>,
        function: usize,
        diagnostic: impl Fn() -> Rc<FunctionDiagnostic>,
    ) {
        self.add(releases, function, |_, _| Some(diagnostic()));
    }
}
