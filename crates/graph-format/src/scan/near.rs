//! The fast path for most fields: a one-byte tag, followed by a one-byte number, or by a length of
//! at most two bytes and a value that is complete in the window.

use super::{
    Encoding, Kind, Piece, Visitor, WireError, WireErrorKind,
    scanner::{Delimited, Walk, is_text},
};

/// Returns the content of a field whose length begins with `low` and has at most two bytes, and the
/// bytes after it; `None` if the window does not hold all of it.
#[inline(always)]
fn content(low: u8, after: &[u8]) -> Option<(&[u8], &[u8])> {
    if low < 0x80 {
        return after.split_at_checked(usize::from(low));
    }
    let (high, after) = after.split_first().filter(|(high, _)| **high < 0x80)?;
    after.split_at_checked(usize::from(low & 0x7f) | usize::from(*high) << 7)
}

impl<V: Visitor> Walk<'_, '_, V> {
    /// Reads fields and ends messages while the fast path applies.
    ///
    /// The position is kept out of `self` meanwhile, so that the loops hold it in registers.
    #[inline(always)]
    pub(super) fn near(&mut self) -> Result<(), WireError> {
        let mut at = self.at;
        'frames: while let Some((message, description)) = self.frame.message {
            let frame_end = self.frame.end;
            let all = self.window.part(at, frame_end.min(self.window.end()));
            let position = |rest: &[u8]| at + (all.len() - rest.len()) as u64;
            let mut rest = all;
            while let [tag @ 0x08..=0x7f, low, after @ ..] = rest
                && let Some(field) = description.field(u32::from(*tag >> 3))
            {
                if *tag & 7 == 0 && *low < 0x80 && field.kind.encoding() == Encoding::Varint {
                    self.visitor.integer(message, field, u64::from(*low));
                    rest = after;
                    continue;
                }
                if *tag & 7 != 2 {
                    break;
                }
                let Some((bytes, after)) = content(*low, after) else { break };
                let (here, end) = (position(rest), position(after));
                let found = Delimited { message, field, payload: end - bytes.len() as u64, end };
                match field.kind {
                    Kind::String if !is_text(bytes) => {
                        return Err(WireError { at: here, kind: WireErrorKind::Utf8 });
                    }
                    Kind::Message(_)
                        if self.declined != here && self.has_room() && self.take(found, bytes) =>
                    {
                        rest = self.take_alike(found, *tag, after);
                        continue;
                    }
                    Kind::Message(nested) if self.has_room() => {
                        if let Some(entered) = self.enter(found, nested) {
                            (self.frame, at) = (entered, found.payload);
                            continue 'frames;
                        }
                    }
                    Kind::String => self.visitor.string(message, field, bytes, Piece::WHOLE),
                    Kind::Bytes if self.visitor.wants_bytes(message, field) => {
                        self.visitor.string(message, field, bytes, Piece::WHOLE);
                    }
                    Kind::Bytes | Kind::UncheckedString => {}
                    _ => break,
                }
                rest = after;
            }
            at = position(rest);
            if at < frame_end || self.depth() == 1 {
                break;
            }
            let Some(outer) = self.leave(self.frame, at) else { break };
            self.frame = outer;
        }
        self.at = at;
        Ok(())
    }

    /// Offers the fields with the same tag that follow a message which was taken, while the fast
    /// path applies and the visitor takes them; returns the bytes left.
    #[inline(always)]
    fn take_alike<'w>(&mut self, first: Delimited, tag: u8, following: &'w [u8]) -> &'w [u8] {
        let mut rest = following;
        while let [next, length @ 0..=0x7f, after @ ..] = rest
            && *next == tag
            && let Some((bytes, after)) = after.split_at_checked(usize::from(*length))
        {
            let end = first.end + (following.len() - after.len()) as u64;
            if !self.take(Delimited { end, ..first }, bytes) {
                self.declined = first.end + (following.len() - rest.len()) as u64;
                break;
            }
            rest = after;
        }
        rest
    }
}
