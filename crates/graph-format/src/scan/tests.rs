use proptest::prelude::*;
use serdes_wire::{Dialect, WireReader};

use super::*;

const ROOT: MessageId = MessageId(0);

/// A message with a field of every kind that is read differently.
static FIELDS: [Field; 7] = [
    Field::new(1, "message", Kind::Message(ROOT), Label::Repeated, 0),
    Field::new(2, "text", Kind::String, Label::Plain, 0),
    Field::new(3, "bytes", Kind::Bytes, Label::Plain, 0),
    Field::new(4, "numbers", Kind::Int64, Label::Repeated, 0),
    Field::new(5, "fixed32", Kind::Float, Label::Repeated, 0),
    Field::new(6, "fixed64", Kind::Double, Label::Repeated, 0),
    Field::new(7, "unchecked", Kind::UncheckedString, Label::Plain, 0),
];
static MESSAGES: [MessageType; 2] =
    [MessageType::new("test.Root", &FIELDS), MessageType::new("test.Nothing", &[])];
const SCHEMA: Schema = Schema::new(&MESSAGES);
const NOTHING: MessageId = MessageId(1);

/// Events of the visitor, with strings reassembled.
#[derive(Clone, Debug, Default, PartialEq)]
struct Events {
    events: Vec<(u32, Event)>,
    /// Offset of the next message.
    at: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum Event {
    Enter(u64),
    Leave(u64),
    Number(u64),
    Text(Vec<u8>),
}

impl Visitor for Events {
    fn begins(&mut self, at: u64) {
        self.at = at;
    }
    fn enter(&mut self, _message: MessageId, field: &'static Field) -> Step {
        self.events.push((field.number, Event::Enter(self.at)));
        Step::Into
    }
    fn leave(&mut self, _message: MessageId, field: &'static Field, at: u64) {
        self.events.push((field.number, Event::Leave(at)));
    }
    fn integer(&mut self, _message: MessageId, field: &'static Field, value: u64) {
        self.events.push((field.number, Event::Number(value)));
    }
    fn string(&mut self, _message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        match self.events.last_mut() {
            Some((_, Event::Text(text))) if !is.first => text.extend_from_slice(piece),
            _ => self.events.push((field.number, Event::Text(piece.to_vec()))),
        }
    }
    fn wants_packed(&self, _message: MessageId) -> bool {
        true
    }
    fn wants_bytes(&self, _message: MessageId, field: &'static Field) -> bool {
        field.number == 3
    }
}

/// Walks over `bytes` in windows of `size` bytes, or as large as the scanner asks for.
fn events(message: MessageId, bytes: &[u8], size: usize) -> Result<Vec<(u32, Event)>, WireError> {
    let mut scanner = Scanner::new(SCHEMA, message, bytes.len() as u64);
    let mut visitor = Events::default();
    let mut window = 0..0;
    loop {
        let part = &bytes[window.clone()];
        match scanner.run(part, window.start as u64, &mut visitor)? {
            Progress::Done => return Ok(visitor.events),
            Progress::Need { at, bytes: needed } => {
                let start = at as usize;
                window = start..bytes.len().min(start + size.max(needed));
            }
        }
    }
}

fn varint(bits: u64) -> Vec<u8> {
    let mut out = Vec::new();
    serdes_wire::varint::push(&mut out, bits);
    out
}

/// Encodes a length-delimited field.
fn delimited(number: u8, content: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2][..], &varint(content.len() as u64), content].concat()
}

#[test]
fn scan_reports_values_longer_than_the_window_alike() {
    let text = "schön".repeat(30_000).into_bytes();
    let numbers: Vec<u8> = (0..60_000).flat_map(|number| varint(number * 37)).collect();
    let message =
        [delimited(2, &text), delimited(4, &numbers), delimited(3, b"x"), vec![0x20, 5]].concat();
    let message = [delimited(1, &message), delimited(7, &[0xff; 70_000])].concat();
    let whole = events(ROOT, &message, message.len()).unwrap();
    assert_eq!(whole.len(), 60_005);
    assert_eq!(whole[1], (2, Event::Text(text)));
    assert_eq!(events(ROOT, &message, 70_000).unwrap(), whole);
    assert_eq!(events(ROOT, &message, 65_552).unwrap(), whole);
}

#[test]
fn a_long_field_that_is_wrong_is_wrong_in_the_last_piece_too() {
    let mut text = vec![b'a'; 200_000];
    text.push(0xc3);
    let error = events(ROOT, &delimited(2, &text), 65_552).unwrap_err();
    assert_eq!(error.kind, WireErrorKind::Utf8);
    let mut numbers = vec![1; 200_000];
    numbers.push(0x80);
    let error = events(ROOT, &delimited(4, &numbers), 65_552).unwrap_err();
    assert_eq!(error.kind, WireErrorKind::Packed);
}

