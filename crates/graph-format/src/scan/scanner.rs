//! The walk itself, field by field.

use serdes_wire::{Dialect, MAXIMUM_DEPTH, varint};

use super::{
    Encoding, Field, Kind, Label, MessageId, MessageType, Piece, Schema, Step, Visitor, WireError,
    WireErrorKind,
    long::{Long, packed_varints},
    window::Window,
};

/// The parser that the scanner reproduces.
const DIALECT: Dialect = Dialect::Tensorflow;

/// The longest string, in bytes, that is passed to a visitor in one piece. A window must hold at
/// least this much and a field header.
pub const WHOLE_STRING: usize = 64 * 1024;

/// Upper bound on the length of a field header: a tag of 5 bytes and a value of 10.
pub(super) const FIELD_HEADER: usize = 16;

/// The state in which the scanner returns to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The message ended where it should.
    Done,
    /// The scanner needs bytes from this position, at least as many as given unless the file ends
    /// earlier.
    Need {
        /// The position.
        at: u64,
        /// Number of bytes.
        bytes: usize,
    },
}

/// A message or group whose fields are being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// The message; `None` inside a group, whose fields are ignored.
    pub(super) message: Option<(MessageId, &'static MessageType)>,
    /// The field whose value the message is; `None` for the outermost message and for groups.
    field: Option<&'static Field>,
    /// Offset of its end; for a group, the end of the enclosing message.
    pub(super) end: u64,
    /// The number of the group; 0 for messages.
    group: u32,
}

/// The state of a walk over one message.
#[derive(Debug)]
pub struct Scanner {
    schema: Schema,
    stack: Vec<Frame>,
    /// Limit on the number of messages and groups around an entered one.
    limit: usize,
    at: u64,
    long: Option<Long>,
}

impl Scanner {
    /// Creates a walk over a message of `size` bytes that starts at byte 0.
    pub fn new(schema: Schema, message: MessageId, size: u64) -> Self {
        let stack = Vec::with_capacity(16);
        let mut scanner = Self { schema, stack, limit: MAXIMUM_DEPTH, at: 0, long: None };
        scanner.restart(message, size, 0);
        scanner
    }

    /// Restarts with a message of `size` bytes at nesting depth `depth`.
    #[inline]
    pub fn restart(&mut self, message: MessageId, size: u64, depth: usize) {
        let message = Some((message, self.schema.message(message)));
        self.stack.clear();
        self.stack.push(Frame { message, field: None, end: size, group: 0 });
        self.limit = MAXIMUM_DEPTH.saturating_sub(depth);
        self.at = 0;
        self.long = None;
    }

    /// Continues in `window`, which starts at byte `start` of the file.
    ///
    /// # Errors
    /// [`WireError`] where TensorFlow's parser would refuse the bytes.
    pub fn run<V: Visitor>(
        &mut self,
        window: &[u8],
        start: u64,
        visitor: &mut V,
    ) -> Result<Progress, WireError> {
        let window = Window::new(window, start);
        if let Some(long) = self.long
            && let Some(need) = self.run_long(long, window, visitor)?
        {
            return Ok(need);
        }
        let Some(frame) = self.stack.last().copied() else { return Ok(Progress::Done) };
        let at = self.at;
        let mut walk = Walk { scanner: self, visitor, window, frame, at, declined: u64::MAX };
        loop {
            if let Some(progress) = walk.step()? {
                return Ok(progress);
            }
        }
    }

    /// Starts a field that is longer than a window, with its value from `payload` to `end`.
    fn begin_long(&mut self, field: &'static Field, payload: u64, end: u64) -> Progress {
        self.long = Some(Long::new(field, end));
        self.at = payload;
        Progress::Need { at: payload, bytes: WHOLE_STRING }
    }

    /// Continues a field that is longer than a window; returns `None` at its end.
    fn run_long<V: Visitor>(
        &mut self,
        mut long: Long,
        window: Window<'_>,
        visitor: &mut V,
    ) -> Result<Option<Progress>, WireError> {
        let error = |kind| WireError { at: self.at, kind };
        let message = self.innermost().ok_or(error(WireErrorKind::Packed))?;
        let used = long.read(self.at, message, window, visitor).map_err(error)?;
        self.at += used as u64;
        let is_over = self.at == long.end();
        self.long = (!is_over).then_some(long);
        Ok((!is_over).then_some(Progress::Need { at: self.at, bytes: WHOLE_STRING }))
    }

