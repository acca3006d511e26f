use bytes::Bytes;
use prost::Message as _;

use super::*;
use crate::{
    codec::{DeserializeOptions, ErrorKind, FromProto as _, StatusCode, ToProto as _},
    ifrt::{
        testing::{hex, versions},
        xla,
    },
};

#[test]
fn pjrt_layout_is_written_as_in_metadata_of_an_executable() {
    let layout = PjRtLayout::new(xla::Layout::descending(2));
    for version in versions() {
        assert_eq!(layout.to_bytes(version).unwrap(), hex("0a070a020100800101"));
        let envelope = Layout::from(layout.clone());
        let proto = envelope.to_proto(version).unwrap();
        let real = "0a220a15786c613a3a696672743a3a506a52744c61796f757412090a070a020100800101";
        assert_eq!(proto.encode_to_vec(), hex(real));
        assert_eq!(Layout::from_proto(&proto, &DeserializeOptions::new()), Ok(envelope));
    }
}

#[test]
fn a_compact_layout_makes_the_round_trip_at_every_version() {
    let layout = CompactLayout::new([2, 0, 1]).unwrap();
    for version in versions() {
        let bytes = layout.to_bytes(version).unwrap();
        assert_eq!(bytes, hex("0a03020001"));
        assert_eq!(
            CompactLayout::from_bytes(bytes, &DeserializeOptions::new()),
            Ok(layout.clone())
        );
    }
    assert_eq!(layout.to_string(), "[2,0,1]");
    assert_eq!(layout.to_xla_layout().minor_to_major(), [1, 0, 2]);
    assert_eq!(CompactLayout::c_order(3).major_to_minor(), [0, 1, 2]);
}

#[test]
fn compact_layout_that_is_no_permutation_is_refused() {
    for list in [vec![1], vec![-1, 0], vec![0, 0], vec![0, 2], vec![i32::MAX]] {
        let proto = ifrt::CompactLayoutProto { major_to_minor: list.clone(), version_number: 0 };
        let error = CompactLayout::from_proto(&proto, &DeserializeOptions::new()).unwrap_err();
        assert_eq!(error.code(), StatusCode::InvalidArgument);
        let text = error.to_string();
        assert!(
            text.contains(&format!("{list:?}")) && text.contains(&format!("{} dim", list.len())),
            "{text}"
        );
    }
    assert!(CompactLayout::new([]).is_ok());
}

#[test]
fn a_layout_of_a_newer_version_is_too_new() {
    let compact = ifrt::CompactLayoutProto { version_number: 7, ..Default::default() };
    let error = CompactLayout::from_proto(&compact, &DeserializeOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooNew);
    let pjrt = ifrt::PjRtLayoutProto { version_number: 7, ..Default::default() };
    let error = PjRtLayout::from_proto(&pjrt, &DeserializeOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooNew);
}

#[test]
fn an_unknown_layout_is_named() {
    let proto = ifrt::LayoutProto {
        serialized_layout: Some(ifrt::Serialized {
            type_name: "xla::ifrt::OtherLayout".to_owned(),
            data: Bytes::new(),
        }),
    };
    let error = Layout::from_proto(&proto, &DeserializeOptions::new()).unwrap_err();
    assert_eq!(error.code(), StatusCode::Unimplemented);
    assert!(error.to_string().contains("OtherLayout"), "{error}");
}

#[test]
fn the_text_of_an_array_spec_loses_its_memory_space() {
    let layout = PjRtLayout::from_text(b"{1,0:T(8,128)S(5)}").unwrap();
    assert_eq!(layout.to_text(), "{1,0:T(8,128)}");
    let error = PjRtLayout::from_text(b"{1,0").unwrap_err();
    assert_eq!(error.code(), StatusCode::InvalidArgument);
    assert!(PjRtLayout::from_text(b"\xff").is_err());
}

#[test]
fn the_size_of_a_compact_array_counts_bits() {
    use crate::ifrt::{DType, Shape};

    let layout = CompactLayout::c_order(1);
    let five = Shape::new([5]).unwrap();
    for (dtype, bytes) in [(DType::S4, 3), (DType::U1, 1), (DType::F32, 20), (DType::Pred, 5)] {
        assert_eq!(layout.byte_size(dtype, &five), Ok(Some(bytes)), "{dtype}");
    }
    assert_eq!(layout.byte_size(DType::String, &five), Ok(None));
    let error = layout.byte_size(DType::F32, &Shape::scalar()).unwrap_err().to_string();
    assert!(error.contains("rank 0") && error.contains("rank 1"), "{error}");
    assert!(layout.byte_size(DType::F64, &Shape::new([i64::MAX]).unwrap()).is_err());
}
