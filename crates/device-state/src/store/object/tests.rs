use std::{
    fs, io,
    ops::Range,
    path::PathBuf,
    sync::{Mutex, mpsc::Receiver},
    time::Duration,
};

use bytes::Bytes;
use object_store::{ObjectStoreExt, local::LocalFileSystem, memory::InMemory};
use serdes::ifrt::{
    ArraySpec, DType, DeviceId, DeviceList, HloSharding, MemoryKind, Shape, Sharding,
    SingleDeviceSharding,
    xla::{OpSharding, TileAssignment},
};
use serdes_files::{Durability, ProgressMonitor, ReadAt, object::PART_BYTES};
use serdes_stream_executor::{Device, LayoutChoice, Plugin};
use serdes_testkit::noise::noise;
use tokio::runtime::Builder;

use super::*;
use crate::{Merged, Part, PendingPart, SaveId, Shard, ShardTarget, Versions, merge, merge_in};

const LOCATION: &str = "runs/7/step.sds";

fn spec(bytes: usize) -> ArraySpec {
    let shape = Shape::new([bytes as i64]).unwrap();
    ArraySpec::new(DType::U8, shape, SingleDeviceSharding::new(DeviceId(0)))
}

fn begin(store: &Arc<dyn ObjectStore>) -> Writer {
    let options = WriteOptions::new(Versions::current());
    options.create_object(Arc::clone(store), &Path::from(LOCATION)).unwrap()
}

fn open(store: &Arc<dyn ObjectStore>) -> Result<Reader, Error> {
    Reader::open_object(Arc::clone(store), &Path::from(LOCATION))
}

fn stores() -> (tempfile::TempDir, [Arc<dyn ObjectStore>; 2]) {
    let directory = tempfile::tempdir().unwrap();
    let local = LocalFileSystem::new_with_prefix(directory.path()).unwrap();
    (directory, [Arc::new(InMemory::new()), Arc::new(local)])
}

#[test]
fn a_state_of_several_parts_makes_the_trip() {
    let (_directory, stores) = stores();
    let device = Plugin::host().device(0).unwrap();
    let large = noise(2 * PART_BYTES + 77, 3);
    for store in &stores {
        let mut writer = begin(store);
        writer.add_bytes("small", &spec(3), &[1, 2, 3]).unwrap();
        let memory = device.upload(&large).unwrap();
        writer.add("large", &spec(large.len()), &memory).unwrap();
        assert!(open(store).is_err(), "it appears when it is finished");
        writer.finish().unwrap();

        let state = open(store).unwrap();
        assert!(state.verify(&ProgressMonitor::new()).unwrap().is_empty());
        for (name, expected) in [("small", &[1, 2, 3][..]), ("large", &large)] {
            let memory = state.tensor(name).unwrap().restore(&device).unwrap();
            let mut bytes = vec![0; expected.len()];
            device.copy_to_host(&memory, 0, &mut bytes).unwrap();
            assert!(bytes == expected, "{name}");
        }
    }
}

#[test]
fn a_writer_that_is_dropped_leaves_the_old_state_and_no_parts() {
    let (directory, stores) = stores();
    for store in &stores {
        let mut writer = begin(store);
        writer.add_bytes("old", &spec(1), &[1]).unwrap();
        writer.finish().unwrap();
        let mut writer = begin(store);
        writer.add_bytes("new", &spec(PART_BYTES + 1), &noise(PART_BYTES + 1, 1)).unwrap();
        drop(writer);
        let names: Vec<_> = open(store).unwrap().names().map(str::to_owned).collect();
        assert_eq!(names, ["old"]);
    }
    let files = fs::read_dir(directory.path().join("runs/7")).unwrap().count();
    assert_eq!(files, 1);
}

#[test]
fn no_object_is_a_missing_file() {
    for store in &stores().1 {
        let error = open(store).unwrap_err();
        let Error::Io { source, .. } = &error else { panic!("{error}") };
        assert_eq!(source.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains(LOCATION), "{error}");
    }
}

#[test]
fn an_object_that_is_replaced_while_it_is_read_is_an_error() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let save = |byte| {
        let mut writer = begin(&store);
        writer.add_bytes("a", &spec(100), &[byte; 100]).unwrap();
        writer.finish().unwrap();
    };
    save(1);
    let state = open(&store).unwrap();
    save(2);
    let error = state.verify(&ProgressMonitor::new()).unwrap_err().to_string();
    assert!(error.contains("open it again"), "{error}");
}