    /// Returns the message whose fields are read.
    fn innermost(&self) -> Option<MessageId> {
        self.stack.last()?.message.map(|(message, _)| message)
    }
}

/// A scanner working in one window.
pub(super) struct Walk<'s, 'w, V> {
    scanner: &'s mut Scanner,
    pub(super) visitor: &'s mut V,
    pub(super) window: Window<'w>,
    /// The innermost frame.
    pub(super) frame: Frame,
    pub(super) at: u64,
    /// Offset of a message that was offered to the visitor and not taken.
    pub(super) declined: u64,
}

/// A length-delimited field, with the range of its value.
#[derive(Clone, Copy)]
pub(super) struct Delimited {
    pub(super) message: MessageId,
    pub(super) field: &'static Field,
    pub(super) payload: u64,
    pub(super) end: u64,
}

impl<V: Visitor> Walk<'_, '_, V> {
    /// Reads a field or ends a message; returns the bytes needed if it cannot.
    #[inline(always)]
    fn step(&mut self) -> Result<Option<Progress>, WireError> {
        self.near()?;
        if self.at < self.frame.end {
            return self.field();
        }
        if self.frame.group != 0 {
            return Err(self.error(WireErrorKind::GroupOpen(self.frame.group)));
        }
        let Some(outer) = self.leave(self.frame, self.at) else {
            self.scanner.at = self.at;
            return Ok(Some(Progress::Done));
        };
        self.frame = outer;
        Ok(None)
    }

    pub(super) const fn error(&self, kind: WireErrorKind) -> WireError {
        WireError { at: self.at, kind }
    }

    /// Returns the number of messages and groups around a field.
    #[inline]
    pub(super) const fn depth(&self) -> usize {
        self.scanner.stack.len()
    }

    /// Returns true if another message or group may be entered.
    #[inline]
    pub(super) const fn has_room(&self) -> bool {
        self.depth() <= self.scanner.limit
    }

    /// Returns the field of the innermost message with this number, if it has one.
    #[inline]
    pub(super) fn known(&self, number: u32) -> Option<(MessageId, &'static Field)> {
        let (message, description) = self.frame.message?;
        Some((message, description.field(number)?))
    }

    #[cold]
    fn need(&mut self, bytes: usize) -> Option<Progress> {
        self.scanner.at = self.at;
        Some(Progress::Need { at: self.at, bytes })
    }

    /// Ends the innermost message, `frame`, at byte `at`; returns the frame around it, if there is
    /// one.
    #[inline(always)]
    pub(super) fn leave(&mut self, frame: Frame, at: u64) -> Option<Frame> {
        self.scanner.stack.pop();
        let outer = *self.scanner.stack.last()?;
        if let (Some((message, _)), Some(field)) = (outer.message, frame.field) {
            self.visitor.leave(message, field, at);
        }
        Some(outer)
    }

    /// Offers a message whose bytes are all in the window; returns true if the visitor took it.
    #[inline(always)]
    pub(super) fn take(&mut self, found: Delimited, bytes: &[u8]) -> bool {
        self.visitor.take(found.message, found.field, bytes, found.end, self.depth())
    }

    /// Enters the message `nested`; returns its frame, or `None` if the visitor skips it.
    #[inline(always)]
    pub(super) fn enter(&mut self, found: Delimited, nested: MessageId) -> Option<Frame> {
        self.visitor.begins(found.payload);
        match self.visitor.enter(found.message, found.field) {
            Step::Over => None,
            Step::Into => {
                let message = Some((nested, self.scanner.schema.message(nested)));
                let field = Some(found.field);
                let frame = Frame { message, field, end: found.end, group: 0 };
                self.scanner.stack.push(frame);
                Some(frame)
            }
        }
    }

