use std::{
    fs,
    io::Write,
    sync::{Arc, Mutex},
};

use serdes::{
    ErrorKind,
    ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding},
};
use serdes_stream_executor::{Device, Plugin};
use serdes_testkit::noise::noise;

use super::*;

fn device() -> Device {
    Plugin::host().device(0).unwrap()
}

fn spec(dtype: DType, dims: &[i64]) -> ArraySpec {
    ArraySpec::new(dtype, Shape::new(dims).unwrap(), SingleDeviceSharding::new(DeviceId(0)))
}

#[derive(Clone, Default)]
pub(super) struct Pipe(Arc<Mutex<Vec<u8>>>);

impl Pipe {
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn options() -> WriteOptions {
    WriteOptions::new(Versions::current()).with_producer_release("test 1.0")
}

/// Returns the bytes of a state of a few small tensors.
pub(super) fn small() -> Vec<u8> {
    let pipe = Pipe::default();
    let metadata = Some(vec![("format".to_owned(), "pt".to_owned())]);
    let versions = Versions::from_numbers(0, 6).unwrap();
    let options = WriteOptions::new(versions).with_producer_release("test 1.0");
    let options = options.with_chunk_bytes(64).with_metadata(metadata);
    let mut writer = options.stream(pipe.clone()).unwrap();
    writer.add_bytes("w", &spec(DType::F32, &[5, 10]), &noise(200, 1)).unwrap();
    writer.add_bytes("empty", &spec(DType::BF16, &[0, 3]), &[]).unwrap();
    writer.add_strings("words", &spec(DType::String, &[2]), &["a", "longer"]).unwrap();
    writer.add_bytes("s", &spec(DType::S4, &[]), &[7]).unwrap();
    writer.finish().unwrap();
    pipe.bytes()
}

fn open(bytes: Vec<u8>) -> Result<Reader, Error> {
    Reader::from_source(bytes, "x.sds")
}

/// Returns true if any way of reading finds damage in the bytes of a state.
fn is_damaged(bytes: Vec<u8>) -> bool {
    match open(bytes) {
        Err(_) => true,
        Ok(reader) => {
            reader.tensors().any(|tensor| tensor.is_err())
                || !reader.verify(&ProgressMonitor::new()).unwrap().is_empty()
        }
    }
}

#[test]
fn a_buffer_of_a_device_makes_the_trip() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("step-1000.sds");
    let device = device();
    let cases: Vec<(&str, ArraySpec, usize)> = vec![
        ("scalar", spec(DType::F64, &[]), 8),
        ("empty", spec(DType::F32, &[0, 4]), 0),
        ("sub byte", spec(DType::U4, &[3]), 3),
        ("bf16", spec(DType::BF16, &[1000]), 2000),
        ("fp8", spec(DType::F8E4M3FN, &[77]), 77),
        ("just below a buffer", spec(DType::U8, &[(1 << 20) - 1]), (1 << 20) - 1),
        ("a buffer", spec(DType::U8, &[1 << 20]), 1 << 20),
        ("large", spec(DType::U8, &[(7 << 20) + 13]), (7 << 20) + 13),
        ("behind large", spec(DType::U8, &[100]), 100),
    ];
    let mut writer = Writer::create(&path, Versions::week_4_old()).unwrap();
    for (seed, (name, spec, bytes)) in cases.iter().enumerate() {
        let memory = device.upload(&noise(*bytes, seed as u64)).unwrap();
        writer.add(name, spec, &memory).unwrap();
    }
    let written = writer.finish().unwrap();
    assert_eq!(written.tensors, cases.len() as u64);
    assert_eq!(written.bytes, cases.iter().map(|(_, _, bytes)| *bytes as u64).sum::<u64>());
    assert_eq!(written.file_bytes, fs::metadata(&path).unwrap().len());

    let state = Reader::open(&path).unwrap();
    assert!(state.verify(&ProgressMonitor::new()).unwrap().is_empty());
    for (seed, (name, spec, bytes)) in cases.iter().enumerate() {
        let tensor = state.tensor(name).unwrap();
        assert_eq!(tensor.spec(), spec);
        let memory = tensor.restore(&device).unwrap();
        assert!(device.download(&memory).unwrap() == noise(*bytes, seed as u64), "{name}");
    }
    let tensors = state.tensors_in_file_order().unwrap();
    let (memories, restored) = state.restore(&tensors, &device, &ProgressMonitor::new()).unwrap();
    assert_eq!((restored.tensors, restored.bytes), (written.tensors, written.bytes));
    for (seed, (memory, (name, _, bytes))) in memories.iter().zip(&cases).enumerate() {
        assert!(device.download(memory).unwrap() == noise(*bytes, seed as u64), "{name}");
    }
}

