//! Saves a state in two parts, as two processes do, and restores it; then maps a state of one file
//! into memory and reads a tensor in place.
//!
//!     cargo run --example mapped_state --features mmap
#![allow(
    unsafe_code,
    reason = "the system maps files without a promise that they stay as they are"
)]

use std::{error::Error, path::Path};

use serdes::ifrt::{
    ArraySpec, DType, DeviceId, DeviceList, HloSharding, MemoryKind, Shape, SingleDeviceSharding,
    xla::{OpSharding, TileAssignment},
};
use serdes_device_state::{
    MappedState, Part, Reader, SaveId, Shard, Versions, WriteOptions, Writer, merge,
};
use serdes_stream_executor::Plugin;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    parts(&folder.path().join("parts.sds"))?;
    mapped(&folder.path().join("one.sds"))
}

/// Saves one row of an array from each of two processes, and merges both parts into a state.
fn parts(path: &Path) -> Result<(), Box<dyn Error>> {
    let tiles = OpSharding::tiled(TileAssignment::iota([2, 1], [2], [0])?);
    let devices = DeviceList::new([DeviceId(0), DeviceId(1)]);
    let sharding = HloSharding::new(devices, MemoryKind::unset(), tiles)?;
    let spec = ArraySpec::new(DType::U8, Shape::new([2, 4])?, sharding);

    let device = Plugin::host().device(0)?;
    let options = WriteOptions::new(Versions::current());
    // All processes of a save have the same id.
    let save = SaveId::random();
    for process in 0..2_u8 {
        let row = device.upload(&[process; 4])?;
        let part = Part::new(save, process.into(), 2)?;
        let mut writer = options.clone().create_part(path, part)?;
        writer.add_sharded("table", &spec, &[Shard::new(DeviceId(process.into()), &row)])?;
        writer.finish()?;
    }
    merge(path, save, &options)?;

    let state = Reader::open(path)?;
    let table = state.tensor("table")?.restore(&device)?;
    assert_eq!(device.download(&table)?, [0, 0, 0, 0, 1, 1, 1, 1]);
    println!("table came back from {} parts", state.parts());
    Ok(())
}

/// Reads a tensor as a slice without a copy. Its pages are read when they are touched.
fn mapped(path: &Path) -> Result<(), Box<dyn Error>> {
    let spec = ArraySpec::new(DType::U8, Shape::new([5])?, SingleDeviceSharding::new(DeviceId(0)));
    let mut state = Writer::create(path, Versions::current())?;
    state.add_bytes("greeting", &spec, b"hello")?;
    state.finish()?;

    // SAFETY: the file is in a directory of this program alone, and no other process writes to it.
    let state = unsafe { MappedState::open(path)? };
    let greeting = state.verified_bytes("greeting")?;
    assert_eq!(greeting, b"hello");
    println!("greeting is {:?}, mapped", str::from_utf8(greeting)?);
    Ok(())
}
