//! The error of constructing, querying or parsing a value of IFRT.

use crate::codec::{DecodeError, ErrorKind, Status, StatusCode};

/// Returns an error for an invalid value, with `message`.
pub(in crate::ifrt) fn invalid<T>(message: impl Into<String>) -> Result<T, IfrtError> {
    Err(IfrtError::Invalid(message.into()))
}

/// The error of constructing, querying or parsing a value of an IFRT type. The caller is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IfrtError {
    /// A dimension is negative.
    #[error("dimension {index} is {found}; expected 0 or more elements")]
    #[non_exhaustive]
    NegativeDimension {
        /// The position of the dimension.
        index: usize,
        /// The number of elements found.
        found: i64,
    },
    /// A number does not fit its type.
    #[error("{what} does not fit {bits} bits; use a smaller one")]
    #[non_exhaustive]
    Overflow {
        /// Name of the number that is too large.
        what: &'static str,
        /// The width of the type.
        bits: u32,
    },
    /// An answer would take more memory than the caller allows.
    #[error(
        "{what} is {found}, the limit is {limit}; ask for fewer devices at a time, or allow more with the form that takes a limit"
    )]
    #[non_exhaustive]
    LimitExceeded {
        /// Name of the limited quantity, with its unit.
        what: &'static str,
        /// Size of the answer.
        found: u64,
        /// The most that is allowed.
        limit: u64,
    },
    /// Two values must have the same number of dimensions.
    #[error("{what} has rank {found}; expected rank {expected}, as the {other} has")]
    #[non_exhaustive]
    RankMismatch {
        /// Name of the value with the wrong rank.
        what: &'static str,
        /// The rank found.
        found: usize,
        /// Name of the value that it must agree with.
        other: &'static str,
        /// The rank of the other value.
        expected: usize,
    },
    /// Two values must have the same number of elements.
    #[error("found {found} {what}; expected {expected}, one for each of the {other}")]
    #[non_exhaustive]
    CountMismatch {
        /// Name of the counted items.
        what: &'static str,
        /// The count found.
        found: u64,
        /// Name of the items that they must agree with.
        other: &'static str,
        /// The count of those items.
        expected: u64,
    },
    /// A dimension cannot be cut into equal shards.
    #[error(
        "dimension {index} of {dimension} elements cannot be cut into {shards} equal shards; expected a multiple of {shards}"
    )]
    #[non_exhaustive]
    NotDivisible {
        /// The position of the dimension.
        index: usize,
        /// The number of elements in the dimension.
        dimension: i64,
        /// The number of shards.
        shards: i64,
    },
    /// The sharding describes a different array shape.
    #[error("the sharding is for the shape {expected}, not for {found}")]
    #[non_exhaustive]
    ShapeMismatch {
        /// The requested shape, as text.
        found: String,
        /// The shape that the sharding describes, as text.
        expected: String,
    },
    /// The sharding does not have the requested information.
    #[error("a {sharding} has no {what}; {remedy}")]
    #[non_exhaustive]
    NotKnown {
        /// The kind of sharding.
        sharding: &'static str,
        /// Name of the requested information.
        what: &'static str,
        /// Remedy for the caller.
        remedy: &'static str,
    },
    /// A value breaks a rule of its type.
    #[error("{0}")]
    Invalid(String),
    /// There is no attribute of this name.
    #[error("there is no attribute `{key}`")]
    #[non_exhaustive]
    MissingAttribute {
        /// The name.
        key: String,
    },
    /// The attribute is of another type.
    #[error("the attribute `{key}` is a {found}; expected a {expected}")]
    #[non_exhaustive]
    AttributeType {
        /// The name.
        key: String,
        /// The type found.
        found: &'static str,
        /// The requested type.
        expected: &'static str,
    },
    /// The text is not in the notation of the type.
    #[error("`{}` is not a {type_name}: wrong at byte {position}; expected {expected}", .found.escape_debug())]
    #[non_exhaustive]
    Text {
        /// The type.
        type_name: &'static str,
        /// The text found, the first 200 characters of it.
        found: String,
        /// Position of the first invalid byte, in bytes from the start of the text.
        position: usize,
        /// An example of the notation.
        expected: &'static str,
    },
}

impl IfrtError {
    pub(crate) fn text(
        type_name: &'static str,
        found: &str,
        position: usize,
        expected: &'static str,
    ) -> Self {
        Self::Text { type_name, found: found.chars().take(200).collect(), position, expected }
    }

    /// Returns the error that a sharding describes one array shape only, and another was requested.
    pub(in crate::ifrt) fn shape_mismatch(found: &impl ToString, expected: &impl ToString) -> Self {
        Self::ShapeMismatch { found: found.to_string(), expected: expected.to_string() }
    }

    /// Returns the kind of the error, which says what action it calls for.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::MissingAttribute { .. } => ErrorKind::NotFound,
            Self::LimitExceeded { .. } => ErrorKind::Limit,
            Self::NotKnown { .. } => ErrorKind::Unsupported,
            _ => ErrorKind::InvalidInput,
        }
    }

    /// Returns the status code that upstream returns in this case.
    pub const fn code(&self) -> StatusCode {
        match self {
            Self::MissingAttribute { .. } => StatusCode::NotFound,
            Self::LimitExceeded { .. } => StatusCode::ResourceExhausted,
            _ => StatusCode::InvalidArgument,
        }
    }

    /// Returns the error as a status.
    pub fn to_status(&self) -> Status {
        Status::new(self.code(), self.to_string())
    }

    /// Returns this error as the error of reading a `type_name`.
    pub(crate) fn decoding(self, type_name: &'static str) -> DecodeError {
        DecodeError::invalid_value(type_name, self.to_string())
    }
}
