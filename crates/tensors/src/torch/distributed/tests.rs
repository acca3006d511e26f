use std::{collections::BTreeMap, fs, io::Read as _, path::Path, sync::Arc};

use proptest::prelude::*;
use serde_json::Value as Json;
use serdes_files::FileSystem;
use zip::CompressionMethod;

use super::{
    super::{
        super::{Error, Source, open},
        tests::{archive, pickle, read, text, type_in_torch},
    },
    DistributedSource,
};

fn open_folder(folder: &Path) -> Result<DistributedSource, Error> {
    DistributedSource::open(Arc::new(FileSystem), folder)
}

fn said(folder: &Path) -> String {
    match open_folder(folder) {
        Err(error) => error.to_string(),
        Ok(source) => source.compare_size().unwrap_err().to_string(),
    }
}

fn data() -> Vec<std::path::PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/torch_distributed");
    let entries = fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}

#[test]
fn distributed_checkpoints_of_real_torch_are_read() {
    let releases = data();
    assert!(releases.len() >= 2);
    for release in releases {
        let expected = fs::read(release.join("expected.json")).unwrap();
        let expected: BTreeMap<String, Json> = serde_json::from_slice(&expected).unwrap();
        for path in ["checkpoint", "checkpoint/.metadata"] {
            let source = open(release.join(path)).unwrap();
            assert_eq!(source.kind(), "torch_distributed");
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
            assert_eq!(found, expected, "{}", release.display());
            assert_eq!(source.refused(), []);
            assert_eq!(source.left_out(), []);
            let values = &source.metadata().as_ref().unwrap()[0].1;
            for said in [r#""step": 500"#, r#""name": "run""#, r#""lr/0": 0.1"#, r#""lr/1": 0.2"#] {
                assert!(values.contains(said), "{values}");
            }
            source.compare_size().unwrap();
            assert!(source.compare_checksums(&mut |_| true).is_empty());
            let grid = source.tensors().iter().position(|info| info.name == "model/grid");
            assert_eq!(source.pieces(grid.unwrap()), Some(4));
        }
    }
}

/// Encodes a number in a pickle.
fn number(number: u64) -> Vec<u8> {
    match i64::try_from(number) {
        Ok(number) => [&b"\x8a\x08"[..], &number.to_le_bytes()].concat(),
        Err(_) => [&b"\x8a\x09"[..], &number.to_le_bytes(), &[0]].concat(),
    }
}

fn size(extents: &[u64]) -> Vec<u8> {
    let extents: Vec<u8> = extents.iter().flat_map(|extent| number(*extent)).collect();
    [&b"ctorch\nSize\n(("[..], &extents, b"ttR"].concat()
}

fn object(class: &str, state: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let class = format!("ctorch.distributed.checkpoint.metadata\n{class}\n)\u{81}}}(");
    let state: Vec<u8> =
        state.iter().flat_map(|(name, value)| [text(name), value.clone()].concat()).collect();
    // The letter 0x81 is one byte in a pickle and two in UTF-8.
    let class: Vec<u8> = class.chars().map(|letter| letter as u8).collect();
    [&class[..], &state, b"ub"].concat()
}

/// A tensor of bytes in chunks.
struct Tensor {
    name: &'static str,
    shape: Vec<u64>,
    /// Offsets and sizes.
    chunks: Vec<(Vec<u64>, Vec<u64>)>,
}

/// Recorded location of a chunk: its file, its first byte, its length in bytes.
type Stored = (String, u64, u64);

fn described(tensors: &[Tensor], stored: &[Stored]) -> Vec<u8> {
    let properties =
        "ctorch.distributed.checkpoint.metadata\nTensorProperties\n)\u{81}(ctorch\nuint8\ntb";
    let properties: Vec<u8> = properties.chars().map(|letter| letter as u8).collect();
    let (mut metadata, mut places) = (b"}(".to_vec(), b"}(".to_vec());
    let mut stored = stored.iter();
    for Tensor { name, shape, chunks } in tensors {
        let parts: Vec<u8> = chunks
            .iter()
            .flat_map(|(offsets, sizes)| {
                let state = [("offsets", size(offsets)), ("sizes", size(sizes))];
                object("ChunkStorageMetadata", &state)
            })
            .collect();
        let state = [
            ("properties", properties.clone()),
            ("size", size(shape)),
            ("chunks", [&b"]("[..], &parts, b"e"].concat()),
        ];
        metadata.extend([text(name), object("TensorStorageMetadata", &state)].concat());
        for (offsets, _) in chunks {
            let Some((file, begin, bytes)) = stored.next() else { break };
            let index = [("fqn", text(name)), ("offset", size(offsets))];
            let info = [
                ("relative_path", text(file)),
                ("offset", number(*begin)),
                ("length", number(*bytes)),
            ];
            places.extend(object("MetadataIndex", &index));
            places.extend(object("_StorageInfo", &info));
        }
    }
    let whole = object(
        "Metadata",
        &[
            ("state_dict_metadata", [&metadata[..], b"u"].concat()),
            ("storage_data", [&places[..], b"u"].concat()),
        ],
    );
    pickle(&whole)
}

