use std::{
    collections::BTreeMap,
    io::Write as _,
    path::{Path, PathBuf},
};

use proptest::prelude::*;
use serdes_files::crc32c;
use serdes_graph_format::data_type::DataType;
use serdes_testkit::fields::field;

use super::*;
use crate::{
    StatusCode,
    checksum::mask,
    slice::{Extent, TensorSlice},
    table::{TableOptions, TableWriter},
};

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/tensorflow/ckpt")
        .join(name)
        .join("ckpt")
}

/// Returns every tensor of fixed element size of a bundle.
fn read_all(prefix: &Path) -> BTreeMap<String, (DataType, Vec<i64>, Vec<u8>)> {
    let bundle = Bundle::open(prefix).unwrap();
    let listing = bundle.tensors();
    assert!(listing.defects.is_empty(), "{:?}", listing.defects);
    let fixed =
        listing.tensors.iter().filter(|tensor| tensor.data_type() != Some(DataType::String));
    fixed
        .map(|tensor| {
            let bytes = bundle.read(tensor).unwrap();
            (
                tensor.name().into_owned(),
                (tensor.data_type().unwrap(), tensor.shape().to_vec(), bytes),
            )
        })
        .collect()
}

#[test]
fn a_bundle_of_tensorflow_is_written_again_byte_for_byte() {
    for name in ["base", "dtypes", "many"] {
        let prefix = corpus(name);
        let bundle = Bundle::open(&prefix).unwrap();
        let mut tensors = bundle.tensors().tensors;
        tensors.sort_by_key(|tensor| tensor.offset());
        // Empty tensors share their offset with the next tensor: among them the order of names is
        // the order of writing.
        tensors.sort_by_key(|tensor| (tensor.offset(), tensor.stored_len() > 0));
        let directory = tempfile::tempdir().unwrap();
        let copy = directory.path().join("ckpt");
        let mut writer = BundleWriter::create(&copy, BundleOptions::default()).unwrap();
        for tensor in &tensors {
            let name = tensor.name();
            match tensor.data_type().unwrap() {
                DataType::String => {
                    writer
                        .add_strings(&name, tensor.shape(), &bundle.strings(tensor).unwrap())
                        .unwrap();
                }
                data_type => {
                    let bytes = bundle.read(tensor).unwrap();
                    writer.add_bytes(&name, data_type, tensor.shape(), &bytes).unwrap();
                }
            }
        }
        let summary = writer.finish().unwrap();
        assert_eq!(summary.tensors, tensors.len());
        for suffix in [".index", ".data-00000-of-00001"] {
            let path = |prefix: &Path| files::with_suffix(prefix, suffix);
            assert_eq!(
                std::fs::read(path(&copy)).unwrap(),
                std::fs::read(path(&prefix)).unwrap(),
                "{name}{suffix}"
            );
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }
}

#[test]
fn pieces_are_joined_and_parts_are_cut() {
    let bundle = Bundle::open(corpus("shards3")).unwrap();
    let tensor = bundle.tensor("sl").unwrap();
    let floats = |bytes: Vec<u8>| -> Vec<f32> {
        bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    };
    let whole: Vec<f32> = (0..18u8).map(|i| f32::from(i / 6)).collect();
    assert_eq!(floats(bundle.read(&tensor).unwrap()), whole);
    let cases = [
        ("6 3 1,4:-", [&[0.0; 3][..], &[1.0; 6], &[2.0; 3]].concat()),
        ("6 3 -:0,1", vec![0.0, 0.0, 1.0, 1.0, 2.0, 2.0]),
        ("6 3 -:-", whole),
        ("6 3 2,2:1,2", vec![1.0; 4]),
    ];
    for (text, expected) in cases {
        let (_, slice) = TensorSlice::parse_specification(text).unwrap();
        assert_eq!(floats(bundle.read_slice(&tensor, &slice).unwrap()), expected, "{text}");
    }
    let hole = Bundle::open(corpus("slice_hole")).unwrap();
    let tensor = hole.tensor("sl").unwrap();
    assert_eq!(hole.read(&tensor).unwrap_err().status(), StatusCode::InvalidArgument);
}

#[test]
fn a_tensor_that_is_not_finished_is_not_in_the_bundle() {
    let directory = tempfile::tempdir().unwrap();
    let prefix = directory.path().join("new/ckpt");
    let mut writer = BundleWriter::create(&prefix, BundleOptions::default()).unwrap();
    writer.add_bytes("a", DataType::Int16, &[2], &[1, 2, 3, 4]).unwrap();
    let mut left = writer.add("b", DataType::Int16, &[2]).unwrap();
    left.write_all(&[9, 9]).unwrap();
    assert!(left.write_all(&[9, 9, 9]).is_err());
    drop(left);
    assert_eq!(
        writer.add_bytes("b", DataType::Int16, &[2], &[0]).unwrap_err().status(),
        StatusCode::InvalidArgument
    );
    writer.add_bytes("c", DataType::Int4, &[1], &[7]).unwrap();
    for name in ["", "a", "\0x"] {
        assert!(
            matches!(writer.add(name, DataType::Int8, &[]), Err(BundleError::Unwritable { .. })),
            "{name:?}"
        );
    }
    writer.finish().unwrap();
    let found = read_all(&prefix);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["a", "c"]);
    assert_eq!(found["c"].2, [7]);
    assert_eq!(std::fs::read(data_path(&prefix, 0, 1)).unwrap(), [1, 2, 3, 4, 7]);
}

