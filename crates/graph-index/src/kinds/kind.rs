//! One kind of node.

/// The number of a kind in [`Kinds`](super::Kinds).
pub type KindNumber = u32;

/// The number of a node type in [`Kinds`](super::Kinds).
pub(super) type TypeNumber = u32;

/// The result of judging a node by itself for a registry: steps 2 to 6 of the importer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Judged {
    /// It has no such operation.
    Unknown,
    /// The attributes do not fit.
    Fault,
    /// The node is good by itself, and has inputs and outputs of these types.
    Types(TypeNumber),
}

/// Nodes that have the same operation and attributes that mean the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// The number of the operation in [`Kinds`](super::Kinds).
    pub(super) operation: u32,
    /// By view; one for all of them where it is the same.
    pub(super) judged: Box<[Judged]>,
    /// True if only the types of its nodes are checked: no registry deprecates the operation or
    /// lacks its shape function, it is no function, and no attribute has an invalid shape.
    pub is_plain: bool,
    /// True if a shape function refuses it whatever its inputs are.
    pub has_shape_fault: bool,
}

impl Kind {
    /// The result for a view.
    pub fn judged(&self, view: usize) -> Judged {
        match *self.judged {
            [judged] => judged,
            _ => self.judged.get(view).copied().unwrap_or(Judged::Unknown),
        }
    }

    /// Its types, where every view has the same.
    pub fn common_types(&self) -> Option<TypeNumber> {
        match *self.judged {
            [Judged::Types(types)] => Some(types),
            _ => None,
        }
    }
}
