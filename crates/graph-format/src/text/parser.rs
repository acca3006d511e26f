//! The grammar of the text format, driven by the table of messages.

use serdes_wire::MAXIMUM_DEPTH;

use super::{
    ScanError, TextErrorKind,
    number::{float, integer, is_octal},
    reader::{Reader, Token, shorten},
};
use crate::{
    scan::{Step, Visitor},
    schema::{
        EnumType, Field, Kind, Label, MessageId, has_old_text_parser, knows_field, knows_value,
    },
};

/// A message whose fields are being read.
pub(super) struct Frame {
    pub(super) message: MessageId,
    /// The field whose value the message is; `None` for the outermost message and an expanded
    /// `Any`.
    field: Option<&'static Field>,
    /// The closing character; `None` for the outermost message, which the end of the text closes.
    close: Option<char>,
    /// True if it is an element of a list.
    in_list: bool,
    /// True if the visitor receives its fields.
    pub(super) told: bool,
    /// The singular fields that have a value, one bit per field number; no number is above 63.
    present: u64,
}

pub(super) struct Parser<'a, 'v> {
    pub(super) reader: Reader<'a>,
    pub(super) token: Token,
    /// The enclosing messages, innermost last; never empty.
    outer: Vec<Frame>,
    pub(super) frame: Frame,
    pub(super) visitor: &'v mut dyn Visitor,
    /// True if a singular field may be given several times.
    merges: bool,
}

impl<'a, 'v> Parser<'a, 'v> {
    pub(super) fn new(
        mut reader: Reader<'a>,
        message: MessageId,
        visitor: &'v mut dyn Visitor,
    ) -> Result<Self, ScanError> {
        let token = reader.token()?;
        let frame =
            Frame { message, field: None, close: None, in_list: false, told: true, present: 0 };
        Ok(Self { reader, token, outer: Vec::new(), frame, visitor, merges: false })
    }

    /// Accepts a singular field several times.
    pub(super) fn merging(self) -> Self {
        Self { merges: true, ..self }
    }

    pub(super) fn run(mut self) -> Result<(), ScanError> {
        loop {
            match (self.token, self.frame.close) {
                (Token::End, None) => return Ok(()),
                (Token::End, Some(_)) => return Err(self.expected("the end of a message")),
                (Token::Symbol(symbol), Some(close)) if symbol == close => {
                    let end = self.reader.token_at();
                    self.next()?;
                    self.close_message(end)?;
                }
                _ => self.field()?,
            }
        }
    }

    pub(super) fn next(&mut self) -> Result<(), ScanError> {
        self.token = self.reader.token()?;
        Ok(())
    }

    fn try_symbol(&mut self, symbol: char) -> Result<bool, ScanError> {
        let found = self.token == Token::Symbol(symbol);
        if found {
            self.next()?;
        }
        Ok(found)
    }

    fn expect_symbol(&mut self, symbol: char, expected: &'static str) -> Result<(), ScanError> {
        if self.try_symbol(symbol)? { Ok(()) } else { Err(self.expected(expected)) }
    }

    pub(super) fn expected(&self, expected: &'static str) -> ScanError {
        self.reader.error(TextErrorKind::Expected { found: self.reader.show(self.token), expected })
    }

    /// Reads a field: up to the start of a message value, or as a whole.
    fn field(&mut self) -> Result<(), ScanError> {
        let description = self.frame.message.describe();
        if self.token == Token::Symbol('[') {
            return self.expanded_any(description.name);
        }
        let name = match self.token {
            Token::Identifier | Token::Number => self.reader.word(),
            _ => return Err(self.expected("the name of a field")),
        };
        let known = description
            .field_named(name)
            .filter(|field| knows_field(self.visitor.release(), self.frame.message, field.number));
        let Some(field) = known else {
            let kind =
                TextErrorKind::UnknownField { message: description.name, field: shorten(name) };
            return Err(self.reader.error(kind));
        };
        if field.oneof != 0
            && (0..64_u32).any(|number| {
                number != field.number
                    && self.frame.present & (1 << number) != 0
                    && description.field(number).is_some_and(|other| other.oneof == field.oneof)
            })
        {
            return Err(self
                .reader
                .error(TextErrorKind::Oneof { message: description.name, field: field.name }));
        }
        self.next()?;
        let colon = self.try_symbol(':')?;
        if let Kind::Message(_) = field.kind {
            let in_list = field.label == Label::Repeated && self.try_symbol('[')?;
            if in_list && self.try_symbol(']')? {
                return self.separator();
            }
            return self.open_message(field, in_list);
        }
        if !colon {
            return Err(self.expected("\":\""));
        }
        if field.label == Label::Repeated && self.try_symbol('[')? {
            if !self.try_symbol(']')? {
                loop {
                    self.value(field)?;
                    if self.try_symbol(']')? {
                        break;
                    }
                    self.expect_symbol(',', "\",\" or \"]\"")?;
                }
            }
        } else {
            self.value(field)?;
        }
        self.separator()
    }

