//! Tests the costs that grow with the number of processes that save one state: the sizes that
//! `docs/scale.md` promises. With `SERDES_FULL=1` there are 4,096 processes.

use std::{env, path::Path};

use serdes::ifrt::{
    ArraySpec, DType, DeviceId, DeviceList, HloSharding, Index, IndexDomain, MemoryKind, Shape,
    xla::{OpSharding, TileAssignment},
};
use serdes_device_state::{
    Durability, HostTarget, Merged, Part, ProgressMonitor, Reader, SaveId, Shard, Verification,
    Versions, WriteOptions, merge,
};

const ARRAYS: u64 = 3;
/// Bytes of a shard.
const SHARD: u64 = 32;

/// Saves a state from processes that have one row of each array; returns the length of a part, and
/// the result of the merge.
fn save(path: &Path, processes: i32) -> (u64, Merged) {
    let rows = i64::from(processes);
    let tiles = OpSharding::tiled(TileAssignment::iota([rows, 1], [rows], [0]).unwrap());
    let devices = DeviceList::new((0..processes).map(DeviceId));
    let sharding = HloSharding::new(devices, MemoryKind::unset(), tiles).unwrap();
    let columns = i64::try_from(SHARD).unwrap();
    let spec = ArraySpec::new(DType::U8, Shape::new([rows, columns]).unwrap(), sharding);
    let options = WriteOptions::new(Versions::current()).with_durability(Durability::None);
    let id = SaveId::new([7; 16]);
    for number in 0..processes {
        let part = Part::new(id, number.unsigned_abs(), processes.unsigned_abs()).unwrap();
        let mut writer = options.clone().create_part(path, part).unwrap();
        let bytes = vec![number as u8; SHARD as usize];
        for array in 0..ARRAYS {
            let shard = Shard::new(DeviceId(number), &bytes[..]);
            writer.add_sharded_bytes(&format!("layer.{array:06}"), &spec, &[shard]).unwrap();
        }
        writer.finish().unwrap();
    }
    let last = Part::new(id, processes.unsigned_abs() - 1, processes.unsigned_abs()).unwrap();
    let name = format!("{}.parts", path.file_name().unwrap().to_str().unwrap());
    let bytes = path.with_file_name(name).join(last.name()).metadata().unwrap().len();
    (bytes, merge(path, id, &options).unwrap())
}

#[test]
fn an_index_grows_with_the_shards_and_a_part_with_the_devices() {
    let full = env::var_os("SERDES_FULL").is_some();
    let counts: &[i32] = if full { &[64, 4096] } else { &[16, 128] };
    let directory = tempfile::tempdir().unwrap();
    for processes in counts {
        let path = directory.path().join(format!("{processes}.sds"));
        let (part, merged) = save(&path, *processes);
        let processes = u64::from(processes.unsigned_abs());
        let shards = ARRAYS * processes;
        assert_eq!((u64::from(merged.parts), merged.tensors), (processes, ARRAYS));
        assert_eq!(merged.bytes, shards * SHARD);
        // A record per part; a row, a checksum and a place per shard; one sharding for all arrays
        // with the same sharding.
        let expected = 72 * processes + (32 + 4 + 48) * shards + 3 * processes;
        assert!(merged.index_bytes < expected + 2048, "{} of {expected}", merged.index_bytes);
        // The devices of a sharding occur once per array, and once in the index of the part.
        let expected = ARRAYS * (SHARD + 512) + (ARRAYS + 1) * 3 * processes;
        assert!(part < expected + 2048, "{part} of {expected}");

        let reader = Reader::open(&path).unwrap();
        assert_eq!(u64::from(reader.parts()), processes);
        // Reading one row of one array costs its own bytes, however many rows there are.
        let tensor = reader.tensor("layer.000001").unwrap();
        let row = i64::try_from(processes - 1).unwrap();
        let columns = i64::try_from(SHARD).unwrap();
        let shape = Shape::new([1, columns]).unwrap();
        let domain = IndexDomain::new(Index::new([row, 0]), shape).unwrap();
        let mut bytes = vec![0; SHARD as usize];
        let target = HostTarget::part(&tensor, &domain, &mut bytes).unwrap();
        let read = reader
            .read_into(vec![target], Verification::Checksums, &ProgressMonitor::new())
            .unwrap();
        assert_eq!(read, SHARD);
        assert_eq!(bytes, vec![row as u8; SHARD as usize]);
    }
}
