//! Tests of the memory that files of PyTorch take, whatever their pickles describe.

use std::{
    io::{Cursor, Write},
    sync::Arc,
    time::{Duration, Instant},
};

use serdes_check as check;
use serdes_device_state::{Versions, WriteOptions, files::ProgressMonitor};
use serdes_tensors::{
    self as tensor_io, Form,
    transfers::{self, ConvertOptions},
};

use crate::{MEMORY, counting};

/// Bytes of memory per byte of the file, and bytes independent of its length.
const PER_BYTE: usize = 8;
const LEAST: usize = 64 << 20;

/// Limit on the time for a file, in a build without optimisation.
const LONGEST: Duration = Duration::from_secs(120);

/// Length of the pickles in bytes.
const LENGTH: usize = 4 << 20;

fn text(text: &str) -> Vec<u8> {
    [b"X", &(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

/// Returns a list of as many of these operations as fit.
fn list_of(operations: &[u8]) -> Vec<u8> {
    repeated(b"](", operations, b"e")
}

fn repeated(before: &[u8], operations: &[u8], behind: &[u8]) -> Vec<u8> {
    [before, &operations.repeat(LENGTH / operations.len()), behind].concat()
}

/// Returns numbered operations, one after the other.
fn numbered(before: &[u8], one: impl Fn(u32) -> Vec<u8>, behind: &[u8]) -> Vec<u8> {
    let mut operations = before.to_vec();
    for number in 0.. {
        if operations.len() >= LENGTH {
            break;
        }
        operations.extend(one(number));
    }
    [&operations[..], behind].concat()
}

/// Puts the parts of a tensor's description into the memo: its function (1), its storage (2), an
/// empty dict (3).
fn tensor_parts() -> Vec<u8> {
    [
        &b"ctorch._utils\n_rebuild_tensor_v2\nq\x010("[..],
        &text("storage"),
        b"ctorch\nFloatStorage\n",
        &text("0"),
        &text("cpu"),
        b"K\x04tQq\x020ccollections\nOrderedDict\n)Rq\x030",
    ]
    .concat()
}

/// Returns a tensor whose shape and strides are a tuple of the memo.
fn tensor_of(shape: u8) -> Vec<u8> {
    vec![b'h', 1, b'(', b'h', 2, b'K', 0, b'h', shape, b'h', shape, 0x89, b'h', 3, b't', b'R']
}

/// Returns families of pickles that describe much with few bytes.
fn families() -> Vec<(&'static str, Vec<u8>)> {
    let ones = [&b"("[..], &b"K\x01".repeat(64), b"tq\x050"].concat();
    let long = "m".repeat(LENGTH / 2);
    let long_names = |one: &[u8]| {
        let count = LENGTH / 2 / one.len();
        [&text(&long)[..], b"q\x000", &text("f"), b"q\x010](", &one.repeat(count), b"e"].concat()
    };
    let scalar = b"cnumpy.core.multiarray\nscalar\nq\x010cnumpy\ndtype\n(X\x02\x00\x00\x00f8\x89\x88tRq\x020C\x0812345678q\x030](";
    vec![
        ("None", list_of(b"N")),
        ("small integers", list_of(b"K\x01")),
        ("truths", list_of(b"\x88")),
        ("floats in text", list_of(b"F0\n")),
        ("empty lists", list_of(b"]")),
        ("empty dicts", list_of(b"}")),
        ("lists of one", list_of(b"]Na")),
        ("dicts of one", list_of(b"}NNs")),
        ("empty tuples", list_of(b")")),
        ("nested tuples", repeated(b")", b"\x85", b"")),
        ("tuples of tuples", repeated(b"(", b")\x85", b"t")),
        ("a list that holds itself", repeated(b"]q\x00(", b"h\x00", b"e")),
        ("lists that hold the one before", repeated(b"]", b"q\x00](h\x00h\x00e", b"")),
        ("marks", repeated(b"N", b"(", b"1")),
        ("a memo", repeated(b"N", b"\x94", b"")),
        ("a far memo", numbered(b"N", |n| [&b"r"[..], &(n * 99).to_le_bytes()].concat(), b"")),
        ("texts", list_of(b"\x8c\x01a")),
        ("keys", numbered(b"}(", |n| [&b"J"[..], &n.to_le_bytes(), b"N"].concat(), b"u")),
        (
            "named numbers",
            numbered(b"}(", |n| [&text(&format!("{n:x}"))[..], b"K\x01"].concat(), b"u"),
        ),
        ("a long key", {
            let many = b"h\x00K\x01\x86".repeat(LENGTH / 10);
            [&text(&long)[..], b"q\x000ccollections\nOrderedDict\n](", &many, b"e\x85R"].concat()
        }),
        ("below a long key", {
            let many = b"K\x01".repeat(LENGTH / 4);
            [&b"}"[..], &text(&long), b"](", &many, b"es"].concat()
        }),
        ("a long text often", {
            let many = b"h\x00".repeat(LENGTH / 4);
            [&text(&long)[..], b"q\x000](", &many, b"e"].concat()
        }),
        ("long names", long_names(b"h\x00h\x01\x93")),
        ("objects of a long name", long_names(b"h\x00h\x01\x93)R")),
        ("names", list_of(b"cm\nn\n")),
        ("objects", list_of(b"ca\nb\n)R")),
        ("objects with a state", repeated(b"ca\nb\nq\x010](", b"h\x01)RNb", b"e")),
        ("objects of one class", repeated(b"ca\nb\nq\x010](", b"h\x01)R", b"e")),
        ("storages", list_of(b"NQ")),
        ("tensors of one shape", {
            let parts = [&tensor_parts()[..], &ones, b"]("].concat();
            repeated(&parts, &tensor_of(5), b"e")
        }),
        ("tensors by names", {
            let parts = [&tensor_parts()[..], b")q\x050}("].concat();
            numbered(&parts, |n| [text(&format!("{n:x}")), tensor_of(5)].concat(), b"u")
        }),
        ("scalars of NumPy's", repeated(scalar, b"h\x01h\x02h\x03\x86R", b"e")),
        ("attributes", {
            let state = b"(K\x01K\x02K\x03tq\x060}(X\x01\x00\x00\x00aNX\x01\x00\x00\x00bNuq\x070";
            let parts = [
                &tensor_parts()[..],
                b")q\x050",
                state,
                b"ctorch._utils\n_rebuild_parameter_with_state\nq\x080](",
            ];
            let one = [&b"h\x08("[..], &tensor_of(5), b"\x89h\x03h\x07tR"].concat();
            repeated(&parts.concat(), &one, b"e")
        }),
    ]
}

fn archive(pickle: &[u8]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, bytes) in [("m/data.pkl", pickle), ("m/data/0", &[0; 16])] {
        writer.start_file(name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn of_protocol_2(operations: &[u8]) -> Vec<u8> {
    [b"\x80\x02", operations, b"."].concat()
}

/// Returns the peak memory of `work` in addition to its input, and its time.
fn measured(work: impl FnOnce()) -> (usize, Duration) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let begin = Instant::now();
    work();
    (MEMORY.peak_usage() - before, begin.elapsed())
}

fn check_memory(name: &str, file_bytes: usize, work: impl FnOnce()) {
    let (peak, time) = measured(work);
    let most = PER_BYTE * file_bytes + LEAST;
    println!("{name}: {} of {} MiB in {time:.1?}", peak >> 20, most >> 20);
    assert!(peak <= most, "{name}: {peak} bytes for a file of {file_bytes}");
    assert!(time <= LONGEST, "{name}: {time:?}");
}

#[test]
fn torch_files_of_every_family_take_8_times_their_length() {
    let _alone = counting();
    for (name, operations) in families() {
        let file = Arc::new(archive(&of_protocol_2(&operations)));
        drop(operations);
        let folder = tempfile::tempdir().unwrap();
        let size = file.len();
        check_memory(name, size, || {
            let Ok(source) = tensor_io::open_at(file.clone(), "m.pt", Some(Form::Torch)) else {
                return;
            };
            let options = WriteOptions::new(Versions::current());
            let target = folder.path().join("m.safetensors");
            let target = tensor_io::create(target, &options).unwrap();
            let choice = ConvertOptions::new().with_skip_unsupported(true);
            let _ = transfers::convert(&[source], target, &choice, &ProgressMonitor::default());
        });
        let path = folder.path().join("m.pt");
        std::fs::write(&path, &*file).unwrap();
        drop(file);
        check_memory(&format!("{name}, inspected"), size, || {
            let _ = check::path(&path).unwrap().inspect();
        });
    }
}

#[test]
fn torch_files_of_before_1_6_take_8_times_their_length() {
    let _alone = counting();
    const BEFORE: &[u8] = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}X\x0d\x00\x00\x00little_endian\x88s.";
    for (name, operations) in families() {
        let file = [BEFORE, &of_protocol_2(&operations), &of_protocol_2(b"]")].concat();
        let keys = [BEFORE, &of_protocol_2(b"}"), &of_protocol_2(&operations)].concat();
        for file in [Arc::new(file), Arc::new(keys)] {
            check_memory(name, file.len(), || {
                let _ = tensor_io::open_at(file.clone(), "m.pt", Some(Form::Torch));
            });
        }
    }
}

#[test]
fn torch_distributed_descriptions_take_8_times_their_length() {
    let _alone = counting();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".metadata");
    for (name, operations) in families() {
        let class = |name: &str| format!("ctorch.distributed.checkpoint.metadata\n{name}\n)R}}(");
        let metadata = class("Metadata").into_bytes();
        let (names, places) = (text("state_dict_metadata"), text("storage_data"));
        for parts in [
            [&metadata[..], &names, &operations, &places, b"}ub"],
            [&metadata[..], &names, b"}", &places, &[&operations[..], b"ub"].concat()],
        ] {
            let bytes = of_protocol_2(&parts.concat());
            std::fs::write(&path, &bytes).unwrap();
            check_memory(name, bytes.len(), || {
                let _ = tensor_io::open(folder.path());
            });
        }
    }
}

#[test]
fn torch_distributed_chunks_take_8_times_their_length() {
    let _alone = counting();
    let folder = tempfile::tempdir().unwrap();
    let class = |name: &str| format!("ctorch.distributed.checkpoint.metadata\n{name}\n");
    let state = |pairs: &[(&str, &[u8])]| {
        let pairs: Vec<u8> =
            pairs.iter().flat_map(|(name, value)| [&text(name)[..], value].concat()).collect();
        [&b"}("[..], &pairs, b"ub"].concat()
    };
    // As many chunks of many dimensions as fit; and the offsets of as many.
    let numbers = [&b"("[..], &b"K\x01".repeat(64), b"tq\x050"].concat();
    let chunk = [
        class("ChunkStorageMetadata").as_bytes(),
        b")R",
        &state(&[("offsets", b"h\x05"), ("sizes", b"h\x05")]),
        b"q\x060",
    ]
    .concat();
    let chunks = repeated(b"](", b"h\x06", b"e");
    let tensor = [
        class("TensorStorageMetadata").as_bytes(),
        b")R",
        &state(&[("size", b"h\x05"), ("chunks", &chunks)]),
    ]
    .concat();
    let index = [class("MetadataIndex").as_bytes(), b"q\x07"].concat();
    let places = numbered(
        &[&b"}("[..], &index, b"N"].concat(),
        |n| {
            let pairs: [(&str, &[u8]); 2] = [("fqn", &text(&format!("{n:x}"))), ("offset", b"N")];
            [&b"h\x07)R"[..], &state(&pairs), b"N"].concat()
        },
        b"u",
    );
    let whole = |names: &[u8], places: &[u8]| {
        let pairs = [("state_dict_metadata", names), ("storage_data", places)];
        let class = class("Metadata");
        of_protocol_2(&[&numbers[..], &chunk, class.as_bytes(), b")R", &state(&pairs)].concat())
    };
    let names = [&b"}"[..], &text("w"), &tensor, b"s"].concat();
    for bytes in [whole(&names, b"}"), whole(b"}", &places)] {
        std::fs::write(folder.path().join(".metadata"), &bytes).unwrap();
        check_memory("chunks", bytes.len(), || {
            assert!(tensor_io::open(folder.path()).is_err());
        });
    }
}