/// Returns the archive of a tensor of bytes.
fn chunk_archive(extents: &[u64], bytes: &[u8]) -> Vec<u8> {
    let mut strides = Vec::new();
    let mut stride = 1;
    for extent in extents.iter().rev() {
        strides.insert(0, stride);
        stride *= extent;
    }
    let tuple = |numbers: &[u64]| {
        let numbers: Vec<u8> = numbers.iter().flat_map(|one| number(*one)).collect();
        [&b"("[..], &numbers, b"t"].concat()
    };
    let tensor = [
        &b"ctorch._utils\n_rebuild_tensor_v2\n(("[..],
        &text("storage"),
        b"ctorch\nByteStorage\n",
        &text("0"),
        &text("cpu"),
        &number(bytes.len() as u64),
        b"tQK\x00",
        &tuple(extents),
        &tuple(&strides),
        b"\x89ccollections\nOrderedDict\n)RtR",
    ]
    .concat();
    let entries = [("m/data.pkl", &pickle(&tensor)[..]), ("m/data/0", bytes)];
    archive(&entries, CompressionMethod::Stored)
}

/// Writes the chunks of tensors one after the other into a file, each element being its number in
/// the tensor; returns their locations.
fn write_chunks(folder: &Path, tensors: &[Tensor]) -> Vec<Stored> {
    let (mut file, mut stored) = (Vec::new(), Vec::new());
    for tensor in tensors {
        for (offsets, sizes) in &tensor.chunks {
            let mut bytes = Vec::new();
            for at in 0..sizes.iter().product() {
                let (mut rest, mut number, mut stride) = (at, 0, 1);
                for dimension in (0..sizes.len()).rev() {
                    number += (offsets[dimension] + rest % sizes[dimension]) * stride;
                    rest /= sizes[dimension];
                    stride *= tensor.shape[dimension];
                }
                bytes.push(number as u8);
            }
            let archive = chunk_archive(sizes, &bytes);
            stored.push(("__0_0.distcp".to_owned(), file.len() as u64, archive.len() as u64));
            file.extend(archive);
        }
    }
    fs::write(folder.join("__0_0.distcp"), file).unwrap();
    stored
}

/// Returns a tensor of 4 rows of 3, in two chunks of rows.
fn rows() -> Tensor {
    let chunks = vec![(vec![0, 0], vec![1, 3]), (vec![1, 0], vec![3, 3])];
    Tensor { name: "w", shape: vec![4, 3], chunks }
}

fn write(folder: &Path, tensors: &[Tensor], change: impl FnOnce(&mut Vec<Stored>)) {
    let mut stored = write_chunks(folder, tensors);
    change(&mut stored);
    fs::write(folder.join(".metadata"), described(tensors, &stored)).unwrap();
}

#[test]
fn distributed_tensors_are_joined_from_their_chunks() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[rows()], |_| {});
    let source = open(folder.path()).unwrap();
    assert_eq!(read(&*source, 0), (0..12).collect::<Vec<u8>>());
}

#[test]
fn distributed_chunks_that_do_not_make_a_tensor_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [&[(&[u64], &[u64])]; 6] = [
        &[(&[0, 0], &[1, 3])],
        &[(&[0, 0], &[2, 3]), (&[1, 0], &[2, 3])],
        &[(&[0, 0], &[2, 3]), (&[1, 0], &[3, 3])],
        &[(&[0, 0], &[1, 3]), (&[1, 0], &[4, 3])],
        &[(&[0, 0], &[4, 2]), (&[0, 1], &[4, 2])],
        &[(&[u64::MAX >> 1, 0], &[u64::MAX >> 1, 3]), (&[1, 0], &[3, 3])],
    ];
    for chunks in cases {
        let chunks = chunks.iter().map(|(at, sizes)| (at.to_vec(), sizes.to_vec())).collect();
        let tensor = Tensor { name: "w", shape: vec![4, 3], chunks };
        let stored: Vec<Stored> = (0..tensor.chunks.len() as u64)
            .map(|at| ("__0_0.distcp".to_owned(), at * 10, 10))
            .collect();
        fs::write(folder.path().join("__0_0.distcp"), [0; 64]).unwrap();
        fs::write(folder.path().join(".metadata"), described(&[tensor], &stored)).unwrap();
        let error = open_folder(folder.path()).err().unwrap();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        assert!(error.to_string().contains("chunk"), "{error}");
    }
}

