//! Strings and packed varints that are longer than a window, read in pieces.

use serdes_wire::{Dialect, varint};

use super::{Field, Kind, MessageId, Piece, Visitor, WireErrorKind, window::Window};

/// A field that is longer than a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Long {
    field: &'static Field,
    end: u64,
    first: bool,
}

impl Long {
    /// Creates a field whose value ends at byte `end`.
    pub(super) const fn new(field: &'static Field, end: u64) -> Self {
        Self { field, end, first: true }
    }

    /// Returns the offset of the end of the value.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// Reads from byte `at` as far as the window reaches, and returns the number of bytes read: all
    /// that are left once the window holds the end of the value.
    pub(super) fn read<V: Visitor>(
        &mut self,
        at: u64,
        message: MessageId,
        window: Window<'_>,
        visitor: &mut V,
    ) -> Result<usize, WireErrorKind> {
        let here = self.end.min(window.end());
        let bytes = window.part(at, here);
        let last = here == self.end;
        let used = if self.field.kind == Kind::String {
            let whole = whole_characters(bytes, last).ok_or(WireErrorKind::Utf8)?;
            visitor.string(message, self.field, whole, Piece { first: self.first, last });
            whole.len()
        } else {
            let used = packed_varints(bytes, message, self.field, visitor)?;
            if last && used != bytes.len() {
                return Err(WireErrorKind::Packed);
            }
            used
        };
        self.first = false;
        Ok(used)
    }
}

/// Returns the characters that are complete in `bytes`: a character cut by the window is read again
/// with the next window, unless this is the last.
fn whole_characters(bytes: &[u8], last: bool) -> Option<&[u8]> {
    match std::str::from_utf8(bytes) {
        Ok(_) => Some(bytes),
        Err(cut) if cut.error_len().is_none() && !last => bytes.get(..cut.valid_up_to()),
        Err(_) => None,
    }
}

/// Reads the complete packed varints, and returns the number of bytes read.
pub(super) fn packed_varints<V: Visitor>(
    bytes: &[u8],
    message: MessageId,
    field: &'static Field,
    visitor: &mut V,
) -> Result<usize, WireErrorKind> {
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
                return Err(WireErrorKind::Varint);
            }
        }
    }
    if rest.len() >= varint::LONGEST {
        Err(WireErrorKind::Varint)
    } else {
        Ok(bytes.len() - rest.len())
    }
}
