//! The actions on states that both builds perform.

use std::{io::Read, path::Path};

use serdes::ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding};
use serdes_device_state::{
    Error, Part, ProgressMonitor, Reader, SaveId, Versions, WriteOptions, merge,
};

/// Returns the options for builds of today, or for builds of four weeks ago.
fn options(is_for_today: bool) -> WriteOptions {
    let versions = if is_for_today { Versions::current() } else { Versions::week_4_old() };
    WriteOptions::new(versions)
}

fn spec() -> ArraySpec {
    let sharding = SingleDeviceSharding::new(DeviceId(0));
    ArraySpec::new(DType::U8, Shape::new([3]).unwrap(), sharding)
}

/// Saves the tensor `w`, and returns the format.
pub(crate) fn save(path: &Path, is_for_today: bool) -> i32 {
    let mut writer = options(is_for_today).create(path).unwrap();
    writer.add_bytes("w", &spec(), &[1, 2, 3]).unwrap();
    writer.finish().unwrap();
    Reader::open(path).unwrap().format()
}

/// Saves `w` and `x`, each in its own part.
pub(crate) fn save_in_parts(path: &Path, is_for_today: bool) {
    let save = SaveId::random();
    for (number, name) in (0..).zip(["w", "x"]) {
        let part = Part::new(save, number, 2).unwrap();
        let mut writer = options(is_for_today).create_part(path, part).unwrap();
        writer.add_bytes(name, &spec(), &[1, 2, 3]).unwrap();
        writer.finish().unwrap();
    }
    merge(path, save, &options(is_for_today)).unwrap();
}

/// Returns the data of `w`, or the reason why the state is refused.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let state = Reader::open(path).map_err(|error| match error {
        Error::TooNew { found, supported, .. } => format!("too new: {found} > {supported}"),
        other => other.to_string(),
    })?;
    assert!(state.verify(&ProgressMonitor::new()).unwrap().is_empty());
    let mut data = Vec::new();
    state.tensor("w").unwrap().read().unwrap().read_to_end(&mut data).unwrap();
    Ok(data)
}
