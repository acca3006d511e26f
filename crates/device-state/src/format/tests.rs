use serdes::version::{Date, Entry, Line};

use super::{
    header::{Header, Supported},
    index::{Index, IndexBuilder, Placement, Surroundings},
    piece::{self, PieceHeader, PieceLayout},
    role::Role,
    trailer::Trailer,
    *,
};

fn header() -> Header {
    Header {
        format: 0,
        producer: 0,
        min_consumer: 0,
        bad_consumers: vec![7, 9],
        producer_release: "serdes 0.1.0".to_owned(),
        ifrt_version: 6,
        chunk_bytes: 1 << 20,
        metadata: Some(vec![("format".to_owned(), "pt".to_owned())]),
        role: Role::Whole,
    }
}

/// Returns a build of this number that reads everything older.
fn build(current: i32) -> Supported {
    Supported { current, minimum: 0, min_producer: 0 }
}

/// A line that no longer reads its first two formats, nor the data of its first three builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Aged;

impl Line for Aged {
    const NAME: &'static str = "aged";
    const TITLE: &'static str = "aged";
    const ENTRIES: &'static [Entry] = &[
        Entry::new(2, Date::from_ymd(2026, 1, 1).unwrap()),
        Entry::new(4, Date::from_ymd(2026, 3, 1).unwrap()),
    ];
    const MINIMUM: i32 = 2;
    const AS_OF: Date = Date::from_ymd(2026, 11, 1).unwrap();
    const MIN_PRODUCER: i32 = 3;
}

fn seal(bytes: &mut [u8]) {
    let prefix = checksum(&bytes[..28]);
    bytes[28..32].copy_from_slice(&prefix.to_le_bytes());
    let end = bytes.len() - 4;
    let sum = checksum(&bytes[..end]);
    bytes[end..].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn a_header_comes_back() {
    for header in [header(), Header { metadata: None, bad_consumers: vec![], ..header() }] {
        let bytes = header.encode().unwrap();
        assert_eq!(bytes.len() % 64, 0);
        assert_eq!(Header::decode(&bytes, build(0)).unwrap(), header);
    }
}

#[test]
fn header_for_newer_readers_is_too_new_and_not_corrupt() {
    let mut bytes = header().encode().unwrap();
    // The bytes behind the frozen prefix of a future header may be anything.
    bytes[8..20].copy_from_slice(&[5, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0]);
    bytes[40..].fill(0xee);
    seal(&mut bytes);
    let error = Header::decode(&bytes, build(0)).unwrap_err();
    assert!(matches!(error, Error::TooNew { found: 5, supported: 0, .. }), "{error}");
}

#[test]
fn a_newer_format_that_allows_old_readers_is_read() {
    let header = Header { format: 3, producer: 4, ..header() };
    assert_eq!(Header::decode(&header.encode().unwrap(), build(0)).unwrap(), header);
}

#[test]
fn format_and_producer_below_the_minimum_are_refused() {
    let ours = Supported::in_line::<Aged>();
    assert_eq!(ours, Supported { current: 4, minimum: 2, min_producer: 3 });
    let decode = |format, producer| {
        let header = Header { format, producer, ..header() };
        Header::decode(&header.encode().unwrap(), ours)
    };
    assert!(decode(2, 3).is_ok() && decode(4, 4).is_ok() && decode(3, 9).is_ok());
    for format in [0, 1] {
        let error = decode(format, 3).unwrap_err();
        assert!(
            matches!(error, Error::TooOld { found, supported: 2, .. } if found == format),
            "{error}"
        );
    }
    let error = decode(2, 2).unwrap_err();
    assert!(matches!(error, Error::ProducerTooOld { found: 2, supported: 3, .. }), "{error}");
    // Numbers that contradict each other do not count as old ones.
    let error = decode(1, 0).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
}

#[test]
fn unknown_fields_are_skipped_unless_they_are_critical() {
    for (tag, read) in [(20_u32, true), (CRITICAL | 20, false)] {
        let mut bytes = Header { metadata: None, ..header() }.encode().unwrap();
        let end = 32 + 16 + 24 + 16 + 16;
        assert_eq!(bytes[end..end + 8], [0; 8]);
        bytes.truncate(end);
        bytes.extend(tag.to_le_bytes());
        bytes.extend(3_u32.to_le_bytes());
        bytes.extend(*b"abc\0\0\0\0\0");
        bytes.resize((bytes.len() + 12).next_multiple_of(64), 0);
        let length = bytes.len() as u32;
        bytes[20..24].copy_from_slice(&length.to_le_bytes());
        seal(&mut bytes);
        match Header::decode(&bytes, build(0)) {
            Ok(_) => assert!(read),
            Err(error) => {
                assert!(!read);
                assert!(matches!(error, Error::TooNewFeature { found: 20, .. }), "{error}");
            }
        }
    }
}

#[test]
fn a_listed_reader_is_refused() {
    let error = Header::decode(&header().encode().unwrap(), build(9)).unwrap_err();
    assert!(matches!(error, Error::BadConsumer { number: 9, .. }), "{error}");
}

#[test]
fn every_flipped_bit_of_a_header_is_found() {
    let bytes = header().encode().unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let error = Header::decode(&bytes, build(0)).unwrap_err();
        assert!(
            matches!(error, Error::Corrupt { .. } | Error::NotDeviceState { .. }),
            "bit {bit}: {error}"
        );
    }
}

