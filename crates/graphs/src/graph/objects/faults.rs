//! The faults of an object graph, and which of them a release finds first.
//!
//! Knows the order in which `tf.saved_model.load` looks. It must never know how a fault was found.

use crate::{graph::ImportFaultKind, ops::Registry};

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
    /// The registries that find it, as bits.
    releases: u64,
}

/// Faults that are kept, each of which some release finds; a broken file has one.
const MOST_FAULTS: usize = 64;

/// The faults so far.
#[derive(Debug)]
pub(super) struct ObjectFaults<'r> {
    registries: &'r [Registry],
    found: Vec<ObjectFault>,
}

impl<'r> ObjectFaults<'r> {
    pub(super) fn new(registries: &'r [Registry]) -> Self {
        Self { registries, found: Vec::new() }
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
        let bits = (0..u64::BITS).zip(self.registries);
        let releases = bits.filter(|(_, registry)| finds(registry)).map(|(bit, _)| 1 << bit).sum();
        let known = self.found.iter().fold(0, |known, fault| known | fault.releases);
        if releases == 0 || (self.found.len() >= MOST_FAULTS && releases & !known == 0) {
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

    /// By registry, what it finds first.
    pub(super) fn first(&self) -> Vec<Option<&ObjectFault>> {
        let first = |(bit, _)| {
            let mask = 1_u64.checked_shl(bit).unwrap_or_default();
            self.found
                .iter()
                .filter(|fault| fault.releases & mask != 0)
                .min_by_key(|fault| fault.step)
        };
        (0_u32..).zip(self.registries).map(first).collect()
    }
}