#[test]
fn a_writer_that_is_dropped_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer =
        BundleWriter::create(directory.path().join("ckpt"), BundleOptions::default()).unwrap();
    writer.add_bytes("a", DataType::Int8, &[1], &[1]).unwrap();
    drop(writer);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn big_endian_data_is_given_out_little_endian() {
    let bundle = Bundle::open(corpus("hdr_big_endian")).unwrap();
    let alpha = bundle.tensor("alpha").unwrap();
    assert_eq!(bundle.read(&alpha).unwrap()[..4], [0x3f, 0x80, 0, 0]);
    let strings = bundle.strings(&bundle.tensor("str").unwrap()).unwrap_err();
    let BundleError::StringLengthChecksum { stored, computed, .. } = strings else {
        panic!("{strings}")
    };
    assert_eq!((stored, computed), (3_497_606_239, 3_584_138_440));
}

fn any_slices() -> impl Strategy<Value = (Vec<i64>, Vec<Vec<Extent>>)> {
    proptest::collection::vec((1i64..6, 1i64..4), 1..4).prop_map(|dimensions| {
        let shape = dimensions.iter().map(|(size, _)| *size).collect();
        let mut boxes = vec![Vec::new()];
        for (size, parts) in dimensions {
            boxes = boxes
                .into_iter()
                .flat_map(|before| {
                    even_extents(size, parts).into_iter().map(move |extent| {
                        let mut extents = before.clone();
                        extents.push(extent);
                        extents
                    })
                })
                .collect();
        }
        (shape, boxes)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn written_data_is_read_back(
        tensors in proptest::collection::btree_map("[a-z/\u{e9}]{1,9}", (0usize..33, proptest::collection::vec(0i64..5, 0..4), any::<u8>()), 0..12),
        strings in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..20),
        shards in 1u16..4,
        alignment in 1u32..70,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let prefix = directory.path().join("ckpt");
        let options = BundleOptions::default().with_shards(shards).with_alignment(alignment);
        let mut writer = BundleWriter::create(&prefix, options).unwrap();
        let mut wanted = BTreeMap::new();
        for (name, (number, shape, seed)) in tensors {
            let data_type = DataType::all().nth(number).unwrap();
            let Some(size) = data_type.element_size() else { continue };
            let len = element_count(&shape).unwrap() * size;
            let bytes: Vec<u8> = (0..len).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed)).collect();
            writer.add_bytes(&name, data_type, &shape, &bytes).unwrap();
            wanted.insert(name, (data_type, shape, bytes));
        }
        writer.add_strings("=strings", &[strings.len() as i64], &strings).unwrap();
        writer.finish().unwrap();
        let found = read_all(&prefix);
        prop_assert_eq!(found, wanted);
        let bundle = Bundle::open(&prefix).unwrap();
        prop_assert_eq!(bundle.strings(&bundle.tensor("=strings").unwrap()).unwrap(), strings);
    }

    #[test]
    fn pieces_make_the_whole((shape, boxes) in any_slices(), wide in any::<bool>(), step in 1usize..40) {
        let directory = tempfile::tempdir().unwrap();
        let prefix = directory.path().join("ckpt");
        let (data_type, size) = if wide { (DataType::Complex128, 16) } else { (DataType::Uint8, 1) };
        let count = element_count(&shape).unwrap() as usize;
        let whole: Vec<u8> = (0..count * size).map(|i| (i % 251) as u8).collect();
        let cut = |slice: &TensorSlice| -> Vec<u8> {
            let bounds = slice.bounds(&shape).unwrap();
            let inside = |mut element: usize| {
                bounds.iter().zip(&shape).rev().all(|((start, length), size)| {
                    let at = (element % *size as usize) as i64;
                    element /= *size as usize;
                    at >= *start && at < start + length
                })
            };
            whole.chunks(size).enumerate().filter(|(i, _)| inside(*i)).flat_map(|(_, bytes)| bytes.to_vec()).collect()
        };
        let slices: Vec<_> = boxes.into_iter().map(|extents| TensorSlice::new(extents).unwrap()).collect();
        let mut writer = BundleWriter::create(&prefix, BundleOptions::default().with_shards(2)).unwrap();
        for slice in slices.iter().rev() {
            let mut piece = writer.add_slice("whole", data_type, &shape, slice).unwrap();
            piece.write_chunk(&cut(slice)).unwrap();
            piece.finish().unwrap();
        }
        writer.finish().unwrap();
        let bundle = Bundle::open(&prefix).unwrap();
        let tensor = bundle.tensor("whole").unwrap();
        prop_assert_eq!(tensor.is_partitioned(), slices.len() > 1);
        let mut reader = bundle.reader(&tensor).unwrap();
        let mut found = Vec::new();
        let mut chunk = vec![0; step];
        loop {
            let count = reader.read_chunk(&mut chunk).unwrap();
            if count == 0 { break; }
            found.extend_from_slice(&chunk[..count]);
        }
        prop_assert_eq!(&found, &whole);
        for slice in &slices {
            prop_assert_eq!(bundle.read_slice(&tensor, slice).unwrap(), cut(slice));
        }
        let inner: Vec<_> = shape.iter().map(|size| Extent::Range { start: size / 2, length: size - size / 2 }).collect();
        let inner = TensorSlice::new(inner).unwrap();
        prop_assert_eq!(bundle.read_slice(&tensor, &inner).unwrap(), cut(&inner));
    }
}