#[test]
fn callers_may_have_a_runtime_of_their_own() {
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let mut writer = begin(&store);
        writer.add_bytes("a", &spec(1), &[9]).unwrap();
        writer.finish().unwrap();
        assert_eq!(open(&store).unwrap().len(), 1);
    });
}

const SAVERS: u32 = 4;
const FIRST: SaveId = SaveId::new([1; 16]);
const SECOND: SaveId = SaveId::new([2; 16]);
const THIRD: SaveId = SaveId::new([3; 16]);
/// Number of rows of the array that the savers share, and bytes per row.
const ROWS: usize = 8;
const ROW_BYTES: usize = 300_000;

fn parts(store: &Arc<dyn ObjectStore>) -> ObjectParts {
    let parts = ObjectParts::new(Arc::clone(store), Path::from(LOCATION)).unwrap();
    parts.with_leftover_age(Duration::ZERO)
}

fn options() -> WriteOptions {
    WriteOptions::new(Versions::current()).with_chunk_bytes(64 << 10)
}

fn rows_over(devices: usize) -> Sharding {
    let tiles = TileAssignment::iota([devices as i64, 1], [devices as i64], [0]).unwrap();
    let ids = DeviceList::new((0..devices as i32).map(DeviceId));
    HloSharding::new(ids, MemoryKind::unset(), OpSharding::tiled(tiles)).unwrap().into()
}

fn shared_bytes(seed: u64) -> Vec<u8> {
    noise(ROWS * ROW_BYTES, seed)
}

fn device() -> Device {
    Plugin::open("host", LayoutChoice::default()).unwrap().device(0).unwrap()
}

/// Returns the writer of one saver's part of the state.
fn part(store: &Arc<dyn ObjectStore>, save: SaveId, number: u32) -> Writer {
    let shape = Shape::new([ROWS as i64, ROW_BYTES as i64]).unwrap();
    let rows = ArraySpec::new(DType::U8, shape, rows_over(SAVERS as usize));
    let own = Part::new(save, number, SAVERS).unwrap();
    let mut writer = options().create_part_in(&parts(store), own).unwrap();
    let quarter = 2 * ROW_BYTES;
    let bytes = shared_bytes(save.bytes()[0].into());
    let memory = device().upload(&bytes[number as usize * quarter..][..quarter]).unwrap();
    writer.add_sharded("w", &rows, &[Shard::new(DeviceId(number as i32), &memory)]).unwrap();
    writer.add_bytes(&format!("own-{number}"), &spec(3), &[number as u8; 3]).unwrap();
    writer
}

fn save_parts(store: &Arc<dyn ObjectStore>, save: SaveId, numbers: Range<u32>) {
    for number in numbers {
        part(store, save, number).finish().unwrap();
    }
}

fn save(store: &Arc<dyn ObjectStore>, save: SaveId) -> Result<Merged, Error> {
    save_parts(store, save, 0..SAVERS);
    merge_in(Arc::new(parts(store)), save, &options())
}

/// Returns the number of the save that made the state; `None` if the state is not complete.
fn whole(store: &Arc<dyn ObjectStore>) -> Option<u64> {
    let state = open(store).ok()?;
    assert!(state.verify(&ProgressMonitor::new()).unwrap().is_empty());
    assert_eq!(state.len(), 1 + SAVERS as usize);
    let device = device();
    let memory = state.tensor("w").unwrap().restore(&device).unwrap();
    let bytes = device.download(&memory).unwrap();
    (1..4).find(|seed| shared_bytes(*seed) == bytes)
}

/// Returns the save of each existing part.
fn saves_there(store: &Arc<dyn ObjectStore>) -> Vec<SaveId> {
    let mut saves: Vec<_> =
        parts(store).list_parts().unwrap().into_iter().map(Part::save).collect();
    saves.sort();
    saves
}

