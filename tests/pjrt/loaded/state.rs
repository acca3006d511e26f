//! Tests of states saved from and restored to clients' arrays, with plug-ins with more and fewer
//! functions and with fault switches: the result is the same bytes, or an error and no state.

use std::{
    io::Write,
    sync::{Arc, Mutex},
};

use serdes::ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding};
use serdes_device_state::{Error, ProgressMonitor, Reader, Versions, WriteOptions};
use serdes_pjrt::{Array, ElementType, IncomingArray, MemorySpace};

use super::plugins::Library;

/// Bytes written to a stream.
#[derive(Clone, Default)]
struct Stream(Arc<Mutex<Vec<u8>>>);

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Lengths of arrays with two bytes per element: some pieces and a rest, less than one piece,
/// nothing.
const ELEMENTS: [i64; 4] = [(3 << 19) + 7, 70_000, 0, 1 << 19];

fn spec(elements: i64) -> ArraySpec {
    let shape = Shape::new([elements]).unwrap();
    ArraySpec::new(DType::F16, shape, SingleDeviceSharding::new(DeviceId(7)))
}

fn data(elements: i64) -> Vec<u8> {
    (0..2 * elements).map(|at| (at * 7 + at / 253) as u8).collect()
}

fn name(number: usize) -> String {
    format!("w{number}")
}

/// Returns a state of such arrays, created without a device.
fn state() -> Vec<u8> {
    let stream = Stream::default();
    let mut writer = WriteOptions::new(Versions::current()).stream(stream.clone()).unwrap();
    for (number, elements) in ELEMENTS.into_iter().enumerate() {
        writer.add_bytes(&name(number), &spec(elements), &data(elements)).unwrap();
    }
    writer.finish().unwrap();
    stream.0.lock().unwrap().clone()
}

fn space(library: &Library) -> MemorySpace {
    let client = library.load().unwrap().create_client(&[]).unwrap();
    client.memory_spaces().unwrap().swap_remove(0)
}

/// Restores a state onto the device.
fn restore(state: Vec<u8>, space: &MemorySpace) -> Result<Vec<Array>, Error> {
    let reader = Reader::from_source(state, "a state").unwrap();
    let tensors = reader.tensors_in_file_order().unwrap();
    Ok(reader.restore(&tensors, space, &ProgressMonitor::new())?.0)
}

/// Saves a state from the device.
fn save(arrays: &[Array]) -> Result<Vec<u8>, Error> {
    let stream = Stream::default();
    let mut writer = WriteOptions::new(Versions::current()).stream(stream.clone())?;
    for ((number, elements), array) in ELEMENTS.into_iter().enumerate().zip(arrays) {
        writer.add(&name(number), &spec(elements), array)?;
    }
    writer.finish()?;
    let bytes = stream.0.lock().unwrap().clone();
    Ok(bytes)
}

#[test]
fn a_plug_in_of_any_day_is_read_and_written_as_it_can() {
    let state = state();
    for (minor, switches, in_pieces, out_in_pieces) in [
        (29, &[][..], false, false),
        // Raw copies exist since 0.57, arrays in pieces since 0.62.
        (57, &[], false, true),
        (60, &[], false, true),
        (62, &[], true, true),
        (81, &["LATE"], true, true),
        (114, &["EQUAL_SIZES", "MAPS"], true, true),
        (114, &["NULL_EVENTS"], true, true),
        (114, &["MAPS", "MAP_FAILS"], true, true),
        (114, &["FAILING=\"PJRT_Buffer_CopyRawToHost\"", "CODE=12"], true, false),
        (114, &["FAILING=\"PJRT_Buffer_GetMemoryLayout\"", "CODE=12"], true, false),
        (
            114,
            &["FAILING=\"PJRT_Client_CreateBuffersForAsyncHostToDevice\"", "CODE=12"],
            false,
            true,
        ),
        // The device packs or pads elements: its raw bytes are not those of the host.
        (114, &["SIZE_SAID=9999999"], true, false),
    ] {
        let library = Library::new(minor, switches);
        let space = space(&library);
        let incoming = IncomingArray::new(&space, ElementType::U8, &[1 << 20]).unwrap();
        assert_eq!(incoming.takes_pieces(), in_pieces, "0.{minor} {switches:?}");
        drop(incoming);
        let arrays = restore(state.clone(), &space).unwrap();
        let first = arrays.first().unwrap();
        assert_eq!(first.is_read_whole(), !out_in_pieces, "0.{minor} {switches:?}");
        assert!(save(&arrays).unwrap() == state, "0.{minor} {switches:?}");
        drop((arrays, space));
        assert!(library.is_empty_soon(), "0.{minor} {switches:?}");
    }
}

#[test]
fn plugin_failure_ends_a_restore_and_leaves_nothing_behind() {
    let state = state();
    for switches in [
        &["FAILING=\"PJRT_AsyncHostToDeviceTransferManager_TransferData\""][..],
        &["FAILING=\"PJRT_Client_CreateBuffersForAsyncHostToDevice\"", "CODE=8"],
        &["FAILING=\"PJRT_Client_BufferFromHostBuffer\""],
        &["FAILING=\"PJRT_Buffer_ReadyEvent\""],
        &["FAILING=\"PJRT_Event_Await\""],
        &["EVENT_FAILS", "LATE"],
        &["COUNT_SAID=2"],
        &["INCOMING_SAID=1"],
        &["NULL_MANAGER"],
        &["NULL_INCOMING=0"],
        &["NULL_BUFFER"],
        &["TYPE_SAID=77"],
        &["NEGATIVE"],
    ] {
        let library = Library::new(114, switches);
        let space = space(&library);
        let error = restore(state.clone(), &space).err().unwrap_or_else(|| panic!("{switches:?}"));
        assert!(matches!(error, Error::Pjrt { .. }), "{switches:?}: {error}");
        assert!(error.to_string().contains("the device failed while writing"), "{error}");
        drop(space);
        assert!(library.is_empty_soon(), "{switches:?}");
    }
}

#[test]
fn a_plug_in_that_fails_ends_a_save_with_its_words() {
    let state = state();
    for switches in [
        &["FAILING=\"PJRT_Buffer_ToHostBuffer\""][..],
        &["FAILING=\"PJRT_Buffer_ToHostBuffer\"", "CODE=12"],
    ] {
        let library = Library::new(114, switches);
        let space = space(&library);
        let arrays = restore(state.clone(), &space).unwrap();
        let error = save(&arrays).unwrap_err();
        assert!(matches!(error, Error::Pjrt { .. }), "{switches:?}: {error}");
        let said = error.to_string();
        assert!(said.contains("reading \"w1\"") && said.contains("as told"), "{said}");
        drop((arrays, space));
        assert!(library.is_empty_soon(), "{switches:?}");
    }
}