    /// Skips the optional comma or semicolon between fields.
    fn separator(&mut self) -> Result<(), ScanError> {
        if !self.try_symbol(',')? {
            self.try_symbol(';')?;
        }
        Ok(())
    }

    fn open_message(&mut self, field: &'static Field, in_list: bool) -> Result<(), ScanError> {
        let close = self.open_bracket()?;
        let Kind::Message(message) = field.kind else { return Err(self.expected("a message")) };
        self.mark(field)?;
        if self.frame.told {
            self.visitor.begins(self.reader.token_at());
        }
        let told = self.frame.told && self.visitor.enter(self.frame.message, field) == Step::Into;
        self.push(Frame {
            message,
            field: Some(field),
            close: Some(close),
            in_list,
            told,
            present: 0,
        })
    }

    fn open_bracket(&mut self) -> Result<char, ScanError> {
        if self.try_symbol('<')? {
            return Ok('>');
        }
        self.expect_symbol('{', "\"{\" or \"<\"")?;
        Ok('}')
    }

    fn push(&mut self, frame: Frame) -> Result<(), ScanError> {
        if self.outer.len() == MAXIMUM_DEPTH {
            return Err(self.reader.error(TextErrorKind::Depth));
        }
        self.outer.push(std::mem::replace(&mut self.frame, frame));
        Ok(())
    }

    /// Continues after the bracket at byte `end`, which closes the innermost message.
    fn close_message(&mut self, end: u64) -> Result<(), ScanError> {
        let Some(outer) = self.outer.pop() else {
            return Err(self.expected("the end of the text"));
        };
        let closed = std::mem::replace(&mut self.frame, outer);
        let Some(field) = closed.field else { return self.separator() };
        if closed.told {
            self.visitor.leave(self.frame.message, field, end);
        }
        if closed.in_list && !self.try_symbol(']')? {
            self.expect_symbol(',', "\",\" or \"]\"")?;
            return self.open_message(field, true);
        }
        self.separator()
    }

    /// Reads `[type.googleapis.com/name] { … }` inside an `Any`: the value is checked, but not
    /// reported to the visitor.
    fn expanded_any(&mut self, message: &'static str) -> Result<(), ScanError> {
        if message != "google.protobuf.Any" {
            return Err(self.expected("the name of a field (the message has no extensions)"));
        }
        self.next()?;
        let mut url = String::new();
        while self.token != Token::Symbol(']') {
            match self.token {
                Token::Identifier | Token::Number => url.push_str(self.reader.word()),
                Token::Symbol(symbol) if "/-.~_!$&()*+,;=%".contains(symbol) => url.push(symbol),
                _ => return Err(self.expected("a type's address")),
            }
            if url.len() > 4096 {
                return Err(self.expected("a type's address of bearable length"));
            }
            self.next()?;
        }
        self.next()?;
        self.try_symbol(':')?;
        let close = self.open_bracket()?;
        let name = match url.rsplit_once('/') {
            Some((prefix, name)) if !prefix.is_empty() && !prefix.starts_with('/') => name,
            _ => return Err(self.reader.error(TextErrorKind::UnknownType(shorten(&url)))),
        };
        let Some(message) = MessageId::by_name(name) else {
            return Err(self.reader.error(TextErrorKind::UnknownType(shorten(name))));
        };
        self.push(Frame {
            message,
            field: None,
            close: Some(close),
            in_list: false,
            told: false,
            present: 0,
        })
    }