#[test]
fn several_savers_make_one_state() {
    let (_directory, stores) = stores();
    for store in &stores {
        save_parts(store, FIRST, 0..SAVERS);
        assert!(open(store).is_err(), "it appears when it is merged");
        let merged = merge_in(Arc::new(parts(store)), FIRST, &options()).unwrap();
        assert_eq!((merged.parts, merged.tensors), (SAVERS, 5));
        assert_eq!(whole(store), Some(1));
        assert_eq!(open(store).unwrap().parts(), SAVERS);
        // A second merge of the same parts finds its work done.
        merge_in(Arc::new(parts(store)), FIRST, &options()).unwrap();
        assert_eq!(whole(store), Some(1));
    }
}

#[test]
fn missing_part_leaves_the_old_state_and_a_retry_works() {
    let (_directory, stores) = stores();
    for store in &stores {
        save(store, FIRST).unwrap();
        save_parts(store, SECOND, 0..3);
        // The saver dies during the save.
        drop(part(store, SECOND, 3));
        let error = merge_in(Arc::new(parts(store)), SECOND, &options()).unwrap_err();
        assert!(
            matches!(error, Error::IncompleteSave { found: 3, expected: 4, first_missing: 3, .. }),
            "{error}"
        );
        assert_eq!(whole(store), Some(1));
        save(store, THIRD).unwrap();
        assert_eq!(whole(store), Some(3));
        assert_eq!(saves_there(store), [THIRD; 4]);
    }
}

#[test]
fn a_part_that_went_away_is_named() {
    let (_directory, stores) = stores();
    for store in &stores {
        save(store, FIRST).unwrap();
        let name = Part::new(FIRST, 2, SAVERS).unwrap().name();
        let location = Path::from(format!("{LOCATION}.parts/{name}"));
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(store.delete(&location)).unwrap();
        let error = open(store).unwrap_err();
        assert!(matches!(error, Error::MissingPart { .. }), "{error}");
        assert!(error.to_string().contains("part 2 of 4"), "{error}");
        assert!(error.to_string().contains(&format!("{LOCATION}.parts/{name}")), "{error}");
    }
}

#[test]
fn parts_of_the_replaced_state_go_and_young_others_stay() {
    let (_directory, stores) = stores();
    for store in &stores {
        save(store, FIRST).unwrap();
        let careful = ObjectParts::new(Arc::clone(store), Path::from(LOCATION)).unwrap();
        save_parts(store, THIRD, 0..SAVERS);
        // Nothing is removed when a save begins: two of its savers may be running.
        let own = Part::new(SECOND, 0, 1).unwrap();
        options().create_part_in(&careful, own).unwrap().finish().unwrap();
        assert_eq!(saves_there(store).len(), 9);
        merge_in(Arc::new(careful.clone()), SECOND, &options()).unwrap();
        assert_eq!(saves_there(store), [SECOND, THIRD, THIRD, THIRD, THIRD]);
        // Then the parts of the third save are merged.
        merge_in(Arc::new(careful), THIRD, &options()).unwrap();
        assert_eq!(whole(store), Some(3));
        assert_eq!(saves_there(store), [THIRD; 4]);
    }
}

#[test]
fn a_state_of_one_object_takes_the_place_of_one_of_several() {
    let (directory, stores) = stores();
    for store in &stores {
        save(store, FIRST).unwrap();
        let mut writer = begin(store);
        writer.add_bytes("a", &spec(1), &[1]).unwrap();
        writer.finish().unwrap();
        assert_eq!(open(store).unwrap().names().collect::<Vec<_>>(), ["a"]);
        assert!(saves_there(store).is_empty());
    }
    assert!(directory.path().join(LOCATION).exists());
}

#[test]
fn concurrent_merge_is_refused_if_the_store_has_conditions() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    // With and without an existing state.
    for _ in 0..2 {
        let slow = parts(&store);
        slow.list_parts().unwrap();
        save(&store, SECOND).unwrap();
        let error = slow.commit_index(b"an index", Durability::None).unwrap_err().to_string();
        assert!(error.contains("another save replaced the state"), "{error}");
        assert_eq!(whole(&store), Some(2));
    }
}

#[test]
fn objects_and_files_of_a_state_are_called_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let local = LocalFileSystem::new_with_prefix(directory.path()).unwrap();
    let store: Arc<dyn ObjectStore> = Arc::new(local);
    let path = directory.path().join(LOCATION);
    save(&store, FIRST).unwrap();
    assert_eq!(Reader::open(&path).unwrap().parts(), SAVERS);
    let own = Part::new(SECOND, 0, 1).unwrap();
    options().create_part(&path, own).unwrap().finish().unwrap();
    merge(&path, SECOND, &options()).unwrap();
    assert_eq!(open(&store).unwrap().parts(), 1);
}

