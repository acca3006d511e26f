//! The tensors that a saver reads from a checkpoint, and the tables that are initialized from them.

/// The shape that a loader requires of a tensor that it restores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fit {
    /// No requirement.
    #[default]
    Any,
    /// The tensor must have these sizes.
    Shape(Vec<i64>),
    /// The tensor must have this number of elements.
    Elements(i64),
}

/// A tensor that is read from a checkpoint.
#[derive(Clone, Debug)]
pub struct RestoredTensor {
    /// Its name.
    pub name: Vec<u8>,
    /// The part of it, as RestoreV2 receives it: empty for all of it.
    pub slice: Vec<u8>,
    /// The number of the element type.
    pub data_type: i32,
    /// The shapes that fit.
    pub fit: Fit,
}

/// The relation between the keys of a table and its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableShape {
    /// One value for each key.
    Scalars,
    /// One tensor for each key, of these sizes if they are known.
    Values(Option<Vec<i64>>),
    /// One row for each row.
    Rows,
    /// Unknown, but as many values as keys.
    Unknown,
}

/// A table that is filled from two tensors, by their positions.
#[derive(Clone, Debug)]
pub struct RestoredTable {
    /// Position of the keys.
    pub keys: usize,
    /// Position of the values.
    pub values: usize,
    /// The relation between the two.
    pub shape: TableShape,
}

/// All tensors that a saver reads.
#[derive(Clone, Debug, Default)]
pub struct RestoredTensors {
    /// The tensors.
    pub tensors: Vec<RestoredTensor>,
    /// Tables that are filled from them.
    pub tables: Vec<RestoredTable>,
}
