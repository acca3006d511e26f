//! Strings and packed varints that are longer than a window, read in pieces.

use super::{
    Field, Kind, MessageId, Piece, Progress, Scanner, Visitor, WHOLE_STRING, WireError, WireFault,
    window::Window,
};
use crate::wire::{Dialect, varint};

/// A field that is longer than a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Long {
    field: &'static Field,
    end: u64,
    first: bool,
}

impl Scanner {
    /// Begins with a field whose value lies from `payload` to `end`.
    pub(super) fn begin_long(&mut self, field: &'static Field, payload: u64, end: u64) -> Progress {
        self.long = Some(Long { field, end, first: true });
        self.at = payload;
        Progress::Need { at: payload, bytes: WHOLE_STRING }
    }

    /// Reads on in `long`; `None` at its end.
    pub(super) fn run_long<V: Visitor>(
        &mut self,
        long: Long,
        window: Window<'_>,
        visitor: &mut V,
    ) -> Result<Option<Progress>, WireError> {
        let here = long.end.min(window.end());
        let bytes = window.part(self.at, here);
        let last = here == long.end;
        let error = |fault| WireError { at: self.at, fault };
        let Some(message) = self.innermost() else { return Err(error(WireFault::Packed)) };
        let used = if long.field.kind == Kind::String {
            let whole = whole_characters(bytes, last).ok_or(error(WireFault::Utf8))?;
            visitor.string(message, long.field, whole, Piece { first: long.first, last });
            whole.len()
        } else {
            let used = packed_varints(bytes, message, long.field, visitor).map_err(error)?;
            if last && used != bytes.len() {
                return Err(error(WireFault::Packed));
            }
            used
        };
        self.at += used as u64;
        if last {
            self.long = None;
            return Ok(None);
        }
        self.long = Some(Long { first: false, ..long });
        Ok(Some(Progress::Need { at: self.at, bytes: WHOLE_STRING }))
    }
}

/// The characters of which all bytes are here: one that the window cuts is read again with the
/// next, unless this is the last.
fn whole_characters(bytes: &[u8], last: bool) -> Option<&[u8]> {
    match std::str::from_utf8(bytes) {
        Ok(_) => Some(bytes),
        Err(cut) if cut.error_len().is_none() && !last => bytes.get(..cut.valid_up_to()),
        Err(_) => None,
    }
}

/// Reads packed varints as far as whole ones are there, and says how many bytes that was.
pub(super) fn packed_varints<V: Visitor>(
    bytes: &[u8],
    message: MessageId,
    field: &'static Field,
    visitor: &mut V,
) -> Result<usize, WireFault> {
    let mut rest = bytes;
    if visitor.wants_packed(message) {
        while let Some(value) = Dialect::Tensorflow.varint(&mut rest) {
            visitor.integer(message, field, value);
        }
    } else {
        let mut run = 0;
        for (position, byte) in bytes.iter().enumerate() {
            run += 1;
            if *byte < 0x80 {
                rest = bytes.get(position + 1..).unwrap_or_default();
                run = 0;
            } else if run == varint::LONGEST {
                return Err(WireFault::Varint);
            }
        }
    }
    if rest.len() >= varint::LONGEST {
        Err(WireFault::Varint)
    } else {
        Ok(bytes.len() - rest.len())
    }
}