/// Shape and bytes by name.
type Values = BTreeMap<String, (Vec<i64>, Vec<u8>)>;

/// Opens a bundle in memory and reads it; returns true if it opens and every tensor restores, and
/// the values that were read.
fn outcome(index: &[u8], data: &[u8]) -> (bool, Values) {
    let mut memory = MemoryFiles::new();
    memory.insert("c.index", index.to_vec());
    memory.insert("c.data-00000-of-00001", data.to_vec());
    let Ok(bundle) = Bundle::open_any(memory, "c") else { return (false, BTreeMap::new()) };
    let report = bundle.verify(&VerifyOptions::default().with_data(true).with_threads(1));
    let mut values = BTreeMap::new();
    for tensor in &report.tensors {
        let bytes = match tensor.data_type() {
            Some(DataType::String) => bundle.strings(tensor).map(|strings| strings.concat()),
            _ => bundle.read(tensor),
        };
        if let Ok(bytes) = bytes {
            values.insert(tensor.name().into_owned(), (tensor.shape().to_vec(), bytes));
        }
    }
    (bundle.check_versions(&default_consumer()).is_ok() && report.errors.is_empty(), values)
}

#[test]
fn every_flipped_bit_and_every_cut_is_refused_or_harmless() {
    let index = std::fs::read(files::with_suffix(&corpus("base"), ".index")).unwrap();
    let data = std::fs::read(files::with_suffix(&corpus("base"), ".data-00000-of-00001")).unwrap();
    let (good, wanted) = outcome(&index, &data);
    assert!(good && wanted.len() == 4);
    // TensorFlow ignores the metaindex block with its trailer, its handle and the padding of the
    // footer.
    let footer = index.len() - 48;
    let metaindex = 0x79 + 5..0x79 + 5 + 13;
    for bit in 0..index.len() * 8 {
        let mut bytes = index.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let (good, values) = outcome(&bytes, &data);
        if good {
            assert!(metaindex.contains(&(bit / 8)) || bit / 8 >= footer, "bit {bit} of the index");
            assert_eq!(values, wanted, "bit {bit} of the index");
        }
        for (name, value) in &values {
            assert_eq!(Some(value), wanted.get(name), "bit {bit} of the index");
        }
    }
    for bit in 0..data.len() * 8 {
        let mut bytes = data.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let (good, values) = outcome(&index, &bytes);
        assert!(!good, "bit {bit} of the data");
        assert_eq!(values.len(), 3, "bit {bit} of the data");
        assert!(
            values.iter().all(|(name, value)| wanted.get(name) == Some(value)),
            "bit {bit} of the data"
        );
    }
    for len in 0..index.len() {
        assert!(!outcome(&index[..len], &data).0, "index cut to {len}");
    }
    for len in 0..data.len() {
        let (good, values) = outcome(&index, &data[..len]);
        assert!(
            !good && values.iter().all(|(name, value)| wanted.get(name) == Some(value)),
            "data cut to {len}"
        );
    }
}

