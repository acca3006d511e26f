//! Steps through the wire format of a protobuf message without building it.
//!
//! The [`Scanner`] checks what TensorFlow's own (C++) parser checks, on bytes that arrive window by window: it needs neither the whole
//! file nor memory for what it reads. Payloads (tensor contents, unknown fields) are stepped over and not even read.
//!
//! Knows the wire format and the table of messages. It must never know what a message means: that is the business of a [`Visitor`].
//!
//! What the real parser accepts is measured, not read off a specification: varints of up to 10 bytes whose surplus bits are dropped,
//! tags of up to 5 bytes whose surplus bits are dropped, a known field with another wire type taken as an unknown one, groups
//! stepped over, 100 messages or groups inside one another.

use super::schema::{Encoding, Field, Kind, Label, MessageId};

/// How many messages and groups may be inside one another, below the outermost message.
pub(crate) const MAXIMUM_DEPTH: usize = 100;

/// The longest length prefix that the real parser takes: it keeps 16 bytes of slack below 2^31.
const MAXIMUM_LENGTH: u64 = 0x7fff_ffff - 16;

/// The longest string that a visitor gets in one piece. A window must hold at least this much and a field header.
pub(crate) const WHOLE_STRING: usize = 64 * 1024;

/// The bytes that the header of a field needs at most: a tag of 5 bytes and a value of 10.
pub(crate) const FIELD_HEADER: usize = 16;

/// What is wrong with the bytes of a message, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {fault}")]
pub struct WireError {
    /// Position in the file, in bytes.
    pub at: u64,
    /// What is wrong there.
    pub fault: WireFault,
}

/// A violation of the protobuf wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireFault {
    /// A tag that is zero, longer than 5 bytes, or has the field number 0.
    #[error("this is no field tag")]
    Tag,
    /// A wire type that does not exist (6 or 7).
    #[error("wire type {0} does not exist")]
    WireType(u8),
    /// A varint of more than 10 bytes, or one that the end of its message cuts off.
    #[error("this is no varint")]
    Varint,
    /// A length that is longer than a message can be.
    #[error("a length that no message can have")]
    Length,
    /// A field that does not fit into what is left of its message.
    #[error(
        "a field of {needed} bytes where its message has {left} left: the data is cut off or damaged"
    )]
    Overrun {
        /// Bytes that the field says it has.
        needed: u64,
        /// Bytes that are left.
        left: u64,
    },
    /// The end of a group that was not opened, or of another one.
    #[error("the end of group {0}, which is not open here")]
    GroupEnd(u32),
    /// A group without an end.
    #[error("group {0} has no end")]
    GroupOpen(u32),
    /// More than 100 messages or groups inside one another.
    #[error("more than 100 messages inside one another")]
    Depth,
    /// A string that is not UTF-8.
    #[error("a string that is not UTF-8")]
    Utf8,
    /// Packed values that do not fill their field.
    #[error("packed values that do not fill their field")]
    Packed,
}

/// What a visitor wants of a nested message or packed field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Check it and tell of its fields.
    Into,
    /// Take its length on trust.
    Over,
}

/// Is told of the known fields of a message, in the order of the bytes.
pub(crate) trait Visitor {
    /// The content of the message that [`enter`](Self::enter) is told of next begins at byte `at`.
    #[inline]
    fn begins(&mut self, _at: u64) {}
    /// A nested message begins, the value of `field` of `message`.
    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step;
    /// The message that was the value of `field` of `message` has ended, at byte `at`.
    fn leave(&mut self, message: MessageId, field: &'static Field, at: u64);
    /// A varint or an element of packed varints.
    fn integer(&mut self, message: MessageId, field: &'static Field, value: u64);
    /// A piece of a string, the whole of it unless it is longer than [`WHOLE_STRING`].
    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece);
    /// Whether the elements of packed varints are wanted.
    fn wants_packed(&self, message: MessageId) -> bool;
    /// Whether a field of bytes is wanted, in one piece like a short string; one that is longer than a window never is.
    #[inline]
    fn wants_bytes(&self, _message: MessageId, _field: &'static Field) -> bool {
        false
    }
    /// The GraphDef version of the release that is to read the message: the text form is refused where it says what that one does
    /// not know.
    fn release(&self) -> i32 {
        i32::MAX
    }
    /// A nested message whose bytes are all there, the value of `field` of `message`, before it is entered; `depth` messages are around
    /// it. Returns true if the visitor has checked it and taken what it wants, as if it had been told of all of it. Must do nothing otherwise.
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

/// Which part of a string a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) first: bool,
    pub(crate) last: bool,
}

/// What the scanner needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The message ended where it had to.
    Done,
    /// Bytes from this position on, at least as many as given unless the file ends before.
    Need { at: u64, bytes: usize },
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    /// The message whose fields are read; `None` inside a group, whose fields count for nothing.
    message: Option<MessageId>,
    /// The field that the message is the value of; `None` for the outermost message and for groups.
    field: Option<&'static Field>,
    /// Where it ends; for a group, where the message around it ends.
    end: u64,
    /// The number of the group; 0 for messages.
    group: u32,
}

