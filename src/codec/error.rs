//! The errors of writing and reading values, by the side that is at fault.

use super::{ErrorKind, Status, StatusCode};

/// An error of serializing a value.
///
/// Variants are split by the side that is at fault; [`code`](Self::code) gives the status that
/// upstream returns in the same case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The caller asked for a version that cannot express a feature of the value.
    #[error(
        "serialization of {type_name}: {line} version {requested} cannot express {feature}; version {first} is the first that can: request {first} or a newer version"
    )]
    #[non_exhaustive]
    UnsupportedAtVersion {
        /// The type that was to be written.
        type_name: &'static str,
        /// The feature that the version cannot express.
        feature: String,
        /// The title of the line of versions, as in "IFRT SerDes".
        line: &'static str,
        /// The version that was requested.
        requested: i32,
        /// The first version that has the feature.
        first: i32,
    },
    /// The value holds something that no version of the format can carry.
    #[error("serialization of {type_name}: no version carries {feature}; {remedy}")]
    #[non_exhaustive]
    NotSerializable {
        /// The type that was to be written.
        type_name: &'static str,
        /// The part of the value that the version cannot express.
        feature: &'static str,
        /// The remedy.
        remedy: &'static str,
    },
    /// The value's Rust type has no SerDes in the registry.
    #[error(
        "serialization: the type {rust_type} has no registered SerDes; register one before serializing values of it"
    )]
    #[non_exhaustive]
    MissingSerDes {
        /// The Rust type, as the compiler prints it.
        rust_type: &'static str,
    },
    /// The value breaks a rule of its type.
    #[error("serialization of {type_name}: {message}")]
    #[non_exhaustive]
    InvalidValue {
        /// The type that was to be written.
        type_name: &'static str,
        /// The problem: found and expected.
        message: String,
    },
    /// Parts of the value that belong together contradict each other.
    #[error("serialization of {type_name}: {message}")]
    #[non_exhaustive]
    Inconsistent {
        /// The type that was to be written.
        type_name: &'static str,
        /// The problem: found and expected.
        message: String,
    },
    /// A registered SerDes failed with a status of its own, which is passed on unchanged.
    #[error(transparent)]
    SerDes(#[from] Status),
}

impl EncodeError {
    /// Returns the error that `feature` of `type_name` needs version `first` of the line `L`, but
    /// `requested` was asked for.
    pub fn unsupported_at_version<L: crate::version::Line>(
        type_name: &'static str,
        feature: impl Into<String>,
        requested: crate::version::Version<L>,
        first: i32,
    ) -> Self {
        Self::UnsupportedAtVersion {
            type_name,
            feature: feature.into(),
            line: L::TITLE,
            requested: requested.number(),
            first,
        }
    }

    /// Returns the error that no version carries `feature`.
    pub const fn not_serializable(
        type_name: &'static str,
        feature: &'static str,
        remedy: &'static str,
    ) -> Self {
        Self::NotSerializable { type_name, feature, remedy }
    }

    /// Returns the error that the value breaks a rule of its type.
    pub fn invalid_value(type_name: &'static str, message: impl Into<String>) -> Self {
        Self::InvalidValue { type_name, message: message.into() }
    }

    /// Returns the error that parts of the value contradict each other.
    pub fn inconsistent(type_name: &'static str, message: impl Into<String>) -> Self {
        Self::Inconsistent { type_name, message: message.into() }
    }

    /// Returns the kind of the error, which says what action it calls for.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::UnsupportedAtVersion { .. } | Self::NotSerializable { .. } => {
                ErrorKind::Unsupported
            }
            Self::MissingSerDes { .. } => ErrorKind::MissingType,
            Self::InvalidValue { .. } | Self::Inconsistent { .. } => ErrorKind::InvalidInput,
            Self::SerDes(status) => status.kind(),
        }
    }

    /// Returns the status code that upstream returns in this case.
    pub const fn code(&self) -> StatusCode {
        match self {
            Self::UnsupportedAtVersion { .. } => StatusCode::FailedPrecondition,
            Self::NotSerializable { .. } | Self::MissingSerDes { .. } => StatusCode::Unimplemented,
            Self::InvalidValue { .. } => StatusCode::InvalidArgument,
            Self::Inconsistent { .. } => StatusCode::Internal,
            Self::SerDes(status) => status.code(),
        }
    }

    /// Returns the error as a status.
    pub fn to_status(&self) -> Status {
        match self {
            Self::SerDes(status) => status.clone(),
            other => Status::new(other.code(), other.to_string()),
        }
    }
}

/// A line that embeds no versions of another line cannot write that line's values.
impl From<crate::version::NotEmbedded> for EncodeError {
    fn from(error: crate::version::NotEmbedded) -> Self {
        Self::UnsupportedAtVersion {
            type_name: error.data,
            feature: format!("{} data", error.embedded),
            line: error.title,
            requested: error.requested,
            first: error.first,
        }
    }
}