    /// Reads a field of any form.
    #[inline]
    fn field(&mut self) -> Result<Option<Progress>, WireError> {
        // The window holds either everything up to the frame's end, or enough for any field header.
        let here = self.frame.end.min(self.window.end());
        if here < self.frame.end && here.saturating_sub(self.at) < FIELD_HEADER as u64 {
            return Ok(self.need(FIELD_HEADER));
        }
        let bytes = self.window.part(self.at, here);
        let mut rest = bytes;
        let tag = DIALECT.tag(&mut rest).ok_or(self.error(WireErrorKind::Tag))?;
        let after_tag = self.at + (bytes.len() - rest.len()) as u64;
        match (tag >> 3, tag & 7) {
            (0, _) => return Err(self.error(WireErrorKind::Tag)),
            (number, 0) => self.integer(number, rest, after_tag)?,
            (number, 1) => self.fixed(number, rest, 8, after_tag)?,
            (number, 2) => return self.delimited(number, rest, after_tag),
            (number, 3) => self.open_group(number, after_tag)?,
            (number, 4) => self.close_group(number, after_tag)?,
            (number, 5) => self.fixed(number, rest, 4, after_tag)?,
            (_, wire_type) => return Err(self.error(WireErrorKind::WireType(wire_type as u8))),
        }
        Ok(None)
    }

    #[inline]
    fn integer(&mut self, number: u32, bytes: &[u8], after_tag: u64) -> Result<(), WireError> {
        let mut rest = bytes;
        let value = DIALECT.varint(&mut rest).ok_or(self.error(WireErrorKind::Varint))?;
        if let Some((message, field)) = self.known(number)
            && field.kind.encoding() == Encoding::Varint
        {
            self.visitor.integer(message, field, value);
        }
        self.at = after_tag + (bytes.len() - rest.len()) as u64;
        Ok(())
    }

    fn fixed(
        &mut self,
        number: u32,
        bytes: &[u8],
        needed: u64,
        after_tag: u64,
    ) -> Result<(), WireError> {
        let left = self.frame.end - after_tag;
        if left < needed {
            return Err(self.error(WireErrorKind::Overrun { needed, left }));
        }
        if needed == 4
            && let Some((message, field)) = self.known(number)
            && field.kind.encoding() == Encoding::Fixed32
        {
            self.visitor.floats(message, field, 1, bytes.get(..4).unwrap_or_default());
        }
        // Visitors do not ask for repeated 64-bit numbers.
        if needed == 8
            && let Some((message, field)) = self.known(number)
            && field.kind.encoding() == Encoding::Fixed64
            && field.label != Label::Repeated
            && let Some(bits) = bytes.first_chunk()
        {
            self.visitor.integer(message, field, u64::from_le_bytes(*bits));
        }
        self.at = after_tag + needed;
        Ok(())
    }

    fn open_group(&mut self, number: u32, after_tag: u64) -> Result<(), WireError> {
        if !self.has_room() {
            return Err(self.error(WireErrorKind::Depth));
        }
        self.frame = Frame { message: None, field: None, end: self.frame.end, group: number };
        self.scanner.stack.push(self.frame);
        self.at = after_tag;
        Ok(())
    }

    fn close_group(&mut self, number: u32, after_tag: u64) -> Result<(), WireError> {
        if self.frame.group != number {
            return Err(self.error(WireErrorKind::GroupEnd(number)));
        }
        self.scanner.stack.pop();
        let outer = self.scanner.stack.last();
        self.frame = *outer.ok_or(self.error(WireErrorKind::GroupEnd(number)))?;
        self.at = after_tag;
        Ok(())
    }

    /// Reads a length-delimited field.
    #[inline]
    fn delimited(
        &mut self,
        number: u32,
        bytes: &[u8],
        after_tag: u64,
    ) -> Result<Option<Progress>, WireError> {
        let mut rest = bytes;
        let needed = length(&mut rest).map_err(|kind| self.error(kind))?;
        let payload = after_tag + (bytes.len() - rest.len()) as u64;
        let left = self.frame.end - payload;
        if needed > left {
            return Err(self.error(WireErrorKind::Overrun { needed, left }));
        }
        let end = payload + needed;
        let Some((message, field)) = self.known(number) else {
            self.at = end;
            return Ok(None);
        };
        let found = Delimited { message, field, payload, end };
        match field.kind {
            Kind::Message(nested) => self.message(found, nested),
            Kind::String => self.string(found),
            Kind::Bytes if self.visitor.wants_bytes(message, field) => Ok(self.bytes(found)),
            Kind::Bytes | Kind::UncheckedString => {
                self.at = end;
                Ok(None)
            }
            kind if field.label == Label::Repeated => self.packed(found, kind.encoding()),
            // A wire type other than the field's makes it an unknown field.
            _ => {
                self.at = end;
                Ok(None)
            }
        }
    }

