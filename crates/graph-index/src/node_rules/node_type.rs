//! The types of the inputs and outputs of a node.

/// The type of a tensor on an edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ElementType {
    /// The number of the element type; 0, invalid, if it is undetermined.
    pub data_type: i32,
    /// True for a reference to a variable's memory.
    pub is_reference: bool,
    /// True for an operation known only by name: its types are unknown.
    pub is_any: bool,
}

impl ElementType {
    /// An edge of unknown type.
    pub const ANY: Self = Self { data_type: 0, is_reference: false, is_any: true };

    /// Creates an edge of this type.
    pub const fn new(data_type: i32, is_reference: bool) -> Self {
        Self { data_type, is_reference, is_any: false }
    }

    /// Returns true if an input of this type accepts an output of type `output`: the same type, or
    /// a reference to it. An input that is a reference accepts references alone, and one of the
    /// invalid type 0 no reference. An unknown type is compatible with every type.
    pub fn takes(self, output: Self) -> bool {
        let is_base_of = output.is_reference && !self.is_reference && self.data_type != 0;
        let is_same = self.data_type == output.data_type
            && (self.is_reference == output.is_reference || is_base_of);
        is_same || self.is_any || output.is_any
    }
}

/// Consecutive inputs or outputs of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeRun {
    /// The type of each.
    pub element: ElementType,
    /// The position after the last one.
    pub end: u64,
}

/// The types of all inputs, or of all outputs, of a node. Its size does not depend on the number of
/// tensors of one type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TypeList {
    runs: Vec<TypeRun>,
    /// True if there may be any number of any type.
    is_open: bool,
}

impl TypeList {
    /// Creates a list of any number of tensors of any type.
    pub(super) const fn open() -> Self {
        Self { runs: Vec::new(), is_open: true }
    }

    /// Appends `count` tensors of a type.
    pub fn push(&mut self, element: ElementType, count: u64) {
        let end = self.len().saturating_add(count);
        match self.runs.last_mut() {
            _ if count == 0 => {}
            Some(last) if last.element == element => last.end = end,
            _ => self.runs.push(TypeRun { element, end }),
        }
    }

    /// Returns the number of tensors; the greatest possible one if any number is allowed.
    pub fn len(&self) -> u64 {
        let any = if self.is_open { u64::MAX } else { 0 };
        self.runs.last().map_or(any, |last| last.end)
    }

    /// Returns true if there are no tensors.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if a node may have this number of tensors.
    #[inline]
    pub fn may_be(&self, count: u64) -> bool {
        self.is_open || self.len() == count
    }

    /// Returns the type at `position`, counted from 0.
    #[inline]
    pub fn get(&self, position: u64) -> Option<ElementType> {
        if self.is_open {
            return Some(ElementType::ANY);
        }
        let run = self.runs.partition_point(|run| run.end <= position);
        self.runs.get(run).map(|run| run.element)
    }

    /// Returns the runs of equal types, in order; adjacent runs differ. Empty if any number of
    /// tensors is allowed.
    pub fn runs(&self) -> &[TypeRun] {
        &self.runs
    }
}

/// The types of the inputs and outputs of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeType {
    /// The types of its data inputs.
    pub inputs: TypeList,
    /// The types of its outputs.
    pub outputs: TypeList,
}
