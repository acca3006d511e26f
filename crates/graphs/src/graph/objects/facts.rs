//! The facts about an object graph that are kept until all of it has been read.
//!
//! Depends on objects by number and functions by the hashes of their names, but not on the loaders.

use std::collections::HashMap;

use super::parameters::Parameter;

/// Limit on the memory for the facts of an object graph, in bytes. An object graph that needs more
/// (a million objects with many facts) is not judged.
const MOST_KEPT: usize = 8 << 20;

/// Limit on the objects whose parents are kept, for describing the position of an object.
const MOST_PARENTS: usize = 1 << 20;

/// The kind of an object, by what a loader creates for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ObjectKind {
    /// An unknown kind.
    #[default]
    Unset,
    User,
    /// An object that is captured as a tensor: an asset or a constant.
    Capturable,
    Resource,
    /// A resource that no function creates, so that it has no tensor.
    UnmadeResource,
    Variable,
    CapturedTensor,
    Function,
    BareFunction,
    /// Created by a registered class, in an unknown way.
    Registered,
}

/// An object that calls a function of the library.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller {
    pub(super) object: u32,
    /// The hash of the function's name.
    pub(super) function: u64,
    pub(super) parameters: CallerSpec,
    /// True if the types of its parameters are recorded.
    pub(super) has_signature: bool,
    pub(super) is_bare: bool,
}

/// The parameters of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallerSpec {
    /// The caller does not describe its parameters, which is allowed.
    Absent,
    /// Unknown: the specification was not understood.
    Unclear,
    /// The parameters between two positions in [`Facts::parameters`].
    Known(u32, u32),
}

/// The facts of a function in the object graph.
#[derive(Clone, Copy, Debug)]
pub(super) struct Concrete {
    /// The range in [`Facts::bound`] of its inputs that are objects.
    pub(super) bound: (u32, u32),
    pub(super) traced: Tracing,
}

/// The arguments that a function was traced with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tracing {
    /// Not recorded: the function cannot be called by a signature.
    Absent,
    /// Recorded in a form other than a pair of positions and names.
    NoPair,
    /// Recorded as a pair whose second part has no names.
    Unnamed,
    /// Unknown: the recorded values were not understood.
    Unclear,
    /// Recorded: the number of positional values, whether the first of them is a tensor, and the
    /// range of the keyword names in [`Facts::names`].
    Known { positions: u32, is_tensor: bool, names: (u32, u32) },
}

/// An object that is saved and restored by functions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saveable {
    pub(super) object: u32,
    pub(super) save: i32,
    pub(super) restore: i32,
    /// True if a loader calls the function that saves the object.
    pub(super) is_called: bool,
}

/// A reference from one object to another, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) to: i32,
}

/// All facts that are kept.
#[derive(Debug, Default)]
pub(super) struct Facts {
    kept: usize,
    /// True if the effect of some item on a loader is unknown; then nothing is judged.
    pub(super) is_unclear: bool,
    pub(super) kinds: Vec<ObjectKind>,
    /// For each object, the number of one parent plus one; 0 if none is known.
    pub(super) parents: Vec<u32>,
    pub(super) callers: Vec<Caller>,
    pub(super) functions: HashMap<u64, Concrete>,
    pub(super) bound: Vec<i32>,
    pub(super) names: Vec<u64>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) dependencies: Vec<Edge>,
    /// The children with the lowest and the highest number.
    pub(super) extreme_children: Option<(Edge, Edge)>,
    pub(super) saveables: Vec<Saveable>,
    /// The slot variables of optimizers, each with the variable that it belongs to.
    pub(super) slots: Vec<(i32, i32)>,
}

impl Facts {
    /// Reserves memory for `count` more values of a type; returns false if the limit is exceeded,
    /// after which nothing is judged.
    pub(super) fn has_room<T>(&mut self, count: usize) -> bool {
        self.kept = self.kept.saturating_add(count.saturating_mul(size_of::<T>()));
        self.is_unclear |= self.kept > MOST_KEPT;
        !self.is_unclear
    }

    /// Returns the number of objects.
    pub(super) fn objects(&self) -> i64 {
        i64::try_from(self.kinds.len()).unwrap_or(i64::MAX)
    }

    /// Returns the number of the object that is being read.
    pub(super) fn number(&self) -> u32 {
        u32::try_from(self.kinds.len()).unwrap_or(u32::MAX)
    }

    /// Returns the position of an object by its number, interpreted as an index into a Python list.
    pub(super) fn position(&self, number: i32) -> Option<usize> {
        let number = i64::from(number);
        let position = if number < 0 { number + self.objects() } else { number };
        usize::try_from(position).ok().filter(|position| *position < self.kinds.len())
    }

    /// Records that an object is a child of another.
    pub(super) fn child(&mut self, edge: Edge) {
        let (lowest, highest) = self.extreme_children.get_or_insert((edge, edge));
        if edge.to < lowest.to {
            *lowest = edge;
        }
        if edge.to > highest.to {
            *highest = edge;
        }
        let Ok(child) = usize::try_from(edge.to) else { return };
        if (self.parents.len()..MOST_PARENTS).contains(&child) {
            self.parents.resize(child.saturating_add(1), 0);
        }
        if let Some(parent) = self.parents.get_mut(child).filter(|parent| **parent == 0) {
            *parent = edge.from.saturating_add(1);
        }
    }

    /// Returns the inputs of a function that are objects.
    pub(super) fn bound_of(&self, function: u64) -> &[i32] {
        let known = self.functions.get(&function).map(|found| found.bound);
        let (start, end) = known.unwrap_or_default();
        self.bound.get(start as usize..end as usize).unwrap_or_default()
    }

    pub(super) fn names_of(&self, (start, end): (u32, u32)) -> &[u64] {
        self.names.get(start as usize..end as usize).unwrap_or_default()
    }

    pub(super) fn parameters_of(&self, start: u32, end: u32) -> &[Parameter] {
        self.parameters.get(start as usize..end as usize).unwrap_or_default()
    }
}