    /// Records that a field has a value; a singular field may have only one.
    pub(super) fn mark(&mut self, field: &'static Field) -> Result<(), ScanError> {
        if field.label == Label::Repeated {
            return Ok(());
        }
        let bit = 1_u64.checked_shl(field.number).unwrap_or_default();
        self.check_twice(field)?;
        self.frame.present |= bit;
        Ok(())
    }

    /// Reads a scalar.
    fn value(&mut self, field: &'static Field) -> Result<(), ScanError> {
        let error = match field.kind {
            Kind::String | Kind::UncheckedString | Kind::Bytes => return self.string(field),
            _ => self.check_twice(field),
        };
        let text = match self.token {
            Token::Identifier | Token::Number => self.reader.word(),
            _ => return Err(self.expected("a value")),
        };
        let release = self.visitor.release();
        let old = self.has_old_parser();
        let bad =
            |expected| TextErrorKind::Value { found: shorten(text), field: field.name, expected };
        let whole = |low: i128, high: i128, expected| match integer(text) {
            Some(value) if (low..=high).contains(&value) => Ok(value as u64),
            _ => Err(bad(expected)),
        };
        let value = match field.kind {
            Kind::Int32 => whole(i32::MIN.into(), i32::MAX.into(), "an integer of 32 bits"),
            Kind::Int64 | Kind::Sint64 => {
                whole(i64::MIN.into(), i64::MAX.into(), "an integer of 64 bits")
            }
            Kind::Uint32 => whole(0, u32::MAX.into(), "an unsigned integer of 32 bits"),
            Kind::Uint64 | Kind::Fixed64 => {
                whole(0, u64::MAX.into(), "an unsigned integer of 64 bits")
            }
            Kind::Bool => match text {
                "true" | "t" | "1" | "True" => Ok(1),
                "false" | "f" | "0" | "False" => Ok(0),
                _ => Err(bad("true or false")),
            },
            Kind::Float | Kind::Double => float(text, old).map(f64::to_bits).ok_or(bad("a number")),
            // Unlike elsewhere, a leading zero does not make the number octal here.
            Kind::Enum(index) => match integer(text).filter(|_| !is_octal(text)) {
                Some(value) if i32::try_from(value).is_ok() => Ok(value as u64),
                Some(_) => Err(bad("a number of 32 bits")),
                None => EnumType::get(index)
                    .and_then(|names| names.number(text))
                    .filter(|_| knows_value(release, text))
                    .map(|number| i64::from(number) as u64)
                    .ok_or(bad("a name of its enumeration")),
            },
            Kind::String | Kind::UncheckedString | Kind::Bytes | Kind::Message(_) => {
                Err(bad("no number"))
            }
        };
        let value = value.map_err(|kind| self.reader.error(kind))?;
        error?;
        // Without presence, the default value counts as absent.
        if field.label == Label::Optional || (field.label == Label::Plain && value != 0) {
            self.mark(field)?;
        }
        if self.frame.told {
            self.visit_number(field, value);
        }
        self.next()
    }

    /// Passes a number to the visitor: an integer, or the bits of a 64-bit float.
    fn visit_number(&mut self, field: &'static Field, value: u64) {
        let message = self.frame.message;
        if field.kind == Kind::Float {
            let float = f64::from_bits(value) as f32;
            self.visitor.floats(message, field, 1, &float.to_le_bytes());
        } else {
            self.visitor.integer(message, field, value);
        }
    }

    /// Fails if a singular field has a value already. Called before the new value is read; the
    /// value is recorded afterwards.
    pub(super) fn check_twice(&self, field: &'static Field) -> Result<(), ScanError> {
        let bit = 1_u64.checked_shl(field.number).unwrap_or_default();
        let is_given = field.label != Label::Repeated && self.frame.present & bit != 0;
        if is_given && !self.merges {
            let message = self.frame.message.describe().name;
            return Err(self.reader.error(TextErrorKind::Twice { message, field: field.name }));
        }
        Ok(())
    }

    /// Returns true if the release comes with protobuf 4, which reads some numbers and escapes
    /// differently.
    pub(super) fn has_old_parser(&self) -> bool {
        has_old_text_parser(self.visitor.release())
    }
}