#[test]
fn distributed_places_that_are_none_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let said_of = |change: &dyn Fn(&mut Vec<Stored>)| {
        write(path, &[rows()], |stored| change(stored));
        said(path)
    };
    assert!(said_of(&|stored| stored[1].0 = "gone.distcp".to_owned()).contains("no such file"));
    for name in ["../x", "/etc/passwd", "..", "", "a\\b"] {
        let said = said_of(&|stored| stored[0].0 = name.to_owned());
        assert!(said.contains("files of the folder"), "{said}");
    }
    for begin in [1 << 40, u64::MAX - 3] {
        let said = said_of(&|stored| stored[1].1 = begin);
        assert!(said.contains("as .metadata says") || said.contains("a file, and bytes"), "{said}");
    }
    assert!(said_of(&|stored| stored[1].1 -= 1).contains("share the bytes"));
    assert!(said_of(&|stored| drop(stored.pop())).contains("lies nowhere"));
    // The locations of two chunks are swapped.
    let said = said_of(&|stored| stored.swap(0, 1));
    assert!(said.contains("found U8[3,3], expected U8[1,3]"), "{said}");
    let said = said_of(&|stored| stored[1].2 -= 1);
    assert!(said.contains("the chunk at byte"), "{said}");
}

#[test]
fn distributed_files_that_are_short_or_missing_are_named() {
    for release in data() {
        let folder = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(release.join("checkpoint")).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
        }
        let part = folder.path().join("__2_0.distcp");
        let whole = fs::read(&part).unwrap();
        fs::write(&part, &whole[..whole.len() - 1]).unwrap();
        let found = said(folder.path());
        assert!(found.contains("__2_0.distcp") && found.contains("fetch it again"), "{found}");
        fs::remove_file(&part).unwrap();
        assert!(said(folder.path()).contains("no such file"), "{}", said(folder.path()));
        // A changed byte of an element is found by its checksum, however it is read.
        let mut changed = whole;
        let place = changed.windows(4).position(|four| four == b"PK\x07\x08").unwrap();
        let data = changed[place..].windows(6).position(|name| name == b"data/0").unwrap();
        let end = changed[place + data..].windows(4).position(|four| four == b"PK\x07\x08");
        changed[place + data + end.unwrap() - 1] ^= 1;
        fs::write(&part, changed).unwrap();
        let source = open_folder(folder.path()).unwrap();
        source.compare_size().unwrap();
        assert_eq!(source.compare_checksums(&mut |_| true).len(), 1);
        let read = |at| source.read(at).unwrap().read_to_end(&mut Vec::new()).is_err();
        assert_eq!((0..source.tensors().len()).filter(|at| read(*at)).count(), 1);
    }
}

#[test]
fn distributed_descriptions_that_hold_themselves_end() {
    let folder = tempfile::tempdir().unwrap();
    let chunks = b"]q\x00h\x00a".to_vec();
    let state = [("size", size(&[1])), ("chunks", chunks)];
    let entry = [&b"}"[..], &text("w"), &object("TensorStorageMetadata", &state), b"s"].concat();
    let whole =
        object("Metadata", &[("state_dict_metadata", entry), ("storage_data", b"}".to_vec())]);
    fs::write(folder.path().join(".metadata"), pickle(&whole)).unwrap();
    assert!(said(folder.path()).contains("a chunk that is none"));
    for other in [&b"N"[..], b"}", b"cos\nsystem\n)R"] {
        fs::write(folder.path().join(".metadata"), pickle(other)).unwrap();
        assert!(said(folder.path()).contains("the metadata of torch.distributed"));
    }
}

/// Cuts a box into chunks, as `numbers` decide.
fn cut(
    offsets: Vec<u64>,
    sizes: Vec<u64>,
    cuts: &mut impl Iterator<Item = u64>,
) -> Vec<(Vec<u64>, Vec<u64>)> {
    let decision = cuts.next().unwrap_or_default();
    let dimension = (decision % 7) as usize;
    match sizes.get(dimension) {
        Some(size) if *size > 1 => {
            let first = 1 + decision / 7 % (size - 1);
            let (mut one, mut two, mut behind) = (sizes.clone(), sizes.clone(), offsets.clone());
            one[dimension] = first;
            two[dimension] -= first;
            behind[dimension] += first;
            let mut chunks = cut(offsets, one, cuts);
            chunks.extend(cut(behind, two, cuts));
            chunks
        }
        _ => vec![(offsets, sizes)],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn distributed_tensors_of_any_sharding_are_joined(
        shape in prop::collection::vec(1_u64..6, 0..4),
        cuts in prop::collection::vec(any::<u64>(), 0..12),
        turned in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut chunks =
            cut(vec![0; shape.len()], shape.clone(), &mut cuts.into_iter().map(|cut| cut >> 1));
        if turned {
            chunks.reverse();
        }
        let elements = shape.iter().product::<u64>();
        write(folder.path(), &[Tensor { name: "w", shape, chunks }], |_| {});
        let source = open(folder.path()).unwrap();
        let expected: Vec<u8> = (0..elements).map(|number| number as u8).collect();
        prop_assert_eq!(read(&*source, 0), expected);
    }
}