    #[inline]
    fn message(
        &mut self,
        found: Delimited,
        nested: MessageId,
    ) -> Result<Option<Progress>, WireError> {
        if !self.has_room() {
            return Err(self.error(WireErrorKind::Depth));
        }
        let Delimited { message, field, payload, end } = found;
        let is_here = end <= self.window.end();
        if !is_here
            && end - payload <= WHOLE_STRING as u64
            && self.visitor.wants_whole(message, field)
        {
            return Ok(self.need(WHOLE_STRING + FIELD_HEADER));
        }
        self.at = end;
        if (!is_here || !self.take(found, self.window.part(payload, end)))
            && let Some(entered) = self.enter(found, nested)
        {
            (self.frame, self.at) = (entered, payload);
        }
        Ok(None)
    }

    fn string(&mut self, found: Delimited) -> Result<Option<Progress>, WireError> {
        let Delimited { message, field, payload, end } = found;
        if end > self.window.end() {
            return Ok(if end - payload <= WHOLE_STRING as u64 {
                self.need(WHOLE_STRING + FIELD_HEADER)
            } else {
                Some(self.scanner.begin_long(field, payload, end))
            });
        }
        let string = self.window.part(payload, end);
        if !is_text(string) {
            return Err(self.error(WireErrorKind::Utf8));
        }
        self.visitor.string(message, field, string, Piece::WHOLE);
        self.at = end;
        Ok(None)
    }

    fn bytes(&mut self, found: Delimited) -> Option<Progress> {
        let Delimited { message, field, payload, end } = found;
        let length = end - payload;
        if length > WHOLE_STRING as u64 {
            self.visitor.long_bytes(message, field, length);
        } else if end > self.window.end() {
            return self.need(WHOLE_STRING + FIELD_HEADER);
        } else {
            self.visitor.string(message, field, self.window.part(payload, end), Piece::WHOLE);
        }
        self.at = end;
        None
    }

    fn packed(
        &mut self,
        found: Delimited,
        encoding: Encoding,
    ) -> Result<Option<Progress>, WireError> {
        let Delimited { message, field, payload, end } = found;
        let needed = end - payload;
        let is_whole = match encoding {
            Encoding::Fixed32 if !needed.is_multiple_of(4) => false,
            Encoding::Fixed32 if self.visitor.wants_packed(message) => {
                let is_short = needed <= WHOLE_STRING as u64;
                if is_short && end > self.window.end() {
                    return Ok(self.need(WHOLE_STRING + FIELD_HEADER));
                }
                let all = if is_short { self.window.part(payload, end) } else { &[] };
                self.visitor.floats(message, field, needed / 4, all);
                true
            }
            Encoding::Fixed32 => true,
            Encoding::Fixed64 => needed.is_multiple_of(8),
            Encoding::Delimited => true,
            Encoding::Varint if end > self.window.end() => {
                return Ok(Some(self.scanner.begin_long(field, payload, end)));
            }
            Encoding::Varint => {
                let packed = self.window.part(payload, end);
                let used = packed_varints(packed, message, field, self.visitor)
                    .map_err(|kind| self.error(kind))?;
                used == packed.len()
            }
        };
        if !is_whole {
            return Err(self.error(WireErrorKind::Packed));
        }
        self.at = end;
        Ok(None)
    }
}

/// Splits a length off the front.
#[inline]
fn length(bytes: &mut &[u8]) -> Result<u64, WireErrorKind> {
    match DIALECT.length(bytes) {
        Some(length) if length > DIALECT.longest_field() => Err(WireErrorKind::Length),
        Some(length) => Ok(length),
        None if bytes.len() >= varint::LONGEST_32 => Err(WireErrorKind::Length),
        None => Err(WireErrorKind::Varint),
    }
}

/// Returns true if the bytes are UTF-8.
#[inline]
pub(super) fn is_text(bytes: &[u8]) -> bool {
    is_ascii(bytes) || std::str::from_utf8(bytes).is_ok()
}

/// Returns true if short bytes are ASCII, eight at a time: most names are ASCII, and the general
/// check takes longer.
#[inline]
pub fn is_ascii(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut high = 0;
    for word in words {
        high |= u64::from_le_bytes(*word);
    }
    for byte in rest {
        high |= u64::from(*byte);
    }
    high & 0x8080_8080_8080_8080 == 0
}