#[test]
fn entries_that_overlap_are_not_read_for_ever() {
    use crate::table::{TableOptions, TableWriter};
    let data = vec![0u8; 4 << 20];
    let mut table = TableWriter::new(Vec::new(), TableOptions::default());
    table.add(b"", &[8, 1, 0x1a, 2, 8, 1]).unwrap();
    let entry = messages::RawEntry {
        dtype: 4,
        shape: vec![4 << 20],
        size: 4 << 20,
        crc: mask(crc32c(&data)),
        ..Default::default()
    };
    for i in 0..10_000u32 {
        table.add(&[b"t".as_slice(), &i.to_be_bytes()].concat(), &entry.encode(&[])).unwrap();
    }
    let mut memory = MemoryFiles::new();
    memory.insert("c.index", table.finish().unwrap().0);
    memory.insert("c.data-00000-of-00001", data);
    let bundle = Bundle::open_any(memory, "c").unwrap();
    let report = bundle.verify(&VerifyOptions::default().with_data(true));
    assert!(
        matches!(report.errors[..], [BundleError::Overlapping { .. }]),
        "{:?}",
        report.errors.len()
    );
    assert!(report.verified_bytes < 200 << 20);
}

/// Returns a checkpoint with the float tensor "part" of 6 rows by 4, in pieces of two rows that
/// begin at `starts`.
fn rows_from(starts: &[u8]) -> MemoryFiles {
    let dims = |rows: u8| field(2, &[field(2, &[8, rows]), field(2, &[8, 4])].concat());
    let slice = |start: u8| field(7, &[field(1, &[8, start, 16, 2]), field(1, &[])].concat());
    let slices: Vec<u8> = starts.iter().flat_map(|start| slice(*start)).collect();
    let mut entries = BTreeMap::from([
        (Vec::new(), vec![8, 1, 26, 2, 8, 1]),
        (b"part".to_vec(), [vec![8, 1], dims(6), slices].concat()),
    ]);
    let mut data = Vec::new();
    for start in starts {
        let range = Extent::Range { start: i64::from(*start), length: 2 };
        let place = TensorSlice::new(vec![range, Extent::Full]).unwrap();
        let bytes = [*start + 1; 32];
        let crc = mask(crc32c(&bytes)).to_le_bytes();
        let at = data.len() as u8;
        let piece = [vec![8, 1], dims(2), vec![32, at, 40, 32, 53], crc.to_vec()].concat();
        entries.insert(place.key(b"part"), piece);
        data.extend(bytes);
    }
    let mut table = TableWriter::new(Vec::new(), TableOptions::default());
    for (key, value) in entries {
        table.add(&key, &value).unwrap();
    }
    let mut files = MemoryFiles::new();
    let index = table.finish().unwrap().0;
    files.insert("c.index", index);
    files.insert("c.data-00000-of-00001", data);
    files
}

#[test]
fn pieces_that_overlap_beside_a_hole_are_no_tensor() {
    let whole = Bundle::open_any(rows_from(&[0, 2, 4]), "c").unwrap();
    let options = VerifyOptions::default().with_data(true);
    assert!(whole.verify(&options).errors.is_empty());
    assert_eq!(whole.read(&whole.tensor(b"part").unwrap()).unwrap()[64..], [5; 32]);

    // As many elements as the tensor has, but two of its rows are missing.
    for starts in [[0, 0, 4], [0, 1, 4], [0, 3, 4]] {
        let bundle = Bundle::open_any(rows_from(&starts), "c").unwrap();
        let report = bundle.verify(&options);
        assert!(matches!(report.errors[..], [BundleError::SlicesOverlap { .. }]), "{report:?}");
        let tensor = bundle.tensor(b"part").unwrap();
        let overlaps = |error| matches!(error, BundleError::SlicesOverlap { .. });
        assert!(overlaps(bundle.read(&tensor).unwrap_err()));
        assert!(overlaps(bundle.read_slice(&tensor, &TensorSlice::full(2)).unwrap_err()));
    }
}

