//! A layout as data: structs, their members and the marks of both.

use super::outcome::Deprecation;

/// A layout that was read from a file, or a built-in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutDocument {
    pub(super) structs: Vec<Structure>,
    pub(super) version: Option<[i64; 3]>,
    pub(super) source: Source,
    /// Problems that do not prevent a comparison, for people.
    pub(super) remarks: Vec<String>,
}

/// The source of a layout, which determines the facts that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A layout of this crate without enumerations, with the marks of this project's header.
    BuiltIn,
    /// A JSON file, or a layout of this crate with all facts that such a file can have.
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
    /// The successor, another struct of the layout.
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
    /// The successor, a member of the struct or `STRUCT.MEMBER`.
    pub(super) replaced_by: Option<String>,
    pub(super) zero: Zero,
    /// True if one side cannot work without the field.
    pub(super) required: bool,
}

impl Structure {
    /// Returns `true` if the structure is an enumeration.
    pub(super) fn is_enumeration(&self) -> bool {
        self.fields.is_empty() && !self.values.is_empty()
    }
}

/// The meaning of 0 or NULL in a field, as a layout declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Zero {
    /// Zero is a no-op.
    NoOp,
    /// Zero is a value, or means that something optional is not provided.
    Meaningful,
    /// The layout has no mark, which counts as meaningful.
    Unmarked,
}

impl Zero {
    pub(super) fn is_no_op(self) -> bool {
        self == Self::NoOp
    }

    /// Returns the meaning as text.
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

    /// Returns the properties that two fields share if one is the other under a new name.
    pub(super) fn position(&self) -> (u64, u64, &str) {
        (self.offset, self.size, &self.kind)
    }

    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.offset < other.end() && other.offset < self.end()
    }
}
