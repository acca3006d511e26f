//! The file that holds a graph: its message type and form, and the errors of reading it.
//!
//! Walks over the whole message or over a part that an earlier walk has found. Depends on the
//! location of bytes; the visitors interpret them.

use std::io;

use serdes_abi::ErrorKind;

use crate::{
    files::ReadAt,
    scan::{self, ScanError, Scanner, Visitor, WireError},
    schema::{GRAPH_DEF, META_GRAPH_DEF, MessageId, SAVED_MODEL, TENSORFLOW},
    text::{self, TextError},
};

/// The message type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// `tensorflow.GraphDef`: a `.pb` file.
    GraphDef,
    /// `tensorflow.MetaGraphDef`: a `.meta` file beside a checkpoint.
    MetaGraphDef,
    /// `tensorflow.SavedModel`: `saved_model.pb`.
    SavedModel,
}

impl Message {
    pub fn id(self) -> MessageId {
        match self {
            Self::GraphDef => GRAPH_DEF,
            Self::MetaGraphDef => META_GRAPH_DEF,
            Self::SavedModel => SAVED_MODEL,
        }
    }
}

/// The encoding of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// The wire format.
    Binary,
    /// The text format (`.pbtxt`).
    Text,
}

/// The reason why a graph cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    /// No parser accepts the bytes. TensorFlow reports INVALID_ARGUMENT for a graph and DATA_LOSS
    /// for a SavedModel.
    #[error(
        "no protobuf parser takes this file: {0}; the file is damaged, cut off, or of another kind"
    )]
    Malformed(#[from] WireError),
    /// The text is not the text form of the message.
    #[error("this is not the text form of the message: {0}")]
    Text(#[from] TextError),
    /// The system could not read the file.
    #[error("cannot read the file: {0}")]
    Io(#[from] io::Error),
}

impl GraphError {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Malformed(_) | Self::Text(_) => ErrorKind::Corrupt,
            Self::Io(error) => ErrorKind::of_io(error),
        }
    }
}

impl GraphError {
    /// Returns the error for a node that is not at the place found by an earlier walk: the file was
    /// changed.
    #[doc(hidden)]
    #[must_use]
    pub fn moved_node() -> Self {
        let text = "a node is not where it was; the file was changed while it was read";
        Self::Io(io::Error::new(io::ErrorKind::InvalidData, text))
    }
}

impl From<ScanError> for GraphError {
    fn from(error: ScanError) -> Self {
        match error {
            ScanError::Wire(error) => Self::Malformed(error),
            ScanError::Io(error) => Self::Io(error),
        }
    }
}

impl From<text::ScanError> for GraphError {
    fn from(error: text::ScanError) -> Self {
        match error {
            text::ScanError::Text(error) => Self::Text(error),
            text::ScanError::Io(error) => Self::Io(error),
        }
    }
}

/// The byte range of the content of a message, from the start of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    pub start: u64,
    pub end: u64,
}

/// Selects one meta graph of a file by its number during a walk.
#[derive(Clone, Copy, Debug)]
pub struct MetaGraphSelector {
    /// True if the file may have any number of meta graphs; other files have one.
    has_many: bool,
    wanted: usize,
    entered: usize,
}

impl MetaGraphSelector {
    /// Selects the meta graph with this number, counted from 0.
    pub fn of(source: Source<'_>, wanted: usize) -> Self {
        Self { has_many: source.message() == SAVED_MODEL, wanted, entered: 0 }
    }

    /// Starts the next meta graph of a SavedModel; returns true if it is the selected one.
    pub fn enter(&mut self) -> bool {
        self.entered += 1;
        self.is_wanted()
    }

    /// Returns true if the walk is in the selected meta graph.
    pub fn is_wanted(&self) -> bool {
        !self.has_many || self.entered == self.wanted + 1
    }
}

/// A file that holds a message.
#[derive(Clone, Copy)]
pub struct Source<'s> {
    bytes: &'s dyn ReadAt,
    message: Message,
    form: Form,
}

/// Limit on the length of parts that are read at once, in bytes.
const READ_AT_ONCE: u64 = 64 * 1024;

impl<'s> Source<'s> {
    pub fn new(bytes: &'s dyn ReadAt, message: Message, form: Form) -> Self {
        Self { bytes, message, form }
    }

    /// Returns the length of the file in bytes.
    pub fn size(self) -> Result<u64, GraphError> {
        Ok(self.bytes.size()?)
    }

    /// Returns the outermost message.
    pub fn message(self) -> MessageId {
        self.message.id()
    }

    /// Returns true for the text form.
    pub fn is_text(self) -> bool {
        self.form == Form::Text
    }

    /// Walks over the whole message.
    pub fn walk(self, visitor: &mut impl Visitor) -> Result<(), GraphError> {
        self.walk_over(self.bytes, self.message(), visitor)
    }

    /// Walks over a nested message that an earlier walk has visited.
    pub fn walk_part(
        self,
        part: Extent,
        message: MessageId,
        visitor: &mut impl Visitor,
    ) -> Result<(), GraphError> {
        let mut bytes = Vec::new();
        if !self.read_part(part, &mut bytes)? {
            return self.walk_over(&Section { bytes: self.bytes, part }, message, visitor);
        }
        if self.form == Form::Text {
            return self.walk_over(&bytes, message, visitor);
        }
        // All bytes are present, so that one run reaches the end.
        Scanner::new(TENSORFLOW, message, bytes.len() as u64).run(&bytes, 0, visitor)?;
        Ok(())
    }

    /// Reads the bytes of a part into `bytes`; returns false if it is too long to be read at once.
    pub fn read_part(self, part: Extent, bytes: &mut Vec<u8>) -> Result<bool, GraphError> {
        let section = Section { bytes: self.bytes, part };
        let length = section.length();
        if length > READ_AT_ONCE {
            return Ok(false);
        }
        bytes.clear();
        bytes.resize(usize::try_from(length).unwrap_or_default(), 0);
        section.read_exact_at(bytes, 0)?;
        Ok(true)
    }

    fn walk_over(
        self,
        bytes: &dyn ReadAt,
        message: MessageId,
        visitor: &mut impl Visitor,
    ) -> Result<(), GraphError> {
        match self.form {
            Form::Binary => Ok(scan::scan(bytes, TENSORFLOW, message, visitor)?),
            Form::Text => Ok(text::scan(bytes, message, visitor)?),
        }
    }
}

/// A part of a file, presented as a whole file.
struct Section<'s> {
    bytes: &'s dyn ReadAt,
    part: Extent,
}

impl Section<'_> {
    fn length(&self) -> u64 {
        self.part.end.saturating_sub(self.part.start)
    }
}

impl ReadAt for Section<'_> {
    fn size(&self) -> io::Result<u64> {
        Ok(self.length())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = self.length().saturating_sub(offset);
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let buffer = buffer.get_mut(..count).unwrap_or_default();
        self.bytes.read_at(buffer, self.part.start.saturating_add(offset))
    }
}
