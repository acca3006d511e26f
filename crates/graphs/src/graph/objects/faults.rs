//! The faults of an object graph, and which of them a release finds first.
//!
//! Knows the order in which `tf.saved_model.load` looks. It must never know how a fault was found.

use crate::{
    graph::{
        ImportFaultKind,
        release::{PerRelease, ReleaseId, Releases},
    },
    ops::Registry,
};

/// The step of a loader that finds a fault, in the loader's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// It builds the functions of the library.
    Functions,
    /// It brings the objects into an order.
    Order,
    /// It makes the objects.
    Objects,
    /// It gives each object its children.
    Children,
    /// It binds the functions that no object has.
    Remaining,
    /// It calls the functions that save objects.
    Saving,
}

/// Who has a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// The graph as a whole.
    Graph,
    /// An object, by its number.
    Object(u32),
    /// A function of the library, by its name.
    Function(String),
}

/// Something that some release refuses.
#[derive(Clone, Debug)]
pub(super) struct ObjectFault {
    pub(super) step: Step,
    pub(super) whose: Whose,
    pub(super) kind: ImportFaultKind,
    pub(super) found: String,
    pub(super) expected: &'static str,
    /// True for a release that finds it.
    releases: PerRelease<bool>,
}

/// Faults that are kept, each of which some release finds; a broken file has one.
const MOST_FAULTS: usize = 64;

/// The faults so far.
#[derive(Debug)]
pub(super) struct ObjectFaults<'r> {
    releases: Releases<'r>,
    found: Vec<ObjectFault>,
}

impl<'r> ObjectFaults<'r> {
    pub(super) fn new(releases: Releases<'r>) -> Self {
        Self { releases, found: Vec::new() }
    }

    /// Tells of a fault of the object graph that the releases find of which `finds` says so.
    pub(super) fn tell(
        &mut self,
        step: Step,
        finds: impl Fn(&Registry) -> bool,
        fault: impl FnOnce() -> (Whose, String, &'static str),
    ) {
        self.tell_of(|| ImportFaultKind::Objects, step, finds, fault);
    }

    /// The same of another kind.
    pub(super) fn tell_of(
        &mut self,
        kind: impl FnOnce() -> ImportFaultKind,
        step: Step,
        finds: impl Fn(&Registry) -> bool,
        fault: impl FnOnce() -> (Whose, String, &'static str),
    ) {
        let releases = self.releases.map(|_, registry| finds(registry));
        let is_full = self.found.len() >= MOST_FAULTS;
        let is_kept = |release| !is_full || !self.found.iter().any(|one| one.releases[release]);
        if !releases.iter().any(|(release, finds)| *finds && is_kept(release)) {
            return;
        }
        let (whose, found, expected) = fault();
        self.found.push(ObjectFault { step, whose, kind: kind(), found, expected, releases });
    }

    /// Forgets the faults of objects that are made otherwise than they say.
    pub(super) fn forget_objects(&mut self, is_other: impl Fn(u32) -> bool) {
        self.found.retain(|fault| match fault.whose {
            Whose::Object(number) => fault.step != Step::Objects || !is_other(number),
            Whose::Graph | Whose::Function(_) => true,
        });
    }

    /// The fault that each release finds first.
    pub(super) fn first(&self) -> PerRelease<Option<&ObjectFault>> {
        let of_release =
            |release: ReleaseId| self.found.iter().filter(move |fault| fault.releases[release]);
        self.releases.map(|release, _| of_release(release).min_by_key(|fault| fault.step))
    }
}