#[test]
fn the_root_of_a_store_is_no_place_for_a_state() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let error = ObjectParts::new(store, Path::from("")).unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }), "{error}");
}

/// A store that records which ranges of its parts are read.
#[derive(Debug)]
struct Counting(ObjectParts, Arc<Mutex<Vec<u64>>>);

struct Counted(Box<dyn ReadAt>, Arc<Mutex<Vec<u64>>>);

impl ReadAt for Counted {
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.1.lock().unwrap().push(buffer.len() as u64);
        self.0.read_at(buffer, offset)
    }

    fn begin_read(&self, range: Range<u64>) -> Option<Receiver<io::Result<Bytes>>> {
        self.1.lock().unwrap().push(range.end - range.start);
        self.0.begin_read(range)
    }

    fn answers_late(&self) -> bool {
        self.0.answers_late()
    }
}

impl PartStore for Counting {
    fn place(&self) -> PathBuf {
        self.0.place()
    }

    fn directory(&self) -> String {
        self.0.directory()
    }

    fn put_part(&self, part: Part) -> Result<PendingPart, Error> {
        self.0.put_part(part)
    }

    fn list_parts(&self) -> Result<Vec<Part>, Error> {
        self.0.list_parts()
    }

    fn open_part(&self, directory: &str, part: Part) -> Result<Box<dyn ReadAt>, Error> {
        let source = self.0.open_part(directory, part)?;
        Ok(Box::new(Counted(source, Arc::clone(&self.1))))
    }

    fn open_index(&self) -> Result<Box<dyn ReadAt>, Error> {
        let source = self.0.open_index()?;
        Ok(Box::new(Counted(source, Arc::clone(&self.1))))
    }

    fn commit_index(&self, bytes: &[u8], durability: Durability) -> Result<Duration, Error> {
        self.0.commit_index(bytes, durability)
    }

    fn clean(&self, keep: &[SaveId]) {
        self.0.clean(keep);
    }
}

#[test]
fn only_what_is_wanted_is_read_and_in_few_requests() {
    let (_directory, stores) = stores();
    let device = device();
    for store in &stores {
        save(store, FIRST).unwrap();
        let asked = Arc::default();
        let counting = Counting(parts(store), Arc::clone(&asked));
        let state = Reader::open_in(Arc::new(counting)).unwrap();
        let take = || std::mem::take(&mut *asked.lock().unwrap());
        let opened: u64 = take().iter().sum();
        assert!(opened < 10_000, "{opened}");

        state.tensor("own-2").unwrap().restore(&device).unwrap();
        assert_eq!(take(), [3]);

        // All of it, onto another number of devices: each byte is read once.
        let tensor = state.tensor("w").unwrap();
        let targets: Vec<_> = (0..2).map(|id| ShardTarget::new(DeviceId(id), &device)).collect();
        let restored =
            tensor.restore_sharded(&rows_over(2), &targets, &ProgressMonitor::new()).unwrap();
        let halves: Vec<_> =
            restored.memories.iter().flat_map(|half| device.download(half).unwrap()).collect();
        assert!(halves == shared_bytes(1));
        let requests = take();
        // Reading the bytes between two pieces is cheaper than leaving them out.
        let between = 4096 * u64::from(SAVERS);
        let range = |bytes: usize| bytes as u64..bytes as u64 + between;
        assert!(range(ROWS * ROW_BYTES).contains(&requests.iter().sum()), "{requests:?}");
        assert_eq!(requests.len(), SAVERS as usize);

        // One shard of two: half of it.
        tensor.restore_sharded(&rows_over(2), &targets[1..], &ProgressMonitor::new()).unwrap();
        assert!(range(ROWS * ROW_BYTES / 2).contains(&take().iter().sum()));

        let mut bytes = Vec::new();
        io::copy(&mut tensor.read().unwrap(), &mut bytes).unwrap();
        assert!(bytes == shared_bytes(1));
        let requests = take();
        assert_eq!(requests.iter().sum::<u64>(), (ROWS * ROW_BYTES) as u64);
        assert!(requests.len() <= 4 * SAVERS as usize, "{requests:?}");
    }
}
