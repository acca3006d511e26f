//! Tests that a save in which one device fails leaves nothing behind.

use std::fs;

use serdes::ifrt::{
    ArraySpec, DType, DeviceId, DeviceList, HloSharding, MemoryKind, Shape,
    xla::{OpSharding, TileAssignment},
};
use serdes_device_state::{Durability, Error, Part, SaveId, Shard, Versions, WriteOptions};
use serdes_stream_executor::Plugin;

use super::plugins::Stub;

/// Returns the spec of an array of bytes, with one half on each device.
fn halves(bytes: i64) -> ArraySpec {
    let op = OpSharding::tiled(TileAssignment::iota([2], [2], [0]).unwrap());
    let sharding = HloSharding::new(DeviceList::from([0, 1]), MemoryKind::unset(), op).unwrap();
    ArraySpec::new(DType::U8, Shape::new([bytes]).unwrap(), sharding)
}

#[test]
fn device_failure_in_a_save_leaves_only_the_old_state() {
    let good = Plugin::host().device(0).unwrap();
    let options = WriteOptions::new(Versions::current()).with_durability(Durability::None);
    // Small shards are copied by synchronous calls, large ones by streams and from all devices at
    // the same time.
    for (call, bytes) in [
        ("sync_memcpy_dtoh", 2000),
        ("create_stream", 12 << 20),
        ("memcpy_dtoh", 12 << 20),
        ("record_event", 12 << 20),
    ] {
        let stub = Stub::newest(&format!("error={call}"));
        let plugin = stub.open().unwrap();
        let bad = plugin.device(0).unwrap();
        let half = bytes / 2;
        let memories =
            [good.upload(&vec![1; half as usize]).unwrap(), bad.allocate(half as u64).unwrap()];
        let shards = [Shard::new(DeviceId(0), &memories[0]), Shard::new(DeviceId(1), &memories[1])];
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sds");
        fs::write(&path, "old").unwrap();
        let part = Part::new(SaveId::random(), 0, 1).unwrap();
        for mut writer in [
            options.clone().create(&path).unwrap(),
            options.clone().create_part(&path, part).unwrap(),
        ] {
            let small = halves(2);
            let pair = [good.upload(&[1]).unwrap(), good.upload(&[2]).unwrap()];
            let pair = [Shard::new(DeviceId(0), &pair[0]), Shard::new(DeviceId(1), &pair[1])];
            writer.add_sharded("before", &small, &pair).unwrap();
            let error = writer.add_sharded("w", &halves(bytes), &shards).unwrap_err();
            assert!(matches!(error, Error::Device { .. }), "{call}: {error}");
            assert!(writer.add_sharded("behind", &small, &pair).is_err());
            assert!(writer.finish().is_err());
        }
        assert_eq!(fs::read(&path).unwrap(), b"old", "{call}");
        let parts = fs::read_dir(directory.path().join("a.sds.parts"));
        assert_eq!(parts.map_or(0, Iterator::count), 0, "{call}");
        let others = fs::read_dir(directory.path()).unwrap().flatten();
        let others = others.filter(|entry| entry.path().is_file()).count();
        assert_eq!(others, 1, "{call}");
    }
}
