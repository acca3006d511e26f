//! The visitor that receives the contents of a message.

use super::{Field, MessageId};

/// Decision of a visitor about a nested message or packed field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Check it and visit its fields.
    Into,
    /// Skip it, trusting its length.
    Over,
}

/// The position of a piece within its string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// True for the piece at the start of the string.
    pub first: bool,
    /// True for the piece at the end of the string.
    pub last: bool,
}

impl Piece {
    /// A piece that is the whole string.
    pub(super) const WHOLE: Self = Self { first: true, last: true };
}

/// Receives the known fields of a message, in the order of the bytes. The scanner checks unknown
/// fields as well, but does not report them.
///
/// A visitor may name a second one for a part of the message ([`values`](Self::values)). The second
/// receives the numbers and long fields that the first does not handle, and selects the packed
/// numbers and bytes that are read; the first forwards messages and strings itself.
pub trait Visitor {
    /// Returns the second visitor, if there is one.
    #[inline]
    fn values(&self) -> Option<&dyn Visitor> {
        None
    }
    /// Returns the second visitor, for reporting values to it.
    #[inline]
    fn values_mut(&mut self) -> Option<&mut dyn Visitor> {
        None
    }
    /// Called before [`enter`](Self::enter) with the offset at which the content of the message
    /// begins.
    #[inline]
    fn begins(&mut self, _at: u64) {}
    /// Called at the start of a nested message, the value of `field` of `message`.
    #[inline]
    fn enter(&mut self, _message: MessageId, _field: &'static Field) -> Step {
        Step::Into
    }
    /// Called at the end, at byte `at`, of the message that is the value of `field` of `message`.
    #[inline]
    fn leave(&mut self, _message: MessageId, _field: &'static Field, _at: u64) {}
    /// Called with a varint or an element of packed varints, or with the bits of an unpacked 64-bit
    /// number.
    #[inline]
    fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        if let Some(other) = self.values_mut() {
            other.integer(message, field, value);
        }
    }
    /// Called with `count` 32-bit floats, packed or not. `bytes` has them in little-endian order,
    /// or is empty where packed floats are longer than [`WHOLE_STRING`](super::WHOLE_STRING).
    #[inline]
    fn floats(&mut self, message: MessageId, field: &'static Field, count: u64, bytes: &[u8]) {
        if let Some(other) = self.values_mut() {
            other.floats(message, field, count, bytes);
        }
    }
    /// Called with a piece of a string: the whole of it unless it is longer than
    /// [`WHOLE_STRING`](super::WHOLE_STRING).
    #[inline]
    fn string(&mut self, _message: MessageId, _field: &'static Field, _piece: &[u8], _is: Piece) {}
    /// Returns true if the visitor wants the elements of packed varints and floats.
    #[inline]
    fn wants_packed(&self, message: MessageId) -> bool {
        self.values().is_some_and(|other| other.wants_packed(message))
    }
    /// Returns true if the visitor wants the bytes of a field, in one piece like a short string; if
    /// the field is longer than [`WHOLE_STRING`](super::WHOLE_STRING), only its length is reported.
    #[inline]
    fn wants_bytes(&self, message: MessageId, field: &'static Field) -> bool {
        self.values().is_some_and(|other| other.wants_bytes(message, field))
    }
    /// Called with the length of a wanted field of bytes that is too long to be passed in one
    /// piece.
    #[inline]
    fn long_bytes(&mut self, message: MessageId, field: &'static Field, length: u64) {
        if let Some(other) = self.values_mut() {
            other.long_bytes(message, field, length);
        }
    }
    /// Returns the GraphDef version of the release that is to read the message: in the text form,
    /// names that this release does not know are errors.
    fn release(&self) -> i32 {
        i32::MAX
    }
    /// Returns true if a nested message, the value of `field` of `message`, is to be offered to
    /// [`take`](Self::take) even where the window ends inside it; a message longer than
    /// [`WHOLE_STRING`](super::WHOLE_STRING) never is.
    #[inline]
    fn wants_whole(&self, _message: MessageId, _field: &'static Field) -> bool {
        false
    }
    /// Called with a complete nested message, the value of `field` of `message`, before it is
    /// entered; `depth` messages are around it. Returns true if the visitor has checked and handled
    /// it, as if all its fields had been reported. Must have no effect otherwise.
    #[inline]
    fn take(
        &mut self,
        _message: MessageId,
        _field: &'static Field,
        _bytes: &[u8],
        _end: u64,
        _depth: usize,
    ) -> bool {
        false
    }
}
