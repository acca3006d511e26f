//! Two builds agree on the highest version that both speak, and send a value in it.
//!
//!     cargo run --example negotiate

use serdes::{
    codec::{FromProto, ToProto},
    ifrt::{ArraySpec, DType, DeviceId, DeviceList, Shape, SingleDeviceSharding, with_devices},
    version::{SerDesAnyVersionAccessor, VersionRange},
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ours = VersionRange::supported();

    // The range that the other side, a build some months older, has sent.
    let theirs = VersionRange::new(2, 4).ok_or("an empty range")?;
    let version = SerDesAnyVersionAccessor::negotiate(ours, theirs)?;
    println!("we speak {ours}, they speak {theirs}: both use {version}");

    // The version is an argument of every conversion and reaches every nested message.
    let spec =
        ArraySpec::new(DType::F32, Shape::new([2, 3])?, SingleDeviceSharding::new(DeviceId(0)));
    let bytes = spec.to_bytes(version)?;
    println!("{spec} takes {} bytes", bytes.len());

    // The reader needs no version, as each message records its own. It needs its own devices.
    let same = ArraySpec::from_bytes(bytes, &with_devices(DeviceList::from([0])))?;
    assert_eq!(same, spec);

    // Without a common version, both sides can say which of them has to be upgraded.
    let newer = VersionRange::new(1000, 1001).ok_or("an empty range")?;
    if let Err(error) = SerDesAnyVersionAccessor::negotiate(ours, newer) {
        println!("{error}");
    }
    Ok(())
}