#[test]
fn large_tensors_have_the_checksums_of_small_chunks() {
    let bytes: Vec<u8> = (0..(9_u32 << 20) + 4).map(|n| (n >> 11) as u8 ^ n as u8).collect();
    let shape = [bytes.len() as i64];
    let directory = tempfile::tempdir().unwrap();
    let [at_once, chunks] = ["a", "b"].map(|name| directory.path().join(name));
    let mut writer = BundleWriter::create(&at_once, BundleOptions::default()).unwrap();
    writer.add_bytes("t", DataType::Uint8, &shape, &bytes).unwrap();
    writer.finish().unwrap();
    let mut writer = BundleWriter::create(&chunks, BundleOptions::default()).unwrap();
    let mut tensor = writer.add("t", DataType::Uint8, &shape).unwrap();
    // Small parts around large ones, whose checksums continue from one part to the next.
    for part in
        [&bytes[..7], &bytes[7..5 << 20], &bytes[5 << 20..(5 << 20) + 9], &bytes[(5 << 20) + 9..]]
    {
        tensor.write_chunk(part).unwrap();
    }
    tensor.finish().unwrap();
    writer.finish().unwrap();
    for prefix in [&at_once, &chunks] {
        let bundle = Bundle::open(prefix).unwrap();
        let tensor = bundle.tensor(b"t").unwrap();
        assert_eq!(tensor.raw.crc, mask(crc32c(&bytes)));
        assert!(bundle.read(&tensor).unwrap() == bytes);
    }
}

/// Returns a table with these entries unchanged, in one block.
fn table_of(entries: &[(&[u8], &[u8])]) -> Vec<u8> {
    fn block(file: &mut Vec<u8>, entries: &[(&[u8], &[u8])]) -> Vec<u8> {
        let (at, mut body) = (file.len() as u8, Vec::new());
        for (key, value) in entries {
            body.extend([0, key.len() as u8, value.len() as u8]);
            body.extend([*key, *value].concat());
        }
        body.extend([[0; 4], 1_u32.to_le_bytes()].concat());
        let length = body.len() as u8;
        body.push(0);
        let checksum = mask(crc32c(&body)).to_le_bytes();
        file.extend([body, checksum.to_vec()].concat());
        // Both must be below 128, so that each is one byte.
        assert!(at < 128 && length < 128);
        vec![at, length]
    }
    let mut file = Vec::new();
    let data = block(&mut file, entries);
    let meta = block(&mut file, &[]);
    let index = block(&mut file, &[(b"\xff", &data)]);
    file.extend([meta, index, vec![0; 36]].concat());
    file.extend(0xdb47_7524_8b80_fb57_u64.to_le_bytes());
    file
}

#[test]
fn a_second_header_is_no_tensor() {
    let data = [7, 0, 0, 0];
    let crc = mask(crc32c(&data)).to_le_bytes();
    let entry = [vec![8, 3, 18, 0, 40, 4, 53], crc.to_vec()].concat();
    let (header, name): (&[u8], &[u8]) = (&[8, 1, 26, 2, 8, 1], b"t");
    let newer: &[u8] = &[8, 1, 26, 4, 8, 1, 16, 99];
    for second in [header, newer, b"", b"\xff", &entry] {
        let mut files = MemoryFiles::new();
        let entries: [(&[u8], &[u8]); 3] = [(b"", header), (b"", second), (name, &entry)];
        files.insert("c.index", table_of(&entries));
        files.insert("c.data-00000-of-00001", data.to_vec());
        let bundle = Bundle::open_any(files, "c").unwrap();
        bundle.check_versions(&super::default_consumer()).unwrap();
        let report = bundle.verify(&VerifyOptions::default().with_data(true));
        assert!(report.errors.is_empty(), "{report:?}");
        assert_eq!(report.warnings.len(), 1, "{report:?}");
        assert!(report.warnings[0].to_string().contains("twice"), "{}", report.warnings[0]);
        assert_eq!(report.tensors.len(), 1);
        assert_eq!(report.verified_bytes, 4);
    }
}