#[test]
fn ten_thousand_small_tensors_make_the_trip() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("many.sds");
    let device = device();
    let mut writer = options().with_durability(Durability::None).create(&path).unwrap();
    for number in 0..10_000_i32 {
        let memory = device.upload(&number.to_le_bytes()).unwrap();
        writer.add(&format!("t{number}"), &spec(DType::S32, &[1]), &memory).unwrap();
    }
    writer.finish().unwrap();
    let state = Reader::open(&path).unwrap();
    let tensors = state.tensors_in_file_order().unwrap();
    let (memories, _) = state.restore(&tensors, &device, &ProgressMonitor::new()).unwrap();
    for (number, (tensor, memory)) in tensors.iter().zip(&memories).enumerate() {
        assert_eq!(tensor.name(), format!("t{number}"));
        assert_eq!(device.download(memory).unwrap(), (number as i32).to_le_bytes());
    }
}

#[test]
fn a_state_that_went_through_a_pipe_says_what_it_holds() {
    let state = open(small()).unwrap();
    assert_eq!(state.len(), 4);
    assert_eq!(state.producer_release(), "test 1.0");
    assert_eq!(state.metadata(), Some(&[("format".to_owned(), "pt".to_owned())][..]));
    assert_eq!(state.names().collect::<Vec<_>>(), ["empty", "s", "w", "words"]);
    let order: Vec<_> = state.tensors_in_file_order().unwrap();
    let order: Vec<_> = order.iter().map(Tensor::name).collect();
    assert_eq!(order, ["w", "empty", "words", "s"]);
    assert_eq!(state.tensor("words").unwrap().strings().unwrap(), [&b"a"[..], b"longer"]);
    assert!(matches!(state.tensor("no"), Err(Error::NoSuchTensor { .. })));
    let chosen = state.select(&["w*"]).unwrap();
    assert_eq!(chosen.iter().map(Tensor::name).collect::<Vec<_>>(), ["w", "words"]);
    assert!(matches!(state.select(&["z*"]), Err(Error::NoSuchTensor { .. })));
}

#[test]
fn the_same_tensors_make_the_same_bytes() {
    assert_eq!(small(), small());
}

#[test]
fn flipped_bits_are_found_and_never_taken_for_a_newer_version() {
    let bytes = small();
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        if let Err(error) = open(bytes.clone()) {
            assert!(
                matches!(error, Error::Corrupt { .. } | Error::NotDeviceState { .. }),
                "bit {bit}: {error}"
            );
        }
        assert!(is_damaged(bytes), "bit {bit}");
    }
}

#[test]
fn every_truncation_and_every_trailing_byte_is_found() {
    let bytes = small();
    for length in 0..bytes.len() {
        let error = open(bytes[..length].to_vec()).unwrap_err();
        assert!(
            matches!(error, Error::Corrupt { .. } | Error::NotDeviceState { .. }),
            "{length}: {error}"
        );
    }
    for tail in [&b"\0"[..], b"x", b"\x8fSDSend\n", &bytes] {
        let mut bytes = bytes.clone();
        bytes.extend(tail);
        assert!(is_damaged(bytes), "{tail:?}");
    }
}

#[test]
fn every_swap_of_two_chunks_is_found() {
    let bytes = small();
    for size in [64, 128] {
        let count = bytes.len() / size;
        for first in 0..count {
            for second in first + 1..count {
                let mut swapped = bytes.clone();
                let (head, tail) = swapped.split_at_mut(second * size);
                head[first * size..][..size].swap_with_slice(&mut tail[..size]);
                if swapped != bytes {
                    assert!(is_damaged(swapped), "{first} {second} of {size}");
                }
            }
        }
    }
}

