//! Strings of the text format: quotes, escapes, pieces.

use super::{ScanError, TextErrorKind, parser::Parser, reader::Token};
use crate::{
    scan::{Piece, WHOLE_STRING},
    schema::{Field, Kind, Label},
};

/// A string that is being read.
struct StringValue {
    field: &'static Field,
    bytes: Vec<u8>,
    /// Number of bytes that were passed on, or dropped because the field is a long one of bytes.
    flushed: u64,
    first: bool,
    empty: bool,
}

impl Parser<'_, '_> {
    /// Reads one or more adjacent quoted strings, which form one value.
    pub(super) fn string(&mut self, field: &'static Field) -> Result<(), ScanError> {
        let mut value =
            StringValue { field, bytes: Vec::new(), flushed: 0, first: true, empty: true };
        let Token::Quote(_) = self.token else { return Err(self.expected("a string")) };
        while let Token::Quote(quote) = self.token {
            self.quoted(quote, &mut value)?;
            self.next()?;
        }
        self.check_twice(field)?;
        self.flush(&mut value, true)?;
        if field.label == Label::Optional || (field.label == Label::Plain && !value.empty) {
            self.mark(field)?;
        }
        Ok(())
    }

    /// Reads up to the quote that ends a string.
    fn quoted(&mut self, quote: u8, value: &mut StringValue) -> Result<(), ScanError> {
        loop {
            match self.reader.peek()? {
                None | Some(b'\n') => return Err(self.bad_string("its end is missing")),
                Some(byte) if byte == quote => {
                    self.reader.step();
                    return Ok(());
                }
                Some(b'\\') => {
                    self.reader.step();
                    self.escape(value)?;
                }
                Some(byte) => {
                    self.reader.step();
                    value.bytes.push(byte);
                }
            }
            if value.bytes.len() >= WHOLE_STRING + 4 {
                self.flush(value, false)?;
            }
        }
    }

    /// Reads what follows a backslash.
    fn escape(&mut self, value: &mut StringValue) -> Result<(), ScanError> {
        let kind = match self.reader.peek()? {
            None | Some(b'\n') => return Err(self.bad_string("its end is missing")),
            Some(kind) => kind,
        };
        self.reader.step();
        match kind {
            b'a' => value.bytes.push(7),
            b'b' => value.bytes.push(8),
            b't' => value.bytes.push(9),
            b'n' => value.bytes.push(10),
            b'v' => value.bytes.push(11),
            b'f' => value.bytes.push(12),
            b'r' => value.bytes.push(13),
            b'\\' | b'\'' | b'"' => value.bytes.push(kind),
            b'0'..=b'7' => self.octal_escape(kind, value)?,
            b'x' => value.bytes.push(self.digits(0, 16, 2, 1)? as u8),
            b'u' => self.unicode_escape(4, value)?,
            b'U' => self.unicode_escape(8, value)?,
            b'N' => return Err(self.bad_string("a named character")),
            // An unknown escape stands for itself.
            other => value.bytes.extend([b'\\', other]),
        }
        Ok(())
    }

    /// Reads the rest of an octal escape.
    fn octal_escape(&mut self, first: u8, value: &mut StringValue) -> Result<(), ScanError> {
        let code = self.digits(u32::from(first - b'0'), 8, 2, 0)?;
        match u8::try_from(code) {
            Ok(byte) => value.bytes.push(byte),
            Err(_) if self.has_old_parser() => {
                value.bytes.extend_from_slice(format!("\\u{code:04x}").as_bytes());
            }
            Err(_) => return Err(self.bad_string("an octal escape above 377")),
        }
        Ok(())
    }

    /// Reads the digits of a Unicode escape.
    fn unicode_escape(&mut self, length: usize, value: &mut StringValue) -> Result<(), ScanError> {
        let code = self.digits(0, 16, length, length)?;
        if self.has_old_parser() && code <= 0x10_ffff {
            // A code below 256 is one byte; otherwise the escape is kept as text.
            match u8::try_from(code) {
                Ok(byte) => value.bytes.push(byte),
                Err(_) if code <= 0xffff => {
                    value.bytes.extend_from_slice(format!("\\u{code:04x}").as_bytes());
                }
                Err(_) => value.bytes.extend_from_slice(format!("\\U{code:08x}").as_bytes()),
            }
            return Ok(());
        }
        let Some(character) = char::from_u32(code) else {
            return Err(self.bad_string("an escape that is no Unicode character"));
        };
        value.bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn bad_string(&self, what: &'static str) -> ScanError {
        self.reader.error(TextErrorKind::String(what))
    }

    /// Reads up to `most` more digits after those in `code`, at least `least`.
    fn digits(
        &mut self,
        mut code: u32,
        radix: u32,
        most: usize,
        least: usize,
    ) -> Result<u32, ScanError> {
        for count in 0..most {
            let digit = self.reader.peek()?.and_then(|byte| char::from(byte).to_digit(radix));
            let Some(digit) = digit else {
                if count < least {
                    return Err(self.bad_string("an escape with too few digits"));
                }
                break;
            };
            // Eight hexadecimal digits fill the 32 bits exactly.
            code = code.wrapping_mul(radix).wrapping_add(digit);
            self.reader.step();
        }
        Ok(code)
    }

    /// Passes on the value of a field of bytes at its end: the bytes, or only their number if there
    /// are many.
    fn flush_bytes(&mut self, value: &mut StringValue, last: bool) {
        let StringValue { field, ref bytes, .. } = *value;
        let length = value.flushed.saturating_add(bytes.len() as u64);
        let message = self.frame.message;
        if last && self.frame.told && self.visitor.wants_bytes(message, field) {
            if length > WHOLE_STRING as u64 {
                self.visitor.long_bytes(message, field, length);
            } else {
                let whole = Piece { first: true, last: true };
                self.visitor.string(message, field, bytes, whole);
            }
        }
        value.flushed = length;
        value.first = false;
        value.bytes.clear();
    }

    /// Passes on what was read of a string, up to the last whole character.
    fn flush(&mut self, value: &mut StringValue, last: bool) -> Result<(), ScanError> {
        value.empty &= value.bytes.is_empty();
        // Here, unlike in the binary form, a string of a proto2 file must be UTF-8 as well.
        if value.field.kind == Kind::Bytes {
            self.flush_bytes(value, last);
            return Ok(());
        }
        let whole = match std::str::from_utf8(&value.bytes) {
            Ok(text) => text.len(),
            Err(error) if error.error_len().is_none() && !last => error.valid_up_to(),
            Err(_) => return Err(self.bad_string("it is not UTF-8")),
        };
        if self.frame.told {
            let piece = value.bytes.get(..whole).unwrap_or_default();
            self.visitor.string(
                self.frame.message,
                value.field,
                piece,
                Piece { first: value.first, last },
            );
        }
        value.first = false;
        value.bytes.drain(..whole);
        Ok(())
    }
}