/// An error of reading a value from bytes.
///
/// Data that is too new is never reported as corrupt, or corrupt data as too new: see
/// [`kind`](Self::kind).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The recorded version is newer than this build.
    #[error(
        "deserialization of {type_name}: the data records {line} version {found}, this build reads up to {newest}; upgrade this build, or have the producer write version {newest}"
    )]
    #[non_exhaustive]
    TooNew {
        /// The type that records the version.
        type_name: &'static str,
        /// The title of the line of versions.
        line: &'static str,
        /// The recorded number.
        found: i32,
        /// The newest number that this build reads.
        newest: i32,
    },
    /// The recorded version was removed from this build, or no request since the line's minimum
    /// records it.
    #[error(
        "deserialization of {type_name}: the data records {line} version {found}, this build reads from {minimum} on; read it with an older build and write it again"
    )]
    #[non_exhaustive]
    TooOld {
        /// The type that records the version.
        type_name: &'static str,
        /// The title of the line of versions.
        line: &'static str,
        /// The recorded number.
        found: i32,
        /// The oldest number that this build reads.
        minimum: i32,
    },
    /// The recorded version is in our range, but the type never had a format of that number.
    #[error(
        "deserialization of {type_name}: the data records {line} version {found}, but the formats of this type are {known}; the bytes are damaged or are not a {type_name}"
    )]
    #[non_exhaustive]
    UnknownFormat {
        /// The type that records the version.
        type_name: &'static str,
        /// The title of the line of versions.
        line: &'static str,
        /// The recorded number.
        found: i32,
        /// The formats of the type, as text.
        known: String,
    },
    /// The bytes do not parse.
    #[error("deserialization of {type_name}: the bytes do not parse: {detail}")]
    #[non_exhaustive]
    Malformed {
        /// The type that was to be read.
        type_name: &'static str,
        /// The message of the parser.
        detail: String,
        /// INVALID_ARGUMENT, or DATA_LOSS where upstream says so.
        code: StatusCode,
    },
    /// The bytes parse, but break a rule of the type.
    #[error("deserialization of {type_name}: {message}")]
    #[non_exhaustive]
    InvalidValue {
        /// The type that was to be read.
        type_name: &'static str,
        /// The problem: found and expected.
        message: String,
    },
    /// A field holds a number that has no meaning in this or any older build.
    #[error(
        "deserialization of {type_name}: the {field} is {found}, which this build does not know; newer builds may have added it: upgrade this build, or have the producer write an older version"
    )]
    #[non_exhaustive]
    UnknownValue {
        /// The type that was to be read.
        type_name: &'static str,
        /// The field.
        field: &'static str,
        /// The number found.
        found: i64,
    },
    /// Parts of the message that belong together contradict each other.
    #[error("deserialization of {type_name}: {message}")]
    #[non_exhaustive]
    Inconsistent {
        /// The type that was to be read.
        type_name: &'static str,
        /// The problem: found and expected.
        message: String,
    },
    /// No SerDes is registered for the type name in the data.
    #[error(
        "deserialization: no SerDes is registered for the type name `{}`; register it, or read with a build that has it", .found.escape_debug()
    )]
    #[non_exhaustive]
    UnknownTypeName {
        /// The type name found.
        found: String,
    },
    /// The data holds a different type than the caller asked for.
    #[error("deserialization: expected a {expected}, found a {found}")]
    #[non_exhaustive]
    WrongType {
        /// The type that was asked for.
        expected: String,
        /// The type that the data holds.
        found: String,
    },
    /// The type cannot be read without an option that was not given.
    #[error(
        "deserialization of {type_name}: needs the option {required}, which is missing; add it to the DeserializeOptions"
    )]
    #[non_exhaustive]
    MissingOption {
        /// The type that was to be read.
        type_name: &'static str,
        /// The option type that it needs.
        required: &'static str,
    },
    /// A device in the data does not exist here.
    #[error(
        "deserialization: no device has the id {id}; read with a device look-up that covers the devices of the producer"
    )]
    #[non_exhaustive]
    UnknownDevice {
        /// The id in the data.
        id: i32,
        /// INVALID_ARGUMENT or NOT_FOUND, depending on the device look-up.
        code: StatusCode,
    },
    /// The data is larger or nests deeper than allowed.
    #[error(
        "deserialization of {type_name}: {what} is {found}, the limit is {limit}; raise the limit in the DeserializeOptions if the data is trusted"
    )]
    #[non_exhaustive]
    LimitExceeded {
        /// The type that was to be read.
        type_name: &'static str,
        /// The limited quantity, with its unit.
        what: &'static str,
        /// The value found.
        found: u64,
        /// The largest value allowed.
        limit: u64,
    },
    /// A registered SerDes failed with a status of its own, which is passed on unchanged.
    #[error(transparent)]
    SerDes(#[from] Status),
}