/// A field that is longer than a window and is read in pieces.
#[derive(Debug, Clone, Copy)]
struct Long {
    field: &'static Field,
    end: u64,
    first: bool,
}

/// The state of a walk over one message.
#[derive(Debug)]
pub(crate) struct Scanner {
    stack: Vec<Frame>,
    /// How many messages and groups may be around one that is entered.
    limit: usize,
    at: u64,
    long: Option<Long>,
}

/// A varint at the start of `bytes`: its value and length. Surplus bits are dropped.
#[inline]
pub(crate) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    if first < 0x80 {
        return Some((u64::from(first), 1));
    }
    let mut value = u64::from(first & 0x7f);
    for (position, byte) in bytes.iter().enumerate().take(10).skip(1) {
        value |= u64::from(byte & 0x7f) << (7 * position);
        if *byte < 0x80 {
            return Some((value, position + 1));
        }
    }
    None
}

/// A tag at the start of `bytes`: at most 5 bytes, cut to 32 bits.
#[inline]
fn tag(bytes: &[u8]) -> Option<(u32, usize)> {
    let first = *bytes.first()?;
    if first < 0x80 {
        return Some((u32::from(first), 1));
    }
    let (value, length) = varint(bytes.get(..bytes.len().min(5))?)?;
    // The cut is what the real parser does; see the module's introduction.
    Some((value as u32, length))
}

/// A length prefix at the start of `bytes`: at most 5 bytes, and less than 2 GiB.
#[inline]
fn length(bytes: &[u8]) -> Result<(u64, usize), WireFault> {
    match bytes.first() {
        Some(first) if *first < 0x80 => return Ok((u64::from(*first), 1)),
        _ => {}
    }
    match varint(bytes.get(..bytes.len().min(5)).unwrap_or_default()) {
        Some((value, _)) if value > MAXIMUM_LENGTH => Err(WireFault::Length),
        Some(found) => Ok(found),
        None if bytes.len() >= 5 => Err(WireFault::Length),
        None => Err(WireFault::Varint),
    }
}

