mod accounted;
mod hostile;
mod values;

use std::{
    collections::BTreeMap,
    fs,
    io::{Cursor, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::Value as Json;
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use super::super::{Error, Form, Source, open, open_at};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/torch")
}

/// Returns the folders of golden files, one per release of PyTorch.
fn releases() -> Vec<PathBuf> {
    let entries = fs::read_dir(data()).unwrap().map(|entry| entry.unwrap().path());
    let folders: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    assert!(!folders.is_empty());
    folders
}

/// Returns PyTorch's name of a type.
pub(super) fn type_in_torch(name: &str) -> &str {
    match name {
        "PRED" => "torch.bool",
        "S8" => "torch.int8",
        "S16" => "torch.int16",
        "S32" => "torch.int32",
        "S64" => "torch.int64",
        "U8" => "torch.uint8",
        "U16" => "torch.uint16",
        "U32" => "torch.uint32",
        "U64" => "torch.uint64",
        "F16" => "torch.float16",
        "BF16" => "torch.bfloat16",
        "F32" => "torch.float32",
        "F64" => "torch.float64",
        "C64" => "torch.complex64",
        "C128" => "torch.complex128",
        "F8E4M3FN" => "torch.float8_e4m3fn",
        "F8E5M2" => "torch.float8_e5m2",
        "F8E4M3FNUZ" => "torch.float8_e4m3fnuz",
        "F8E5M2FNUZ" => "torch.float8_e5m2fnuz",
        "F8E8M0FNU" => "torch.float8_e8m0fnu",
        other => other,
    }
}

pub(super) fn read(source: &dyn Source, position: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    source.read(position).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn files_of_real_torch_are_read_to_the_byte() {
    let mut files = 0;
    for release in releases() {
        let text = fs::read(release.join("expected.json")).unwrap();
        let expected: BTreeMap<String, BTreeMap<String, Json>> =
            serde_json::from_slice(&text).unwrap();
        for (file, tensors) in expected {
            let source = open(release.join(&file)).unwrap();
            let mut found = BTreeMap::new();
            for (position, info) in source.tensors().iter().enumerate() {
                let bytes: String =
                    read(&*source, position).iter().map(|byte| format!("{byte:02x}")).collect();
                let object = serde_json::json!({
                    "dtype": type_in_torch(info.dtype.name()),
                    "shape": info.shape.dims(),
                    "bytes": bytes,
                });
                found.insert(info.name.clone(), object);
            }
            assert_eq!(found, tensors, "{} {file}", release.display());
            assert_eq!(source.refused(), [], "{file}");
            assert!(source.compare_checksums(&mut |_| true).is_empty());
            files += 1;
        }
    }
    assert!(files >= 8, "{files}");
}

#[test]
fn tensors_of_one_place_are_one_tensor_with_several_names() {
    for release in releases() {
        for file in ["views.pt", "views_legacy.pt"] {
            let path = release.join(file);
            if !path.exists() {
                continue;
            }
            let source = open(path).unwrap();
            let name = |position: usize| source.tensors()[position].name.as_str();
            let aliases: Vec<_> = (0..source.tensors().len())
                .filter_map(|position| Some((name(position), name(source.alias_of(position)?))))
                .collect();
            assert_eq!(aliases, [("again", "base"), ("same_place", "base")], "{file}");
        }
    }
}

#[test]
fn plain_values_are_where_the_python_package_looks_for_them() {
    for release in releases() {
        let source = open(release.join("training_state_legacy.pt")).unwrap();
        let metadata = source.metadata().clone().unwrap();
        assert_eq!(metadata[0].0, "serdes_ml.leaves");
        // Python's `json` reads it, but JSON has no notation for infinity.
        let text = metadata[0].1.replace("Infinity", "1e999");
        for said in [
            "\"step\": 7",
            "\"loss\": 0.5",
            "\"best\": 1e999",
            "\"name\": \"caf\u{e9}\"",
            "\"done\": false",
            "\"optimizer/param_groups/0/lr\": 0.125",
            "\"optimizer/param_groups/0/betas/1\": 0.999",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
        assert!(!text.contains("scheduler"), "{text}");
    }
}

#[test]
fn modules_and_programs_are_refused_by_their_kind() {
    for release in releases() {
        let said = |file: &str| open(release.join(file)).err().unwrap().to_string();
        assert!(
            said("module.pt").contains("torch.nn.modules.linear.Linear"),
            "{}",
            said("module.pt")
        );
        if release.join("program.pt").exists() {
            assert!(said("program.pt").contains("TorchScript"), "{}", said("program.pt"));
        }
    }
}

#[test]
fn tensors_that_are_not_dense_numbers_are_refused_one_by_one() {
    for release in releases() {
        let source = open(release.join("others.pt")).unwrap();
        // PyTorch before 2.0 does not record that a tensor is a conjugate view.
        let names: Vec<_> = source.tensors().iter().map(|info| info.name.as_str()).collect();
        assert!(matches!(*names, ["w"] | ["w", "conjugate"]), "{names:?}");
        for refused in source.refused() {
            let word = match refused.name.as_str() {
                "sparse" => "torch._utils._rebuild_sparse_tensor",
                "quantized" => "torch._utils._rebuild_qtensor",
                "conjugate" => "resolve_conj",
                other => panic!("{other}"),
            };
            assert!(refused.reason.contains(word), "{refused:?}");
        }
        assert_eq!(names.len() + source.refused().len(), 4);
    }
}

/// Returns a pickle of protocol 2 with these operations.
pub(super) fn pickle(operations: &[u8]) -> Vec<u8> {
    [b"\x80\x02", operations, b"."].concat()
}

/// Encodes a string in a pickle.
pub(super) fn text(text: &str) -> Vec<u8> {
    [b"X", &(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

/// Encodes a tensor of floats in the storage `0` of 4 elements, at an offset, with a shape and
/// strides.
fn tensor(offset: u8, shape: &[u8], strides: &[u8]) -> Vec<u8> {
    let tuple = |items: &[u8]| {
        let items: Vec<u8> = items.iter().flat_map(|item| [b'K', *item]).collect();
        [b"(", &items[..], b"t"].concat()
    };
    [
        &b"ctorch._utils\n_rebuild_tensor_v2\n("[..],
        b"(",
        &text("storage"),
        b"ctorch\nFloatStorage\n",
        &text("0"),
        &text("cpu"),
        b"K\x04tQ",
        b"K",
        &[offset],
        &tuple(shape),
        &tuple(strides),
        b"\x89ccollections\nOrderedDict\n)RtR",
    ]
    .concat()
}

pub(super) fn archive(entries: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        let options = SimpleFileOptions::default().compression_method(method);
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// Returns the numbers 0 to 3 as the storage of [`tensor`].
fn storage() -> Vec<u8> {
    (0..4_u8).flat_map(|number| f32::from(number).to_le_bytes()).collect()
}

fn open_bytes(bytes: Vec<u8>) -> Result<Box<dyn Source>, Error> {
    open_at(Arc::new(bytes), "x.pt", Some(Form::Torch))
}

/// Opens an archive around a pickle.
fn open_pickle(pickle: &[u8]) -> Result<Box<dyn Source>, Error> {
    let entries = [("m/data.pkl", pickle), ("m/data/0", &storage())];
    open_bytes(archive(&entries, CompressionMethod::Stored))
}

fn said(pickle: &[u8]) -> String {
    open_pickle(pickle).err().unwrap().to_string()
}

#[test]
fn a_tensor_alone_is_called_like_its_file() {
    let source = open_pickle(&pickle(&tensor(1, &[3], &[1]))).unwrap();
    assert_eq!(source.tensors()[0].name, "x");
    let bytes = read(&*source, 0);
    assert_eq!(bytes, storage()[4..]);
}

#[test]
fn tensors_beyond_their_storage_are_damage() {
    for (offset, shape, strides) in
        [(0, &[5][..], &[1][..]), (1, &[4], &[1]), (0, &[2, 3], &[2, 1]), (4, &[1], &[1])]
    {
        let said = said(&pickle(&tensor(offset, shape, strides)));
        assert!(said.contains("beyond"), "{said}");
    }
    assert!(said(&pickle(&tensor(0, &[2], &[1, 1]))).contains("extents and strides"));
    // No element lies outside.
    assert!(open_pickle(&pickle(&tensor(4, &[0], &[1]))).is_ok());
    assert!(open_pickle(&pickle(&tensor(0, &[2, 2], &[2, 1]))).is_ok());
}

#[test]
fn globals_of_a_pickle_are_never_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("proof");
    let command = text(&format!("touch {}", file.display()));
    let evil = [&b"cposix\nsystem\n"[..], &command, b"\x85R"].concat();
    let said = said(&pickle(&evil));
    assert!(said.contains("posix.system") && !file.exists(), "{said}");
    // Among tensors it is left out, and reported by its name.
    let both =
        [&b"}("[..], &text("evil"), &evil, &text("w"), &tensor(0, &[4], &[1]), b"u"].concat();
    let source = open_pickle(&pickle(&both)).unwrap();
    assert_eq!(source.tensors().len(), 1);
    assert_eq!(source.refused()[0].name, "evil");
    assert!(source.refused()[0].reason.contains("posix.system"), "{:?}", source.refused());
    assert!(!file.exists());
}

#[test]
fn of_a_key_that_comes_twice_the_last_value_counts() {
    let twice = [
        &b"}("[..],
        &text("w"),
        b"K\x01",
        &text("w"),
        &tensor(0, &[4], &[1]),
        &text("1"),
        b"K\x05",
        b"K\x01K\x06",
        b"u",
    ]
    .concat();
    let source = open_pickle(&pickle(&twice)).unwrap();
    assert_eq!(source.tensors().len(), 1);
    // The string "1" and the number 1 are two keys with one name.
    assert_eq!(source.refused()[0].name, "1");
    assert_eq!(source.metadata().as_ref().unwrap()[0].1, r#"{"1": 5}"#);
}

#[test]
fn containers_that_hold_each_other_are_not_followed_for_ever() {
    // A list that contains itself, in a pickle that is too short for that, and in a longer one.
    assert!(said(&pickle(b"]q\x00h\x00a")).contains("far more"));
    let circle = [&text(&"x".repeat(1000))[..], b"0]q\x00h\x00a"].concat();
    assert!(said(&pickle(&circle)).contains("deep"));
    // Forty lists that contain the previous one twice: a million million leaves.
    let mut laughs = b"]q\x00K\x01a".to_vec();
    for level in 0..40_u8 {
        laughs.extend([b']', b'q', level + 1, b'(', b'h', level, b'h', level, b'e']);
    }
    assert!(said(&pickle(&laughs)).contains("far more"));
    // Deeply nested tuples.
    let tower = [&b")"[..], &[0x85; 100_000]].concat();
    assert!(said(&pickle(&tower)).contains("deep"));
}

#[test]
fn lengths_beyond_the_file_are_found_before_allocation() {
    for operations in [
        &b"X\xff\xff\xff\x7fx"[..],
        b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7fx",
        b"B\xff\xff\xff\xffx",
        b"\x96\xff\xff\xff\xff\xff\xff\xff\xffx",
        b"\x8b\xff\xff\xff\x7fx",
        b"Vnever ends",
        b"",
    ] {
        let said = said(&[b"\x80\x02", operations].concat());
        assert!(said.contains("damaged"), "{said}");
    }
}

#[test]
fn operations_that_find_nothing_are_damage() {
    for operations in [
        &b"0"[..],
        b"1",
        b"t",
        b"a",
        b"s",
        b"u",
        b"e",
        b"R",
        b"b",
        b"\x81",
        b"\x92",
        b"\x93",
        b"o",
        b"h\x00",
        b"j\x00\x00\x00\x00",
        b"gx\n",
        b"\x85",
        b"d",
        b"(K\x01d",
        b"(K\x01K\x02K\x03u",
        b"K\x01K\x02a",
        b"NN\x93",
        b"NNR",
        b"N)R",
        b"NQ",
        b")Q",
        b"\xff",
        b"X\x01\x00\x00\x00\xff",
        b"Iword\n",
        b"Fword\n",
        b"(No",
    ] {
        let error = open_pickle(&pickle(operations)).err().unwrap();
        assert!(matches!(error, Error::Corrupt { .. }), "{operations:?}: {error}");
    }
}

#[test]
fn all_forms_of_numbers_and_texts_are_read() {
    let values: [&[u8]; 16] = [
        b"J\xff\xff\xff\xff",
        b"K\x07",
        b"M\x00\x01",
        b"I12\n",
        b"I01\n",
        b"L-3L\n",
        b"\x8a\x01\xfe",
        b"\x8a\x00",
        b"F0.5\n",
        b"G\x3f\xf0\x00\x00\x00\x00\x00\x00",
        b"\x88",
        b"\x8c\x01a",
        b"U\x01b",
        b"S'c'\n",
        b"Vd\n",
        b"T\x01\x00\x00\x00e",
    ];
    let list = [&b"("[..], &values.concat(), b"l"].concat();
    let source = open_pickle(&pickle(&list)).unwrap();
    let expected = "-1 7 256 12 true -3 -2 0 0.5 1.0 true \"a\" \"b\" \"c\" \"d\" \"e\"";
    let expected = expected.split(' ').enumerate().map(|(at, value)| format!("\"{at}\": {value}"));
    let expected = format!("{{{}}}", expected.collect::<Vec<_>>().join(", "));
    assert_eq!(source.metadata().as_ref().unwrap()[0].1, expected);
}

#[test]
fn names_of_newer_protocols_stand_on_the_stack() {
    let dict = [
        &b"\x8c\x0bcollections\x8c\x0bOrderedDict\x93)R("[..],
        &text("w"),
        &tensor(0, &[4], &[1]),
        b"u",
    ];
    let source = open_pickle(&pickle(&dict.concat())).unwrap();
    assert_eq!(source.tensors()[0].name, "w");
}

#[test]
fn views_that_would_be_far_larger_than_their_file_are_refused() {
    // 255^4 views of one element: 4 GB.
    let said = said(&pickle(&tensor(0, &[255, 255, 255, 255], &[0, 0, 0, 0])));
    assert!(said.contains("contiguous"), "{said}");
}

#[test]
fn big_endian_numbers_are_refused_and_not_called_damaged() {
    let whole = pickle(&tensor(0, &[4], &[1]));
    let with = |order: &[u8]| {
        let entries =
            [("m/data.pkl", &whole[..]), ("m/byteorder", order), ("m/data/0", &storage())];
        open_bytes(archive(&entries, CompressionMethod::Stored))
    };
    assert!(with(b"little").is_ok());
    let error = with(b"big").err().unwrap();
    assert!(matches!(error, Error::Unsupported { .. }) && error.to_string().contains("big endian"));
    assert!(matches!(with(b"middle").err().unwrap(), Error::Corrupt { .. }));
}

#[test]
fn archives_that_are_damaged_or_compressed_are_told() {
    let whole = pickle(&tensor(0, &[4], &[1]));
    let entries = [("m/data.pkl", &whole[..]), ("m/data/0", &storage())];
    let error = open_bytes(archive(&entries, CompressionMethod::Deflated)).err().unwrap();
    assert!(error.to_string().contains("compressed"), "{error}");
    let error = open_bytes(archive(&entries[..1], CompressionMethod::Stored)).err().unwrap();
    assert!(error.to_string().contains("no entry data/0"), "{error}");
    let error = open_bytes(archive(&entries[1..], CompressionMethod::Stored)).err().unwrap();
    assert!(error.to_string().contains("without data.pkl"), "{error}");
    // A storage with a changed byte is found, however it is read.
    let mut bytes = archive(&entries, CompressionMethod::Stored);
    let at = bytes.windows(4).rposition(|four| four == 3.0_f32.to_le_bytes()).unwrap();
    bytes[at] ^= 1;
    let source = open_bytes(bytes.clone()).unwrap();
    assert!(source.read(0).unwrap().read_to_end(&mut Vec::new()).is_err());
    assert_eq!(source.compare_checksums(&mut |_| true).len(), 1);
    let part = pickle(&tensor(0, &[2], &[1]));
    let mut bytes =
        archive(&[("data.pkl", &part), ("data/0", &storage())], CompressionMethod::Stored);
    let at = bytes.windows(4).rposition(|four| four == 3.0_f32.to_le_bytes()).unwrap();
    bytes[at] ^= 1;
    assert!(open_bytes(bytes).unwrap().read(0).is_err());
}

#[test]
fn file_without_a_known_name_is_detected_by_its_first_bytes() {
    let folder = tempfile::tempdir().unwrap();
    for release in releases() {
        for file in ["views.pt", "views_legacy.pt"] {
            if release.join(file).exists() {
                let path = folder.path().join("pytorch_model.bin");
                fs::copy(release.join(file), &path).unwrap();
                assert_eq!(open(&path).unwrap().kind(), "torch");
            }
        }
    }
}

/// Returns a file of a release before 1.6: its pickles, and the storages behind them.
fn legacy(object: &[u8], keys: &[u8], storages: &[u8], little: u8) -> Vec<u8> {
    let machine = [&b"}"[..], &text("little_endian"), &[little], b"s"].concat();
    [
        &pickle(b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19")[..],
        &pickle(b"M\xe9\x03"),
        &pickle(&machine),
        &pickle(object),
        &pickle(keys),
        storages,
    ]
    .concat()
}

#[test]
fn files_of_before_the_archives_are_read_and_judged_alike() {
    let object = [
        &b"ctorch._utils\n_rebuild_tensor_v2\n(("[..],
        &text("storage"),
        b"ctorch\nFloatStorage\n",
        &text("7"),
        &text("cpu"),
        b"K\x04(",
        &text("part"),
        b"K\x01K\x02ttQK\x00K\x02\x85K\x01\x85\x89NtR",
    ]
    .concat();
    let keys = [&b"]"[..], &text("7"), b"a"].concat();
    let storages = [&4_u64.to_le_bytes()[..], &storage()].concat();
    let source = open_bytes(legacy(&object, &keys, &storages, 0x88)).unwrap();
    // The part of the storage from its second element.
    assert_eq!(read(&*source, 0), storage()[4..12]);

    let said = |bytes: Vec<u8>| open_bytes(bytes).err().unwrap().to_string();
    assert!(said(legacy(&object, &keys, &storages, 0x89)).contains("big endian"));
    assert!(said(legacy(&object, &keys, &storages[..20], 0x88)).contains("beyond the file"));
    assert!(said(legacy(&object, b"]", b"", 0x88)).contains("storage 7"));
    let other = [&b"]"[..], &text("8"), b"a"].concat();
    assert!(said(legacy(&object, &other, &storages, 0x88)).contains("storage 8"));
    let huge = [&u64::MAX.to_le_bytes()[..], &storage()].concat();
    assert!(said(legacy(&object, &keys, &huge, 0x88)).contains("beyond the file"));
    assert!(said(pickle(b"K\x01")).contains("none of torch.save"));
    assert!(said(Vec::new()).contains("damaged"));
}