#[test]
fn damage_names_the_tensor_and_spares_the_others() {
    let mut bytes = small();
    let begin = bytes.windows(200).position(|window| window == noise(200, 1)).unwrap();
    bytes[begin + 70] ^= 1;
    let state = open(bytes).unwrap();
    let damage = state.verify(&ProgressMonitor::new()).unwrap();
    assert_eq!(damage.len(), 1);
    assert_eq!(damage[0].tensor, "w");
    let message = damage[0].error.to_string();
    assert!(message.contains("\"w\"") && message.contains("chunk 1"), "{message}");
    let device = device();
    let error = state.tensor("w").unwrap().restore(&device).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    assert_eq!(
        device.download(&state.tensor("s").unwrap().restore(&device).unwrap()).unwrap(),
        [7]
    );
}

#[test]
fn a_writer_refuses_what_does_not_fit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.sds");
    let mut writer = options().create(&path).unwrap();
    let f32s = spec(DType::F32, &[2]);
    assert!(matches!(
        writer.add_bytes("a", &f32s, &[0; 7]),
        Err(Error::SizeMismatch { found: 7, expected: 8, .. })
    ));
    writer.add_bytes("a", &f32s, &[0; 8]).unwrap();
    assert!(matches!(writer.add_bytes("a", &f32s, &[0; 8]), Err(Error::DuplicateName { .. })));
    assert!(matches!(
        writer.add_bytes("t", &spec(DType::Token, &[]), &[]),
        Err(Error::Unsupported { .. })
    ));
    writer.add_bytes("b", &f32s, &[1; 8]).unwrap();
    writer.finish().unwrap();
    let state = Reader::open(&path).unwrap();
    assert_eq!(state.names().collect::<Vec<_>>(), ["a", "b"]);
    assert!(state.verify(&ProgressMonitor::new()).unwrap().is_empty());
}

#[test]
fn a_writer_that_is_dropped_or_stopped_leaves_the_old_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.sds");
    fs::write(&path, "old").unwrap();
    drop(options().create(&path).unwrap());
    let monitor = ProgressMonitor::new();
    let mut writer = options().with_monitor(monitor.clone()).create(&path).unwrap();
    writer.add_bytes("a", &spec(DType::U8, &[3]), b"abc").unwrap();
    monitor.cancel();
    assert!(matches!(writer.finish(), Err(Error::Cancelled)));
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_tensor_that_ends_early_spoils_the_state() {
    let pipe = Pipe::default();
    let mut writer = options().stream(pipe).unwrap();
    let spec = spec(DType::U8, &[10]);
    assert!(writer.add_reader("a", &spec, &mut &b"short"[..], 10).is_err());
    assert!(writer.add_bytes("b", &spec, &[0; 10]).is_err());
    assert!(writer.finish().is_err());
}

#[test]
fn a_state_without_tensors_is_a_state() {
    let pipe = Pipe::default();
    options().stream(pipe.clone()).unwrap().finish().unwrap();
    let state = open(pipe.0.lock().unwrap().clone()).unwrap();
    assert!(state.is_empty());
    assert!(state.verify(&ProgressMonitor::new()).unwrap().is_empty());
}

#[test]
fn format_0_is_written_and_read_as_it_was_laid_down() {
    let golden = include_bytes!("../../../tests/golden/device_state/v0/small.sds");
    assert!(small() == golden, "format 0 is frozen: a change of its bytes needs a new format");
    let state = open(golden.to_vec()).unwrap();
    assert_eq!(state.format(), 0);
    assert_eq!(state.written_at(), Versions::from_numbers(0, 6));
    assert!(state.verify(&ProgressMonitor::new()).unwrap().is_empty());
}

#[test]
fn a_state_of_a_future_format_is_too_new() {
    let future = include_bytes!("../../../tests/golden/device_state/future.sds");
    let error = open(future.to_vec()).unwrap_err();
    assert!(matches!(error, Error::TooNew { found: 7, supported: 0, .. }), "{error}");
}

#[test]
fn too_new_is_never_called_corrupt_nor_damage_too_new() {
    let future = include_bytes!("../../../tests/golden/device_state/future.sds");
    // The bytes behind the header prefix that all formats share may be anything.
    for at in 64..future.len() {
        let mut changed = future.to_vec();
        changed[at] ^= 0xff;
        assert_eq!(open(changed).unwrap_err().kind(), ErrorKind::TooNew, "byte {at}");
    }
    let golden = include_bytes!("../../../tests/golden/device_state/v0/small.sds");
    for at in 0..golden.len() {
        let mut changed = golden.to_vec();
        changed[at] ^= 1;
        if let Err(error) = open(changed) {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "byte {at}: {error}");
        }
    }
}