/// Whether short bytes are ASCII, eight at a time: names mostly are, and the general check costs more than they are long.
#[inline]
pub(crate) fn is_ascii(bytes: &[u8]) -> bool {
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

impl Scanner {
    /// A walk over a message of `size` bytes that starts at byte 0.
    pub(crate) fn new(message: MessageId, size: u64) -> Self {
        let mut stack = Vec::with_capacity(16);
        stack.push(Frame { message: Some(message), field: None, end: size, group: 0 });
        Self { stack, limit: MAXIMUM_DEPTH, at: 0, long: None }
    }

    /// Begins anew, with a message of `size` bytes that `depth` messages are around.
    pub(crate) fn restart(&mut self, message: MessageId, size: u64, depth: usize) {
        self.stack.clear();
        self.stack.push(Frame { message: Some(message), field: None, end: size, group: 0 });
        self.limit = MAXIMUM_DEPTH.saturating_sub(depth);
        self.at = 0;
        self.long = None;
    }

    /// Reads on in `window`, which starts at byte `start` of the file.
    pub(crate) fn run<V: Visitor>(
        &mut self,
        window: &[u8],
        start: u64,
        visitor: &mut V,
    ) -> Result<Progress, WireError> {
        let window_end = start.saturating_add(window.len() as u64);
        if let Some(long) = self.long {
            match self.run_long(long, window, start, visitor)? {
                None => {}
                Some(need) => return Ok(need),
            }
        }
        let Some(mut frame) = self.stack.last().copied() else { return Ok(Progress::Done) };
        let mut at = self.at;
        // Where the visitor would not take a message that it was offered.
        let mut declined = u64::MAX;
        loop {
            if at >= frame.end {
                if frame.group != 0 {
                    return Err(WireError { at, fault: WireFault::GroupOpen(frame.group) });
                }
                self.stack.pop();
                let Some(outer) = self.stack.last() else {
                    self.at = at;
                    return Ok(Progress::Done);
                };
                if let (Some(message), Some(field)) = (outer.message, frame.field) {
                    visitor.leave(message, field, at);
                }
                frame = *outer;
                continue;
            }
            // Most fields: a tag and a length of one byte each, and a string or message that is all here.
            let near = slice(window, start, at, window_end);
            if let [tag @ 0x0a..=0x7f, length @ 0..=0x7f, payload @ ..] = near
                && *tag & 7 == 2
                && let Some(payload) = payload.get(..usize::from(*length))
                && let Some(message) = frame.message
                && let Some(field) = message.describe().field(u32::from(*tag >> 3))
                && at + 2 + u64::from(*length) <= frame.end
            {
                match field.kind {
                    Kind::String => {
                        if !is_ascii(payload) && std::str::from_utf8(payload).is_err() {
                            return Err(WireError { at, fault: WireFault::Utf8 });
                        }
                        visitor.string(message, field, payload, Piece { first: true, last: true });
                        at += 2 + u64::from(*length);
                        continue;
                    }
                    Kind::Message(nested) if self.stack.len() <= self.limit => {
                        let end = at + 2 + u64::from(*length);
                        if declined != at
                            && visitor.take(message, field, payload, end, self.stack.len())
                        {
                            let near = slice(window, start, end, window_end.min(frame.end));
                            let (more, all) = take_alike(near, *tag, |payload, taken| {
                                let end = end + taken;
                                visitor.take(message, field, payload, end, self.stack.len())
                            });
                            at = end + more;
                            declined = if all { declined } else { at };
                            continue;
                        }
                        visitor.begins(at + 2);
                        match visitor.enter(message, field) {
                            Step::Over => at = end,
                            Step::Into => {
                                frame = Frame {
                                    message: Some(nested),
                                    field: Some(field),
                                    end,
                                    group: 0,
                                };
                                self.stack.push(frame);
                                at += 2;
                            }
                        }
                        continue;
                    }
                    _ => {}
                }
            }
            // Either everything up to the frame's end is here, or enough for the header of any field.
            let here = frame.end.min(window_end);
            if here < frame.end && here.saturating_sub(at) < FIELD_HEADER as u64 {
                self.at = at;
                return Ok(Progress::Need { at, bytes: FIELD_HEADER });
            }
            let bytes = slice(window, start, at, here);
            let error = |fault| WireError { at, fault };
            let (tag, tag_length) = tag(bytes).ok_or(error(WireFault::Tag))?;
            let number = tag >> 3;
            if number == 0 {
                return Err(error(WireFault::Tag));
            }
            let rest = bytes.get(tag_length..).unwrap_or_default();
            let after_tag = at + tag_length as u64;
            let left = frame.end - after_tag;
            match tag & 7 {
                0 => {
                    let (value, value_length) = varint(rest).ok_or(error(WireFault::Varint))?;
                    if let Some(message) = frame.message
                        && let Some(field) = message.describe().field(number)
                        && field.kind.encoding() == Encoding::Varint
                    {
                        visitor.integer(message, field, value);
                    }
                    at = after_tag + value_length as u64;
                }
                1 | 5 => {
                    let needed = if tag & 7 == 1 { 8 } else { 4 };
                    if left < needed {
                        return Err(error(WireFault::Overrun { needed, left }));
                    }
                    at = after_tag + needed;
                }
                2 => {
                    let (needed, prefix) = length(rest).map_err(error)?;
                    let left = left - prefix as u64;
                    if needed > left {
                        return Err(error(WireFault::Overrun { needed, left }));
                    }
                    let payload = after_tag + prefix as u64;
                    let end = payload + needed;
                    let field = frame
                        .message
                        .and_then(|message| Some((message, message.describe().field(number)?)));
                    let Some((message, field)) = field else {
                        at = end;
                        continue;
                    };
                    match field.kind {
                        Kind::Message(nested) => {
                            if self.stack.len() > self.limit {
                                return Err(error(WireFault::Depth));
                            }
                            if end <= window_end
                                && visitor.take(
                                    message,
                                    field,
                                    slice(window, start, payload, end),
                                    end,
                                    self.stack.len(),
                                )
                            {
                                at = end;
                                continue;
                            }
                            visitor.begins(payload);
                            match visitor.enter(message, field) {
                                Step::Over => at = end,
                                Step::Into => {
                                    frame = Frame {
                                        message: Some(nested),
                                        field: Some(field),
                                        end,
                                        group: 0,
                                    };
                                    self.stack.push(frame);
                                    at = payload;
                                }
                            }
                        }
                        Kind::Bytes
                            if needed <= WHOLE_STRING as u64
                                && visitor.wants_bytes(message, field) =>
                        {
                            if end > window_end {
                                self.at = at;
                                let bytes = WHOLE_STRING + FIELD_HEADER;
                                return Ok(Progress::Need { at, bytes });
                            }
                            let bytes = slice(window, start, payload, end);
                            visitor.string(
                                message,
                                field,
                                bytes,
                                Piece { first: true, last: true },
                            );
                            at = end;
                        }
                        Kind::Bytes | Kind::UncheckedString => at = end,
                        Kind::String => {
                            if end > window_end {
                                if needed <= WHOLE_STRING as u64 {
                                    self.at = at;
                                    return Ok(Progress::Need {
                                        at,
                                        bytes: WHOLE_STRING + FIELD_HEADER,
                                    });
                                }
                                return self.begin_long(field, payload, end);
                            }
                            let string = slice(window, start, payload, end);
                            if !is_ascii(string) && std::str::from_utf8(string).is_err() {
                                return Err(error(WireFault::Utf8));
                            }
                            visitor.string(
                                message,
                                field,
                                string,
                                Piece { first: true, last: true },
                            );
                            at = end;
                        }
                        kind if field.label == Label::Repeated => match kind.encoding() {
                            Encoding::Fixed32 if needed % 4 != 0 => {
                                return Err(error(WireFault::Packed));
                            }
                            Encoding::Fixed64 if needed % 8 != 0 => {
                                return Err(error(WireFault::Packed));
                            }
                            Encoding::Varint => {
                                if end > window_end {
                                    return self.begin_long(field, payload, end);
                                }
                                let packed = slice(window, start, payload, end);
                                let used = packed_varints(packed, message, field, visitor)
                                    .map_err(error)?;
                                if used != packed.len() {
                                    return Err(error(WireFault::Packed));
                                }
                                at = end;
                            }
                            _ => at = end,
                        },
                        // Another wire type than the field's own: an unknown field.
                        _ => at = end,
                    }
                }
                3 => {
                    if self.stack.len() > self.limit {
                        return Err(error(WireFault::Depth));
                    }
                    frame = Frame { message: None, field: None, end: frame.end, group: number };
                    self.stack.push(frame);
                    at = after_tag;
                }
                4 => {
                    if frame.group != number {
                        return Err(error(WireFault::GroupEnd(number)));
                    }
                    self.stack.pop();
                    let Some(outer) = self.stack.last() else {
                        return Err(error(WireFault::GroupEnd(number)));
                    };
                    frame = *outer;
                    at = after_tag;
                }
                wire_type => return Err(error(WireFault::WireType(wire_type as u8))),
            }
        }
    }

    fn begin_long(
        &mut self,
        field: &'static Field,
        payload: u64,
        end: u64,
    ) -> Result<Progress, WireError> {
        self.long = Some(Long { field, end, first: true });
        self.at = payload;
        Ok(Progress::Need { at: payload, bytes: WHOLE_STRING })
    }

    /// Reads on in a string or in packed varints that are longer than a window.
    fn run_long<V: Visitor>(
        &mut self,
        long: Long,
        window: &[u8],
        start: u64,
        visitor: &mut V,
    ) -> Result<Option<Progress>, WireError> {
        let window_end = start.saturating_add(window.len() as u64);
        let here = long.end.min(window_end);
        let bytes = slice(window, start, self.at, here);
        let last = here == long.end;
        let error = |fault| WireError { at: self.at, fault };
        let Some(message) = self.stack.last().and_then(|frame| frame.message) else {
            return Err(error(WireFault::Packed));
        };
        let used = if long.field.kind == Kind::String {
            let used = match std::str::from_utf8(bytes) {
                Ok(_) => bytes.len(),
                // A character that the window cuts is read again with the next one.
                Err(cut) if cut.error_len().is_none() && !last => cut.valid_up_to(),
                Err(_) => return Err(error(WireFault::Utf8)),
            };
            let piece = bytes.get(..used).unwrap_or_default();
            visitor.string(message, long.field, piece, Piece { first: long.first, last });
            used
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

/// The part of the window from byte `from` to byte `to` of the file; empty if the window does not reach there.
#[inline]
fn slice(window: &[u8], start: u64, from: u64, to: u64) -> &[u8] {
    let offset =
        |position: u64| usize::try_from(position.saturating_sub(start)).unwrap_or(usize::MAX);
    window.get(offset(from)..offset(to)).unwrap_or_default()
}

/// Reads packed varints as far as whole ones are there, and says how many bytes that was.
fn packed_varints<V: Visitor>(
    bytes: &[u8],
    message: MessageId,
    field: &'static Field,
    visitor: &mut V,
) -> Result<usize, WireFault> {
    let mut used = 0;
    if visitor.wants_packed(message) {
        while let Some((value, length)) = varint(bytes.get(used..).unwrap_or_default()) {
            visitor.integer(message, field, value);
            used += length;
        }
    } else {
        let mut run = 0;
        for (position, byte) in bytes.iter().enumerate() {
            run += 1;
            if *byte < 0x80 {
                used = position + 1;
                run = 0;
            } else if run == 10 {
                return Err(WireFault::Varint);
            }
        }
    }
    if bytes.len() - used >= 10 { Err(WireFault::Varint) } else { Ok(used) }
}
