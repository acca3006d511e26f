use proptest::prelude::*;
use prost::Message as _;

use super::*;

const DIALECTS: [Dialect; 2] = [Dialect::Prost, Dialect::Tensorflow];

/// A message without declared fields.
#[derive(Clone, PartialEq, prost::Message)]
struct Nothing {}

fn fields(dialect: Dialect, bytes: &[u8]) -> Result<Vec<(u32, FieldValue<'_>)>, Malformed> {
    let mut reader = WireReader::new(dialect, bytes);
    let mut fields = Vec::new();
    while let Some(field) = reader.next_field()? {
        fields.push((field.number, field.value));
    }
    Ok(fields)
}

/// Encodes nested groups, the innermost with `content`.
fn groups(depth: usize, content: &[u8]) -> Vec<u8> {
    [&vec![0x0b; depth][..], content, &vec![0x0c; depth]].concat()
}

#[test]
fn fields_of_every_wire_type_are_read() {
    let bytes = [
        0x08, 0x96, 0x01, // 1: varint 150
        0x11, 1, 0, 0, 0, 0, 0, 0, 0, // 2: fixed64
        0x1a, 2, b'a', b'b', // 3: bytes
        0x23, 0x08, 0x01, 0x2b, 0x2c, 0x24, // 4: a group with a varint and a group
        0x2d, 2, 0, 0, 0, // 5: fixed32
    ];
    for dialect in DIALECTS {
        assert_eq!(
            fields(dialect, &bytes).unwrap(),
            [
                (1, FieldValue::Varint(150)),
                (2, FieldValue::Fixed64(1)),
                (3, FieldValue::Bytes(b"ab")),
                (4, FieldValue::Group),
                (5, FieldValue::Fixed32(2)),
            ]
        );
    }
}

#[test]
fn a_short_field_is_taken_if_it_comes_next() {
    let bytes = [0x12, 1, b'a', 0x12, 0x81, 0, b'b', 0x0a, 3, b'c'];
    let mut reader = WireReader::new(Dialect::Prost, &bytes);
    assert_eq!(reader.take_short(1), None);
    assert_eq!(reader.take_short(2), Some(&b"a"[..]));
    // A length in two bytes, although it fits into one.
    assert_eq!(reader.take_short(2), None);
    assert_eq!(reader.next_field().unwrap().unwrap().value, FieldValue::Bytes(b"b"));
    // Longer than the message.
    assert_eq!(reader.take_short(1), None);
    assert!(reader.next_field().is_err());
    assert_eq!(WireReader::new(Dialect::Prost, &[]).take_short(1), None);
}

#[test]
fn bytes_that_no_parser_takes_are_refused_with_place() {
    for (bytes, at) in [
        (&[0x08][..], 1),
        (&[0x08, 0x80], 1),
        (&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], 1),
        (&[0x08, 1, 0x0a, 5, 1], 4),
        (&[0x0a, 2, b'a'], 2),
        (&[0x11, 0], 1),
        (&[0x15, 1, 2, 3], 1),
        (&[0x00, 1], 1),
        (&[0x0b], 1),
        (&[0x0b, 0x08], 2),
        (&[0x0b, 0x08, 0x01], 3),
        (&[0x0b, 0x14], 2),
        (&[0x0c], 1),
        (&[0x24], 1),
        (&[0x0e], 1),
        (&[0x0f], 1),
        (&groups(101, &[]), 101),
        (&vec![0x23; 100_000], 101),
    ] {
        for dialect in DIALECTS {
            let error = fields(dialect, bytes).unwrap_err();
            assert_eq!(error.at, at, "{bytes:02x?} {dialect:?}: {error}");
        }
        assert!(Nothing::decode(bytes).is_err(), "{bytes:02x?}");
    }
}

#[test]
fn surplus_bits_are_refused_by_prost_alone() {
    let surplus = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
    let number = [&[0x08][..], &surplus].concat();
    let length = [&[0x0a][..], &surplus].concat();
    // Field 1 in five bytes, with bits above the 32nd.
    let tag = [0x88, 0x80, 0x80, 0x80, 0x10, 1];
    for wrong in [&number[..], &length, &tag] {
        assert!(fields(Dialect::Prost, wrong).is_err(), "{wrong:02x?}");
        assert!(Nothing::decode(wrong).is_err(), "{wrong:02x?}");
    }
    let value = FieldValue::Varint(u64::MAX >> 1);
    assert_eq!(fields(Dialect::Tensorflow, &number).unwrap(), [(1, value)]);
    assert!(fields(Dialect::Tensorflow, &length).is_err());
    let value = FieldValue::Varint(1);
    assert_eq!(fields(Dialect::Tensorflow, &tag).unwrap(), [(1, value)]);
}

#[test]
fn tags_longer_than_five_bytes_are_taken_by_prost_alone() {
    let tag = [0x88, 0x80, 0x80, 0x80, 0x80, 0x00, 1];
    let length = [0x0a, 0x81, 0x80, 0x80, 0x80, 0x80, 0x00, b'a'];
    assert_eq!(fields(Dialect::Prost, &tag).unwrap(), [(1, FieldValue::Varint(1))]);
    assert_eq!(fields(Dialect::Prost, &length).unwrap(), [(1, FieldValue::Bytes(b"a"))]);
    for wrong in [&tag[..], &length] {
        assert!(fields(Dialect::Tensorflow, wrong).is_err(), "{wrong:02x?}");
    }
}

