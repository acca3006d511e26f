//! Saves two buffers of a device for an older build, and restores one of them.
//!
//!     cargo run --example save_and_restore

use serdes::ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding};
use serdes_device_state::{Reader, Versions, Writer};
use serdes_stream_executor::Plugin;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The embedded device in host memory. `Plugin::load` takes a shared library instead.
    let plugin = Plugin::host();
    let device = plugin.device(0)?;

    let weights: Vec<u8> = (0..6_u8).flat_map(|number| f32::from(number).to_le_bytes()).collect();
    let kernel = device.upload(&weights)?;
    let bias = device.upload(&[0; 12])?;
    let on_device =
        |shape| ArraySpec::new(DType::F32, shape, SingleDeviceSharding::new(DeviceId(0)));

    // `finish` makes the complete file appear. If it fails before, an older file is unchanged.
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("step-1000.sds");
    let mut state = Writer::create(&path, Versions::week_4_old())?;
    state.add("dense/kernel", &on_device(Shape::new([2, 3])?), &kernel)?;
    state.add("dense/bias", &on_device(Shape::new([3])?), &bias)?;
    state.finish()?;

    // A later build opens the file, which reads its header and index but no data.
    let state = Reader::open(&path)?;
    for tensor in state.tensors() {
        let tensor = tensor?;
        println!("{:14} {}", tensor.name(), tensor.spec());
    }
    let restored = state.tensor("dense/kernel")?.restore(&device)?;
    assert_eq!(device.download(&restored)?, weights);
    println!("dense/kernel came back, byte for byte");
    Ok(())
}