impl DecodeError {
    /// Returns the error that the bytes of `type_name` do not parse.
    pub fn malformed(type_name: &'static str, detail: impl Into<String>) -> Self {
        Self::Malformed { type_name, detail: detail.into(), code: StatusCode::InvalidArgument }
    }

    /// Like [`malformed`](Self::malformed), for the types for which upstream answers DATA_LOSS.
    pub fn data_loss(type_name: &'static str, detail: impl Into<String>) -> Self {
        Self::Malformed { type_name, detail: detail.into(), code: StatusCode::DataLoss }
    }

    /// Returns the error that the message breaks a rule of its type.
    pub fn invalid_value(type_name: &'static str, message: impl Into<String>) -> Self {
        Self::InvalidValue { type_name, message: message.into() }
    }

    /// Returns the error that the number `found` in `field` has no meaning in this build.
    pub const fn unknown_value(type_name: &'static str, field: &'static str, found: i64) -> Self {
        Self::UnknownValue { type_name, field, found }
    }

    /// Returns the error that parts of the message contradict each other.
    pub fn inconsistent(type_name: &'static str, message: impl Into<String>) -> Self {
        Self::Inconsistent { type_name, message: message.into() }
    }

    /// Returns the error that no type named `found` is known.
    pub fn unknown_type_name(found: impl Into<String>) -> Self {
        Self::UnknownTypeName { found: found.into() }
    }

    /// Returns the error that the data does not hold the requested type.
    pub fn wrong_type(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self::WrongType { expected: expected.into(), found: found.into() }
    }

    /// Returns the error that no device has this id; `code` is INVALID_ARGUMENT for a client that
    /// owns devices, and NOT_FOUND for a proxy.
    pub const fn unknown_device(id: i32, code: StatusCode) -> Self {
        Self::UnknownDevice { id, code }
    }

    /// Returns the error that a limit of size or depth is exceeded.
    pub const fn limit_exceeded(
        type_name: &'static str,
        what: &'static str,
        found: u64,
        limit: u64,
    ) -> Self {
        Self::LimitExceeded { type_name, what, found, limit }
    }

    /// Returns the kind of the error, which says what action it calls for.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::TooNew { .. } | Self::UnknownValue { .. } => ErrorKind::TooNew,
            Self::TooOld { .. } => ErrorKind::TooOld,
            Self::UnknownFormat { .. }
            | Self::Malformed { .. }
            | Self::InvalidValue { .. }
            | Self::Inconsistent { .. } => ErrorKind::Corrupt,
            Self::UnknownTypeName { .. } => ErrorKind::MissingType,
            Self::WrongType { .. } | Self::MissingOption { .. } | Self::UnknownDevice { .. } => {
                ErrorKind::InvalidInput
            }
            Self::LimitExceeded { .. } => ErrorKind::Limit,
            Self::SerDes(_) => ErrorKind::Other,
        }
    }

    /// Returns the status code that upstream returns in this case.
    pub const fn code(&self) -> StatusCode {
        match self {
            Self::TooNew { .. } | Self::TooOld { .. } | Self::UnknownFormat { .. } => {
                StatusCode::FailedPrecondition
            }
            Self::Malformed { code, .. } | Self::UnknownDevice { code, .. } => *code,
            Self::InvalidValue { .. } | Self::UnknownValue { .. } | Self::MissingOption { .. } => {
                StatusCode::InvalidArgument
            }
            Self::Inconsistent { .. } | Self::WrongType { .. } => StatusCode::Internal,
            Self::UnknownTypeName { .. } => StatusCode::Unimplemented,
            Self::LimitExceeded { .. } => StatusCode::ResourceExhausted,
            Self::SerDes(status) => status.code(),
        }
    }

    /// Returns the error as a status.
    pub fn to_status(&self) -> Status {
        match self {
            Self::SerDes(status) => status.clone(),
            other => Status::new(other.code(), other.to_string()),
        }
    }
}

/// An error of adding a SerDes to a registry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The Rust type has a SerDes already.
    #[error(
        "the type {rust_type} has a registered SerDes already, under the name `{registered_name}`; a type has one SerDes"
    )]
    #[non_exhaustive]
    DuplicateType {
        /// The Rust type, as the compiler prints it.
        rust_type: &'static str,
        /// The type name of the SerDes that is registered.
        registered_name: String,
    },
    /// The type name is taken.
    #[error(
        "the type name `{name}` is registered already, for the type {registered_type}; choose another name"
    )]
    #[non_exhaustive]
    DuplicateName {
        /// The type name.
        name: String,
        /// The Rust type that is registered under it.
        registered_type: &'static str,
    },
}

impl RegistryError {
    /// Returns the kind of the error, which says what action it calls for.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::DuplicateType { .. } | Self::DuplicateName { .. } => ErrorKind::InvalidInput,
        }
    }
}
