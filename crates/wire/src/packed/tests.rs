use std::fmt::Debug;

use proptest::prelude::*;
use prost::Message;

use super::*;

/// A message with one packed list, as prost writes and reads it.
#[derive(Clone, PartialEq, Message)]
struct Narrow {
    #[prost(int32, repeated, tag = "1")]
    values: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct Wide {
    #[prost(int64, repeated, tag = "1")]
    values: Vec<i64>,
}

/// Returns the content of the only field.
fn content(message: &[u8]) -> &[u8] {
    let Some(mut rest) = message.get(1..) else { return &[] };
    let length = prost::encoding::decode_varint(&mut rest).unwrap() as usize;
    &rest[..length]
}

/// Encodes the field with this content.
fn field(content: &[u8]) -> Vec<u8> {
    let mut message = vec![0x0a];
    prost::encoding::encode_varint(content.len() as u64, &mut message);
    message.extend_from_slice(content);
    message
}

fn check_encode<T: PackedNumber + Debug + PartialEq>(values: &[T], expected: &[u8]) {
    assert_eq!(T::packed_len(values), expected.len());
    let mut out = vec![0xee; expected.len()];
    for encode in [encode::<T>, encode_scalar::<T>] {
        out.fill(0xee);
        assert_eq!(encode(values, &mut out), Some(expected.len()));
        assert_eq!(out, expected);
        if let Some(short) = expected.len().checked_sub(1) {
            assert_eq!(encode(values, &mut out[..short]), None);
        }
    }
    for decode in [decode::<T>, decode_scalar::<T>] {
        let mut read = Vec::new();
        assert_eq!(decode(expected, &mut read), Ok(()));
        assert_eq!(read, values);
    }
}

fn check_decode<T: PackedNumber + Debug + PartialEq>(bytes: &[u8], prost: Option<&[T]>) {
    for decode in [decode::<T>, decode_scalar::<T>] {
        let mut read = Vec::new();
        let found = decode(bytes, &mut read);
        match prost {
            Some(values) => assert_eq!((found, &read[..]), (Ok(()), values)),
            None => assert_eq!(found, Err(MalformedList)),
        }
    }
}

#[test]
fn implementation_never_exceeds_the_processor() {
    assert_eq!(Implementation::Scalar.choose(), Implementation::Scalar);
    assert_eq!(Implementation::in_use(), Implementation::Scalar);
    assert_eq!(Implementation::Avx2.choose(), Implementation::fastest());
    assert_eq!(Implementation::in_use(), Implementation::fastest());
}

#[test]
fn lists_at_length_and_block_borders_are_written_as_by_prost() {
    let borders = [
        0,
        1,
        127,
        128,
        129,
        16383,
        16384,
        2_097_151,
        2_097_152,
        268_435_456,
        i32::MAX,
        -1,
        i32::MIN,
    ];
    for value in borders {
        for length in [0, 1, 7, 8, 9, 31, 32, 33, 64, 100] {
            let values = vec![value; length];
            check_encode(&values, content(&Narrow { values: values.clone() }.encode_to_vec()));
            let values = vec![i64::from(value) << 20; length];
            check_encode(&values, content(&Wide { values: values.clone() }.encode_to_vec()));
        }
    }
    let values: Vec<i32> = (0..20_000).collect();
    check_encode(&values, content(&Narrow { values: values.clone() }.encode_to_vec()));
    let values: Vec<i64> = (0..20_000).collect();
    check_encode(&values, content(&Wide { values: values.clone() }.encode_to_vec()));
}

#[test]
fn a_list_that_ends_inside_of_a_number_is_malformed() {
    for before in [0, 5, 31, 32, 33] {
        for end in [
            &[0x80][..],
            &[0xff; 9],
            &[0xff; 11],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
        ] {
            let bytes = [&vec![1; before][..], end].concat();
            check_decode::<i32>(&bytes, None);
            check_decode::<i64>(&bytes, None);
        }
    }
}

/// Generates numbers, most of them short, in runs of the same length.
fn numbers() -> impl Strategy<Value = Vec<i64>> {
    let number = prop_oneof![
        8 => 0_i64..128,
        8 => 128_i64..16384,
        2 => 0_i64..3_000_000,
        1 => any::<i64>(),
    ];
    prop::collection::vec((number, 1_usize..40), 0..12).prop_map(|runs| {
        runs.into_iter().flat_map(|(number, length)| vec![number; length]).collect()
    })
}

proptest! {
    #[test]
    fn implementations_write_and_read_as_prost_does(wide in numbers()) {
        let narrow: Vec<i32> = wide.iter().map(|value| *value as i32).collect();
        check_encode(&narrow, content(&Narrow { values: narrow.clone() }.encode_to_vec()));
        check_encode(&wide, content(&Wide { values: wide.clone() }.encode_to_vec()));
    }

    #[test]
    fn both_implementations_accept_what_prost_accepts(
        bytes in prop::collection::vec(prop_oneof![4 => 0_u8..128, 1 => any::<u8>()], 0..120)
    ) {
        let narrow = Narrow::decode(&field(&bytes)[..]).ok();
        check_decode(&bytes, narrow.as_ref().map(|message| &message.values[..]));
        let wide = Wide::decode(&field(&bytes)[..]).ok();
        check_decode(&bytes, wide.as_ref().map(|message| &message.values[..]));
    }
}
