//! The short way for most fields: a tag and a length of one byte each, and a string or message that is all here.

use super::{Field, Kind, Visitor, WireError, WireFault, scanner::Walk};
use crate::wire::scan::{MessageId, visitor::Piece};

/// A field that is all here, and short.
struct NearMessage<'w> {
    message: MessageId,
    field: &'static Field,
    nested: MessageId,
    tag: u8,
    bytes: &'w [u8],
    end: u64,
}

impl<V: Visitor> Walk<'_, '_, V> {
    /// Reads the next field if it is near, and says whether it was.
    #[inline(always)]
    pub(super) fn near(&mut self) -> Result<bool, WireError> {
        let [tag @ 0x0a..=0x7f, length @ 0..=0x7f, rest @ ..] = self.window.from(self.at) else {
            return Ok(false);
        };
        if *tag & 7 != 2 {
            return Ok(false);
        }
        let Some(bytes) = rest.get(..usize::from(*length)) else { return Ok(false) };
        let Some((message, field)) = self.known(u32::from(*tag >> 3)) else { return Ok(false) };
        let end = self.at + 2 + u64::from(*length);
        if end > self.frame.end {
            return Ok(false);
        }
        match field.kind {
            Kind::String => {
                if !super::scanner::is_text(bytes) {
                    return Err(self.fault(WireFault::Utf8));
                }
                self.visitor.string(message, field, bytes, Piece::WHOLE);
                self.at = end;
                Ok(true)
            }
            Kind::Message(nested) if self.has_room() => {
                self.near_message(NearMessage { message, field, nested, tag: *tag, bytes, end });
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Offers a message to the visitor, and with it those like it that follow; enters it if the visitor does not take it.
    #[inline(always)]
    fn near_message(&mut self, near: NearMessage<'_>) {
        let NearMessage { message, field, nested, tag, bytes, end } = near;
        let depth = self.depth();
        if self.declined == self.at || !self.visitor.take(message, field, bytes, end, depth) {
            return self.enter(message, field, nested, self.at + 2, end);
        }
        let following = self.window.part(end, self.frame.end.min(self.window.end()));
        let (more, all) = take_alike(following, tag, |bytes, taken| {
            self.visitor.take(message, field, bytes, end + taken, depth)
        });
        self.at = end + more;
        if !all {
            self.declined = self.at;
        }
    }
}

/// Takes the fields that follow one another with the same tag, a short length and all their bytes, as long as `take` takes them: it is
/// told where each ends. The bytes that were taken, and whether it took all that it was offered.
#[inline]
fn take_alike(bytes: &[u8], tag: u8, mut take: impl FnMut(&[u8], u64) -> bool) -> (u64, bool) {
    let mut taken = 0;
    let mut rest = bytes;
    while let [next, length @ 0..=0x7f, after @ ..] = rest
        && *next == tag
        && let Some((payload, after)) = after.split_at_checked(usize::from(*length))
    {
        let end = taken + 2 + u64::from(*length);
        if !take(payload, end) {
            return (taken, false);
        }
        (taken, rest) = (end, after);
    }
    (taken, true)
}