#[test]
fn a_hundred_groups_may_be_inside_one_another() {
    for dialect in DIALECTS {
        assert_eq!(fields(dialect, &groups(100, &[])).unwrap(), [(1, FieldValue::Group)]);
        assert!(fields(dialect, &groups(99, &[0x08, 1])).is_ok());
    }
    // The parser of prost counts the field itself.
    assert!(fields(Dialect::Prost, &groups(100, &[0x08, 1])).is_err());
    assert!(fields(Dialect::Tensorflow, &groups(100, &[0x08, 1])).is_ok());
}

#[test]
fn nesting_limit_is_a_hundred_messages_and_groups() {
    let group = groups(1, &[]);
    let mut reader = WireReader::new(Dialect::Tensorflow, &group);
    for _ in 0..100 {
        assert_eq!(reader.next_field().unwrap().unwrap().value, FieldValue::Group);
        reader = reader.nested(&group).unwrap();
    }
    assert!(reader.next_field().is_err());
    assert!(reader.nested(&group).is_err());
}

#[test]
fn repeated_numbers_are_read_packed_or_not() {
    let read = |value: FieldValue<'_>| {
        let mut numbers = Vec::new();
        value.each_varint(Dialect::Prost, |number| numbers.push(number)).map(|()| numbers)
    };
    assert_eq!(read(FieldValue::Varint(7)), Ok(vec![7]));
    assert_eq!(read(FieldValue::Bytes(&[1, 0x96, 1])), Ok(vec![1, 150]));
    assert_eq!(read(FieldValue::Fixed32(1)), Ok(vec![]));
    assert_eq!(read(FieldValue::Bytes(&[1, 0x96])).unwrap_err().at, 1);
}

/// Returns the `min_consumer` of a GraphDef of these bytes, if it is accepted.
fn minimum_consumer(bytes: &[u8]) -> Result<i32, Malformed> {
    let mut minimum = 0;
    let mut graph = WireReader::new(Dialect::Tensorflow, bytes);
    while let Some(field) = graph.next_field()? {
        let (4, FieldValue::Bytes(versions)) = (field.number, field.value) else { continue };
        let mut versions = graph.nested(versions)?;
        while let Some(field) = versions.next_field()? {
            if let (2, FieldValue::Varint(value)) = (field.number, field.value) {
                minimum = value as i32;
            }
        }
    }
    Ok(minimum)
}

#[test]
fn the_dialect_of_tensorflow_takes_what_its_parser_takes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/wire/dialects.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let (mut taken, mut refused, mut other) = (0, 0, 0);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let [hexadecimal, cpp, upb] =
            line.split(' ').collect::<Vec<_>>().try_into().unwrap_or_else(|_| panic!("{line}"));
        let bytes: Vec<u8> = (0..hexadecimal.len() / 2)
            .map(|at| u8::from_str_radix(&hexadecimal[2 * at..][..2], 16).unwrap())
            .collect();
        // The import of a graph names a number that is above its own.
        let ours = match minimum_consumer(&bytes) {
            Ok(minimum) if minimum > 2474 => format!("taken:{minimum}"),
            Ok(_) => "taken".to_owned(),
            Err(_) => "refused".to_owned(),
        };
        assert_eq!(ours, cpp, "{line}");
        assert_eq!(check_fields(&bytes).is_ok(), Nothing::decode(&bytes[..]).is_ok(), "{line}");
        *if cpp == "refused" { &mut refused } else { &mut taken } += 1;
        other += usize::from(cpp != upb);
    }
    assert_eq!((taken, refused, other), (149, 1647, 23));
}

/// Generates bytes that are often fields.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let mark = prop::sample::select(vec![
        0x08_u8, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x13, 0x14, 0, 1, 2, 0x80, 0x81, 0xff,
    ]);
    prop::collection::vec(prop_oneof![4 => mark, 1 => any::<u8>()], 0..64)
}

proptest! {
    #[test]
    fn the_raw_fields_are_the_message(bytes in bytes()) {
        for dialect in DIALECTS {
            let mut reader = WireReader::new(dialect, &bytes);
            let mut raw = Vec::new();
            let whole = loop {
                match reader.next_field() {
                    Ok(Some(field)) => raw.extend_from_slice(field.raw),
                    Ok(None) => break true,
                    Err(_) => break false,
                }
            };
            prop_assert!(bytes.starts_with(&raw));
            prop_assert_eq!(whole, raw.len() == bytes.len());
        }
    }

    #[test]
    fn dialect_of_prost_reads_what_prost_skips(bytes in bytes(), depth in 96..103_usize) {
        for bytes in [groups(depth, &bytes), bytes] {
            prop_assert_eq!(check_fields(&bytes).is_ok(), Nothing::decode(&bytes[..]).is_ok());
        }
    }
}
