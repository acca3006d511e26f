//! Errors of the wire format.

/// An error of the wire format, with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {kind}")]
pub struct WireError {
    /// Position in the file, in bytes.
    pub at: u64,
    /// The kind of error.
    pub kind: WireErrorKind,
}

/// A violation of the protobuf wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireErrorKind {
    /// A tag that is zero, longer than 5 bytes, or has the field number 0.
    #[error("this is no field tag")]
    Tag,
    /// A wire type that does not exist (6 or 7).
    #[error("wire type {0} does not exist")]
    WireType(u8),
    /// A varint of more than 10 bytes, or one that extends past the end of its message.
    #[error("this is no varint")]
    Varint,
    /// A length beyond the limit on messages.
    #[error("a length that no message can have")]
    Length,
    /// A field that extends past the end of its message.
    #[error(
        "a field of {needed} bytes where its message has {left} left: the data is cut off or damaged"
    )]
    Overrun {
        /// Length of the field in bytes.
        needed: u64,
        /// Number of bytes left.
        left: u64,
    },
    /// The end of a group that is not open.
    #[error("the end of group {0}, which is not open here")]
    GroupEnd(u32),
    /// A group without an end.
    #[error("group {0} has no end")]
    GroupOpen(u32),
    /// More than 100 nested messages or groups.
    #[error("more than 100 messages inside one another")]
    Depth,
    /// A string that is not UTF-8.
    #[error("a string that is not UTF-8")]
    Utf8,
    /// Packed values that do not fill their field exactly.
    #[error("packed values that do not fill their field")]
    Packed,
}