#[test]
fn every_error_is_told_apart() {
    let deep = (0..101).fold(Vec::new(), |inner, _| delimited(1, &inner));
    for (bytes, at, kind) in [
        (&[0x00, 1][..], 0, WireErrorKind::Tag),
        (&[0x80, 0x80, 0x80, 0x80, 0x80, 0x00], 0, WireErrorKind::Tag),
        (&[0x08, 1, 0x0e], 2, WireErrorKind::WireType(6)),
        (&[0x20, 0x80], 0, WireErrorKind::Varint),
        (&[0x12, 0x80], 0, WireErrorKind::Varint),
        (&[0x12, 0xff, 0xff, 0xff, 0xff, 0x07], 0, WireErrorKind::Length),
        (&[0x12, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00], 0, WireErrorKind::Length),
        (&[0x12, 3, b'a'], 0, WireErrorKind::Overrun { needed: 3, left: 1 }),
        (&[0x2d, 1], 0, WireErrorKind::Overrun { needed: 4, left: 1 }),
        (&[0x0b, 0x14], 1, WireErrorKind::GroupEnd(2)),
        (&[0x0c], 0, WireErrorKind::GroupEnd(1)),
        (&[0x0b], 1, WireErrorKind::GroupOpen(1)),
        (&deep, 237, WireErrorKind::Depth),
        (&[0x12, 1, 0xff], 0, WireErrorKind::Utf8),
        (&[0x2a, 3, 1, 2, 3], 0, WireErrorKind::Packed),
        (&[0x32, 4, 1, 2, 3, 4], 0, WireErrorKind::Packed),
        (&[0x22, 1, 0x80], 0, WireErrorKind::Packed),
    ] {
        let found = events(ROOT, bytes, bytes.len()).unwrap_err();
        assert_eq!(found.kind, kind, "{bytes:02x?}");
        assert_eq!(found.at, at, "{bytes:02x?}");
    }
}

/// A visitor that takes every offered message of the field, and records where each ended.
#[derive(Default)]
struct Taker {
    taken: Vec<u64>,
    entered: usize,
}

impl Visitor for Taker {
    fn enter(&mut self, _message: MessageId, _field: &'static Field) -> Step {
        self.entered += 1;
        Step::Into
    }
    fn take(
        &mut self,
        _message: MessageId,
        _field: &'static Field,
        bytes: &[u8],
        end: u64,
        depth: usize,
    ) -> bool {
        assert_eq!(depth, 1);
        let takes = bytes.first() == Some(&0x18);
        if takes {
            self.taken.push(end);
        }
        takes
    }
}

#[test]
fn a_message_is_offered_once_and_entered_where_it_is_not_taken() {
    let taken = delimited(1, &[0x18, 1]);
    let entered = delimited(1, &[0x10, 1]);
    let long = delimited(1, &[&[0x18, 1][..], &[0x18, 1].repeat(100)].concat());
    let bytes = [&taken[..], &taken, &entered, &taken, &entered, &entered, &long, &taken].concat();
    let mut scanner = Scanner::new(SCHEMA, ROOT, bytes.len() as u64);
    let mut taker = Taker::default();
    assert_eq!(scanner.run(&bytes, 0, &mut taker), Ok(Progress::Done));
    let end = bytes.len() as u64;
    assert_eq!((taker.taken, taker.entered), (vec![4, 8, 16, end - 4, end], 3));
}

/// Generates bytes that are often fields.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let mark = prop::sample::select(vec![
        0x08_u8, 0x0a, 0x0b, 0x0c, 0x12, 0x1a, 0x20, 0x22, 0x2a, 0x2d, 0x32, 0x31, 0, 1, 2, 3, 4,
        8, 0x80, 0xff,
    ]);
    prop::collection::vec(prop_oneof![6 => mark, 1 => any::<u8>()], 0..80)
}

proptest! {
    #[test]
    fn windows_of_any_size_tell_the_same(bytes in bytes(), size in 0..40_usize) {
        let whole = events(ROOT, &bytes, bytes.len());
        let cut = events(ROOT, &bytes, size);
        prop_assert_eq!(cut.is_ok(), whole.is_ok());
        if whole.is_ok() {
            prop_assert_eq!(cut, whole);
        }
    }

    #[test]
    fn unknown_fields_are_taken_as_the_cursor_takes_them(bytes in bytes()) {
        let mut cursor = WireReader::new(Dialect::Tensorflow, &bytes);
        let fields = loop {
            match cursor.next_field() {
                Ok(Some(_)) => {}
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        prop_assert_eq!(events(NOTHING, &bytes, bytes.len()).is_ok(), fields);
    }
}
