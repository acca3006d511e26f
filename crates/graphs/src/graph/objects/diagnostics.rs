//! The diagnostics of an object graph, and the selection of the one that a release finds first.
//!
//! Depends on the order of the steps of `tf.saved_model.load`, but not on the checks that find
//! diagnostics.

use crate::{
    graph::{
        ImportDiagnosticKind,
        release::{PerRelease, ReleaseId, Releases},
    },
    ops::Registry,
};

/// The step of a loader that finds a diagnostic, in the loader's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// The functions of the library are built.
    Functions,
    /// The objects are ordered.
    Order,
    /// The objects are created.
    Objects,
    /// Each object gets its children.
    Children,
    /// The functions that belong to no object are bound.
    Remaining,
    /// The functions that save objects are called.
    Saving,
}

/// The owner of a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// The graph as a whole.
    Graph,
    /// An object, by its number.
    Object(u32),
    /// A function of the library, by its name.
    Function(String),
}

/// A diagnostic for some release.
#[derive(Clone, Debug)]
pub(super) struct ObjectDiagnostic {
    pub(super) step: Step,
    pub(super) whose: Whose,
    pub(super) kind: ImportDiagnosticKind,
    pub(super) found: String,
    pub(super) expected: &'static str,
    /// True for each release that finds the diagnostic.
    releases: PerRelease<bool>,
}

/// Number of diagnostics after which another is kept only for releases that have none yet; a
/// damaged file usually has one.
const MOST_DIAGNOSTICS: usize = 64;

/// The diagnostics so far.
#[derive(Debug)]
pub(super) struct ObjectDiagnostics<'r> {
    releases: Releases<'r>,
    found: Vec<ObjectDiagnostic>,
}

impl<'r> ObjectDiagnostics<'r> {
    pub(super) fn new(releases: Releases<'r>) -> Self {
        Self { releases, found: Vec::new() }
    }

    /// Records a diagnostic of the object graph for the releases of which `finds` is true.
    pub(super) fn tell(
        &mut self,
        step: Step,
        finds: impl Fn(&Registry) -> bool,
        diagnostic: impl FnOnce() -> (Whose, String, &'static str),
    ) {
        self.tell_of(|| ImportDiagnosticKind::Objects, step, finds, diagnostic);
    }

    /// Records a diagnostic like [`tell`](Self::tell), but of the given kind.
    pub(super) fn tell_of(
        &mut self,
        kind: impl FnOnce() -> ImportDiagnosticKind,
        step: Step,
        finds: impl Fn(&Registry) -> bool,
        diagnostic: impl FnOnce() -> (Whose, String, &'static str),
    ) {
        let releases = self.releases.map(|_, registry| finds(registry));
        let is_full = self.found.len() >= MOST_DIAGNOSTICS;
        let is_kept = |release| !is_full || !self.found.iter().any(|one| one.releases[release]);
        if !releases.iter().any(|(release, finds)| *finds && is_kept(release)) {
            return;
        }
        let (whose, found, expected) = diagnostic();
        self.found.push(ObjectDiagnostic { step, whose, kind: kind(), found, expected, releases });
    }

    /// Drops the diagnostics of objects that are created as another kind than declared.
    pub(super) fn forget_objects(&mut self, is_other: impl Fn(u32) -> bool) {
        self.found.retain(|diagnostic| match diagnostic.whose {
            Whose::Object(number) => diagnostic.step != Step::Objects || !is_other(number),
            Whose::Graph | Whose::Function(_) => true,
        });
    }

    /// Returns the first diagnostic of each release.
    pub(super) fn first(&self) -> PerRelease<Option<&ObjectDiagnostic>> {
        let of_release = |release: ReleaseId| {
            self.found.iter().filter(move |diagnostic| diagnostic.releases[release])
        };
        self.releases.map(|release, _| of_release(release).min_by_key(|diagnostic| diagnostic.step))
    }
}