#[test]
fn every_truncated_header_is_found() {
    let bytes = header().encode().unwrap();
    for length in 0..bytes.len() {
        assert!(Header::decode(&bytes[..length], build(0)).is_err(), "{length}");
    }
}

fn piece() -> PieceHeader<'static> {
    PieceHeader {
        name: "dense/kernel",
        spec: b"spec",
        number: 3,
        device: 1,
        domain: Some(vec![(0, 2), (4, 4)]),
        data_offset: 4096,
        data_bytes: 32,
    }
}

#[test]
fn a_piece_header_comes_back() {
    for piece in [piece(), PieceHeader { domain: None, ..piece() }] {
        let bytes = piece.encode().unwrap();
        assert_eq!(bytes.len() as u64, piece.length());
        let announced = piece::announced(bytes.first_chunk().unwrap()).unwrap();
        assert_eq!(announced, piece.length());
        assert_eq!(piece::decode_header(&bytes).unwrap(), piece);
    }
}

#[test]
fn a_footer_belongs_to_its_piece() {
    let bytes = piece::encode_footer(3, &[1, 2]);
    assert_eq!(piece::decode_footer(&bytes, 3).unwrap(), [1, 2]);
    assert!(piece::decode_footer(&bytes, 4).is_err());
}

#[test]
fn large_data_is_aligned_to_pages_and_small_data_to_cache_lines() {
    let small = PieceLayout::new(64, 60, 10, 64).unwrap();
    assert_eq!((small.data, small.footer, small.end), (128, 138, 192));
    let large = PieceLayout::new(64, 60, 1 << 20, 1 << 20).unwrap();
    assert_eq!((large.data, large.end), (4096, 4096 + (1 << 20) + 64));
    assert_eq!(PieceLayout::new(u64::MAX - 100, 60, 10, 64), None);
}

#[test]
fn a_trailer_comes_back() {
    let trailer = Trailer {
        index_offset: 64,
        index_bytes: 8,
        file_bytes: 136,
        index_checksum: 1,
        header_checksum: 2,
        data_bytes: 0,
    };
    assert_eq!(Trailer::decode(&trailer.encode(), 136).unwrap(), trailer);
    assert!(Trailer::decode(&trailer.encode(), 137).is_err());
}

/// Returns an index over arrays of the given names, with one piece of 100 bytes each.
fn index(names: &[&str]) -> (Vec<u8>, Surroundings) {
    let mut builder = IndexBuilder::default();
    let mut position = 64;
    for (number, name) in names.iter().enumerate() {
        builder.array(name, b"spec").unwrap();
        let placement = Placement { device: 0, domain: None };
        let header = piece::header_length(name.len(), 4, 0);
        let layout = PieceLayout::new(position, header, 100, 64).unwrap();
        assert_eq!(builder.piece(&placement, layout.data, 100, 64).unwrap(), number as u32);
        builder.checksums(&[number as u32, 7]);
        position = layout.end;
    }
    let bytes = builder.encode().unwrap();
    let around = Surroundings {
        header_bytes: 64,
        chunk_bytes: 64,
        index_offset: position,
        data_bytes: 100 * names.len() as u64,
        index_checksum: checksum(&bytes),
        gaps: false,
        spread: false,
    };
    (bytes, around)
}

#[test]
fn index_finds_arrays_by_name_and_pieces_in_file_order() {
    let (bytes, around) = index(&["b", "", "a/long/name", "ü"]);
    let index = Index::decode(bytes, around).unwrap();
    assert_eq!(index.arrays_len(), 4);
    let names: Vec<_> = (0..4).map(|n| index.array(n).unwrap().name).collect();
    assert_eq!(names, ["", "a/long/name", "b", "ü"]);
    assert_eq!(index.find("b"), Some(2));
    assert_eq!(index.find("c"), None);
    assert_eq!(index.array(4), None);
    let first = index.piece(0).unwrap();
    assert_eq!(index.array(first.array).unwrap().name, "b");
    assert_eq!((index.checksum(0), index.checksum(1), index.checksum(2)), (0, 7, 1));
    assert_eq!(index.piece(4), None);
    assert_eq!(index.spec(0), b"spec");
}

#[test]
fn two_arrays_of_one_name_are_refused() {
    let mut builder = IndexBuilder::default();
    builder.array("a", b"").unwrap();
    assert!(matches!(builder.array("a", b""), Err(Error::DuplicateName { .. })));
}

#[test]
fn damaged_index_with_a_valid_checksum_is_still_checked() {
    let (bytes, around) = index(&["b", "a", "c"]);
    // Tags of tables, and lengths in padding, may change without harm; nothing may panic.
    let mut refused = 0;
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let around = Surroundings { index_checksum: checksum(&bytes), ..around };
        refused += usize::from(Index::decode(bytes, around).is_err());
    }
    assert!(refused > bytes.len() * 3, "{refused}");
}
