//! Who is told of what a message holds.

use super::{Field, MessageId};

/// Decision of a visitor about a nested message or packed field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Check it and tell of its fields.
    Into,
    /// Take its length on trust.
    Over,
}

/// Position of a piece within its string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// True if the string begins with it.
    pub first: bool,
    /// True if the string ends with it.
    pub last: bool,
}

impl Piece {
    /// The whole string.
    pub(super) const WHOLE: Self = Self { first: true, last: true };
}

/// Hears of the known fields of a message, in the order of the bytes. The scanner checks the others
/// as well and reports them to no visitor.
///
/// A visitor may name a second one for a part of the message ([`values`](Self::values)). The second
/// hears of the numbers and long fields that the first leaves out, and says which packed numbers
/// and bytes are wanted; the first passes on messages and strings itself.
pub trait Visitor {
    /// Returns the second visitor, where there is one.
    #[inline]
    fn values(&self) -> Option<&dyn Visitor> {
        None
    }
    /// Returns the second visitor, to report values to.
    #[inline]
    fn values_mut(&mut self) -> Option<&mut dyn Visitor> {
        None
    }
    /// Returns the content of the message that [`enter`](Self::enter) is told of next begins at
    /// byte `at`.
    #[inline]
    fn begins(&mut self, _at: u64) {}
    /// A nested message begins, the value of `field` of `message`.
    #[inline]
    fn enter(&mut self, _message: MessageId, _field: &'static Field) -> Step {
        Step::Into
    }
    /// The message that was the value of `field` of `message` has ended, at byte `at`.
    #[inline]
    fn leave(&mut self, _message: MessageId, _field: &'static Field, _at: u64) {}
    /// A varint or an element of packed varints; or the bits of a number of 64 bits that stands
    /// alone.
    #[inline]
    fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        if let Some(other) = self.values_mut() {
            other.integer(message, field, value);
        }
    }
    /// Elements of 32-bit floats, `count` of them, alone or packed. `bytes` are theirs, little
    /// endian, or nothing where packed ones are longer than [`WHOLE_STRING`](super::WHOLE_STRING).
    #[inline]
    fn floats(&mut self, message: MessageId, field: &'static Field, count: u64, bytes: &[u8]) {
        if let Some(other) = self.values_mut() {
            other.floats(message, field, count, bytes);
        }
    }
    /// Returns a piece of a string, the whole of it unless it is longer than
    /// [`WHOLE_STRING`](super::WHOLE_STRING).
    #[inline]
    fn string(&mut self, _message: MessageId, _field: &'static Field, _piece: &[u8], _is: Piece) {}
    /// Returns true if the visitor wants the elements of packed varints and floats.
    #[inline]
    fn wants_packed(&self, message: MessageId) -> bool {
        self.values().is_some_and(|other| other.wants_packed(message))
    }
    /// Returns true if the visitor wants the bytes of a field, in one piece like a short string; of
    /// one longer than [`WHOLE_STRING`](super::WHOLE_STRING) it gets only the length.
    #[inline]
    fn wants_bytes(&self, message: MessageId, field: &'static Field) -> bool {
        self.values().is_some_and(|other| other.wants_bytes(message, field))
    }
    /// A field of bytes that is wanted, and too long to be told in one piece: `length` bytes.
    #[inline]
    fn long_bytes(&mut self, message: MessageId, field: &'static Field, length: u64) {
        if let Some(other) = self.values_mut() {
            other.long_bytes(message, field, length);
        }
    }
    /// Returns the GraphDef version of the release that is to read the message: the text form is
    /// refused where it says what that one does not know.
    fn release(&self) -> i32 {
        i32::MAX
    }
    /// Returns true if a nested message, the value of `field` of `message`, is to be offered to
    /// [`take`](Self::take) also where the window ends in it; one that is longer than
    /// [`WHOLE_STRING`](super::WHOLE_STRING) never is.
    #[inline]
    fn wants_whole(&self, _message: MessageId, _field: &'static Field) -> bool {
        false
    }
    /// Returns a nested message whose bytes are all there, the value of `field` of `message`,
    /// before it is entered; `depth` messages are around it. Returns true if the visitor has
    /// checked it and taken what it wants, as if it had been told of all of it. Must do nothing
    /// otherwise.
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
