//! A layout as data: structs, their members, and what is said of them.

use super::outcome::Deprecation;

/// A layout that was read from a file, or is built in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutDocument {
    pub(super) structs: Vec<Structure>,
    pub(super) version: Option<[i64; 3]>,
    pub(super) source: Source,
    /// Slips that do not keep the layout from being compared, for people.
    pub(super) remarks: Vec<String>,
}

/// The source of a layout, which decides about the facts that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A layout of this crate without enumerations, whose marks are from this project's header.
    BuiltIn,
    /// A JSON file, or a layout of this crate that says everything that such a file can.
    File,
    /// A C header.
    Header,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Structure {
    pub(super) name: String,
    pub(super) struct_size: u64,
    pub(super) alignment: Option<u64>,
    pub(super) deprecation: Option<Deprecation>,
    /// The successor: a struct of the layout.
    pub(super) replaced_by: Option<String>,
    pub(super) fields: Vec<Field>,
    pub(super) values: Vec<(String, i64)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) signature: Option<String>,
    pub(super) deprecation: Option<Deprecation>,
    /// The successor: a member of the struct, or `STRUCT.MEMBER`.
    pub(super) replaced_by: Option<String>,
    pub(super) zero: Zero,
    /// Set if one side cannot do without it.
    pub(super) required: bool,
}

impl Structure {
    /// Returns `true` if it is an enumeration.
    pub(super) fn is_enumeration(&self) -> bool {
        self.fields.is_empty() && !self.values.is_empty()
    }
}

/// The meaning of 0 or NULL in a field, as a layout declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Zero {
    /// That it is a no-op.
    NoOp,
    /// That it is a value, or says that something optional is not provided.
    Meaningful,
    /// Nothing, which counts as meaningful.
    Unmarked,
}

impl Zero {
    pub(super) fn is_no_op(self) -> bool {
        self == Self::NoOp
    }

    /// Returns the meaning in words.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::NoOp => "a no-op",
            Self::Meaningful => "a value",
            Self::Unmarked => "not marked (and so a value)",
        }
    }
}

impl Field {
    pub(super) fn end(&self) -> u64 {
        self.offset.saturating_add(self.size)
    }

    /// Returns the part that two fields share if one is the other under another name.
    pub(super) fn position(&self) -> (u64, u64, &str) {
        (self.offset, self.size, &self.kind)
    }

    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.offset < other.end() && other.offset < self.end()
    }
}
