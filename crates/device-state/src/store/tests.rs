use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use serdes::ifrt::{
    ArraySpec, DType, DeviceId, DeviceList, HloSharding, IndexDomain, MemoryKind, Shape,
    SingleDeviceSharding,
    xla::{OpSharding, TileAssignment},
};
use serdes_files::{Durability, ProgressMonitor, ReadAt};
use serdes_stream_executor::{LayoutChoice, Plugin};
use serdes_testkit::noise::noise;

use super::*;
use crate::{Error, Reader, Shard, Versions, WriteOptions, Writer};

fn options() -> WriteOptions {
    WriteOptions::new(Versions::current())
        .with_chunk_bytes(64)
        .with_durability(Durability::None)
        .with_producer_release("test 1.0")
}

fn single(dims: &[i64]) -> ArraySpec {
    let sharding = SingleDeviceSharding::new(DeviceId(0));
    ArraySpec::new(DType::U8, Shape::new(dims).unwrap(), sharding)
}

/// Returns an array in rows over four devices, two of each process.
fn rows() -> ArraySpec {
    let op = OpSharding::tiled(TileAssignment::iota([4, 1], [4], [0]).unwrap());
    let sharding = HloSharding::new(DeviceList::from([0, 1, 2, 3]), MemoryKind::unset(), op);
    ArraySpec::new(DType::U8, Shape::new([8, 25]).unwrap(), sharding.unwrap())
}

fn replicated() -> ArraySpec {
    let devices = DeviceList::from([0, 1, 2, 3]);
    let sharding = HloSharding::replicated(devices, MemoryKind::unset()).unwrap();
    ArraySpec::new(DType::U8, Shape::new([10]).unwrap(), sharding)
}

fn part(path: &Path, save: SaveId, number: u32) -> Writer {
    options().create_part(path, Part::new(save, number, 2).unwrap()).unwrap()
}

/// Saves the part of one of two processes of a small state.
fn save_part(path: &Path, save: SaveId, number: u32) {
    let plugin = Plugin::open("host:devices=2", LayoutChoice::default()).unwrap();
    let mut writer = part(path, save, number);
    let (w, b) = (noise(200, 1), noise(10, 2));
    let ids = [2 * number as i32, 2 * number as i32 + 1];
    let devices = [plugin.device(0).unwrap(), plugin.device(1).unwrap()];
    let upload = |bytes: &[u8], n: usize| devices[n].upload(bytes).unwrap();
    let quarters = [0, 1].map(|n| upload(&w[50 * ids[n] as usize..][..50], n));
    let shards = [0, 1].map(|n| Shard::new(DeviceId(ids[n]), &quarters[n]));
    writer.add_sharded("w", &rows(), &shards).unwrap();
    let copies = [0, 1].map(|n| upload(&b, n));
    let shards = [0, 1].map(|n| Shard::new(DeviceId(ids[n]), &copies[n]));
    writer.add_sharded("b", &replicated(), &shards).unwrap();
    writer.add_bytes(&format!("own-{number}"), &single(&[3]), &[number as u8; 3]).unwrap();
    writer.finish().unwrap();
}

fn save(path: &Path, save: SaveId) -> Result<Merged, Error> {
    (0..2).for_each(|number| save_part(path, save, number));
    merge(path, save, &options())
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn is_whole(path: &Path) -> bool {
    Reader::open(path).is_ok_and(|reader| {
        reader.tensors().all(|tensor| tensor.is_ok())
            && reader.verify(&ProgressMonitor::new()).is_ok_and(|damage| damage.is_empty())
    })
}

const FIRST: SaveId = SaveId::new([1; 16]);
const SECOND: SaveId = SaveId::new([2; 16]);

#[test]
fn two_processes_make_one_state() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.sds");
    let merged = save(&path, FIRST).unwrap();
    assert_eq!((merged.parts, merged.tensors, merged.bytes), (2, 4, 216));
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.names().collect::<Vec<_>>(), ["b", "own-0", "own-1", "w"]);
    assert_eq!((reader.parts(), reader.data_bytes()), (2, 216));
    assert!(is_whole(&path));
    let device = Plugin::host().device(0).unwrap();
    let tensors = reader.tensors_in_file_order().unwrap();
    let (memories, _) = reader.restore(&tensors, &device, &ProgressMonitor::new()).unwrap();
    assert_eq!(device.download(&memories[0]).unwrap(), noise(10, 2));
    assert_eq!(device.download(&memories[2]).unwrap(), [1; 3]);
    assert_eq!(device.download(&memories[3]).unwrap(), noise(200, 1));
    let salvaged = Reader::salvage(&path, &ProgressMonitor::new()).unwrap();
    assert_eq!((salvaged.whole.len(), salvaged.lost.len()), (4, 0));
}

#[test]
fn a_file_that_gets_another_name_keeps_its_parts() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.sds");
    save(&path, FIRST).unwrap();
    let moved = directory.path().join("b.sds");
    fs::rename(&path, &moved).unwrap();
    assert!(is_whole(&moved));
    // A save under the old name does not remove the parts of the moved state.
    save(&path, SECOND).unwrap();
    let mut writer = options().create(&path).unwrap();
    writer.add_bytes("a", &single(&[1]), &[1]).unwrap();
    writer.finish().unwrap();
    assert!(is_whole(&path) && is_whole(&moved));
    fs::rename(&moved, directory.path().join("a.sds.parts/c.sds")).unwrap();
    let error = Reader::open(directory.path().join("a.sds.parts/c.sds")).unwrap_err();
    assert!(matches!(error, Error::MissingPart { .. }), "{error}");
    assert!(error.to_string().contains("copy the directory along"), "{error}");
}

#[test]
fn a_part_says_what_it_is_and_gives_out_what_it_has() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.sds");
    save(&path, FIRST).unwrap();
    let one = Part::new(FIRST, 1, 2).unwrap();
    let reader = Reader::open(directory.path().join("a.sds.parts").join(one.name())).unwrap();
    assert_eq!(reader.part(), Some(one));
    assert_eq!(reader.names().collect::<Vec<_>>(), ["own-1", "w"]);
    assert!(reader.verify(&ProgressMonitor::new()).unwrap().is_empty());
    let device = Plugin::host().device(0).unwrap();
    reader.tensor("own-1").unwrap().restore(&device).unwrap();
    let tensor = reader.tensor("w").unwrap();
    assert!(matches!(tensor.restore(&device), Err(Error::Shards { .. })));
    assert!(tensor.read().is_err());
}

#[test]
fn the_new_state_replaces_the_old_one_and_takes_its_parts_away() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.sds");
    let parts = directory.path().join("a.sds.parts");
    save(&path, FIRST).unwrap();
    save_part(&path, SECOND, 0);
    assert!(is_whole(&path));
    assert_eq!(names(&parts).len(), 3);
    let error = merge(&path, SECOND, &options()).unwrap_err();
    assert!(matches!(error, Error::IncompleteSave { found: 1, expected: 2, first_missing: 1, .. }));
    assert!(is_whole(&path));
    save(&path, SECOND).unwrap();
    assert!(is_whole(&path));
    assert!(names(&parts).iter().all(|name| name.starts_with("0202")), "{:?}", names(&parts));
    // A state of one file replaces both.
    let mut writer = options().create(&path).unwrap();
    writer.add_bytes("a", &single(&[1]), &[1]).unwrap();
    writer.finish().unwrap();
    assert_eq!(names(directory.path()), ["a.sds"]);
}

#[test]
fn leftovers_of_dead_savers_go_and_files_of_running_ones_stay() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.sds");
    let parts = directory.path().join("a.sds.parts");
    save(&path, FIRST).unwrap();
    // One process of the second attempt finished, the other one died during the save.
    save_part(&path, SECOND, 0);
    let dead = format!(".{}.0123456789abcdef.partial", Part::new(SECOND, 1, 2).unwrap().name());
    fs::write(parts.join(dead), "half").unwrap();
    fs::write(parts.join("notes.txt"), "mine").unwrap();
    let third = SaveId::new([3; 16]);
    let living = part(&path, third, 0);
    let left = names(&parts);
    assert_eq!(left.len(), 4, "{left:?}");
    assert!(is_whole(&path));
    // A save by other processes leaves a part alone that is being written.
    save(&path, SECOND).unwrap();
    living.finish().unwrap();
    assert!(parts.join(Part::new(third, 0, 2).unwrap().name()).exists());
    assert!(parts.join("notes.txt").exists());
    assert!(is_whole(&path));
}

#[test]
fn parts_of_a_failed_save_can_be_discarded_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.sds");
    let parts = directory.path().join("a.sds.parts");
    save(&path, FIRST).unwrap();
    save_part(&path, SECOND, 0);
    // Another process still writes its part.
    let living = part(&path, SECOND, 1);
    discard(&path, SECOND);
    assert_eq!(names(&parts).len(), 4, "{:?}", names(&parts));
    drop(living);
    discard(&path, SECOND);
    assert_eq!(names(&parts).len(), 2, "{:?}", names(&parts));
    let third = SaveId::new([3; 16]);
    save_part(&path, third, 1);
    // The parts of the state itself are not a failed save, and other saves are not affected.
    discard(&path, FIRST);
    assert!(is_whole(&path));
    assert_eq!(names(&parts).len(), 3, "{:?}", names(&parts));
    discard(&path, third);
    assert_eq!(names(&parts).len(), 2, "{:?}", names(&parts));
    discard(directory.path().join("nothing.sds"), third);
}

#[test]
fn a_dropped_part_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.sds");
    let mut writer = part(&path, FIRST, 0);
    writer.add_bytes("a", &single(&[100]), &[1; 100]).unwrap();
    drop(writer);
    assert_eq!(names(&directory.path().join("a.sds.parts")), [""; 0]);
    let error = merge(&path, FIRST, &options()).unwrap_err();
    assert!(matches!(error, Error::IncompleteSave { found: 0, .. }), "{error}");
}

#[test]
fn parts_that_do_not_fit_together_are_not_merged() {
    type Make<'a> = &'a dyn Fn(&Path, u32);
    let add = |path: &Path, number: u32, name: &str, spec: &ArraySpec, bytes: &[u8]| {
        let mut writer = part(path, FIRST, number);
        writer.add_bytes(name, spec, bytes).unwrap();
        writer.finish().unwrap();
    };
    let shard = |path: &Path, number: u32, ids: &[i32], spec: &ArraySpec| {
        let device = Plugin::host().device(0).unwrap();
        let memory = device.upload(&[0; 50]).unwrap();
        let mut writer = part(path, FIRST, number);
        let shards: Vec<_> = ids.iter().map(|id| Shard::new(DeviceId(*id), &memory)).collect();
        writer.add_sharded("w", spec, &shards).unwrap();
        writer.finish().unwrap();
    };
    let cases: [(&str, Make<'_>); 5] = [
        ("they have 2 elements", &|path, number| add(path, number, "a", &single(&[1]), &[1])),
        ("array spec of \"a\"", &|path, number| {
            add(
                path,
                number,
                "a",
                &single(&[1 + i64::from(number)]),
                &[1, 2][..1 + number as usize],
            );
        }),
        ("they have 100 elements", &|path, number| shard(path, number, &[number as i32], &rows())),
        ("they have 250 elements", &|path, number| {
            // Both processes have the shards of all devices.
            let device = Plugin::host().device(0).unwrap();
            let memory = device.upload(&[0; 50]).unwrap();
            let at = |row: i64| {
                let origin = serdes::ifrt::Index::new([row, 0]);
                IndexDomain::new(origin, Shape::new([2, 25]).unwrap()).unwrap()
            };
            let rows_of = |id: i32| Shard::new(DeviceId(id), &memory).at(at(2 * i64::from(id)));
            let ids = if number == 0 { 0..4 } else { 1..2 };
            let shards: Vec<_> = ids.map(rows_of).collect();
            let mut writer = part(path, FIRST, number);
            writer.add_sharded("w", &rows(), &shards).unwrap();
            writer.finish().unwrap();
        }),
        ("chunk length", &|path, number| {
            let options = options().with_chunk_bytes(64 << number);
            options
                .create_part(path, Part::new(FIRST, number, 2).unwrap())
                .unwrap()
                .finish()
                .unwrap();
        }),
    ];
    for (reason, make) in cases {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sds");
        (0..2).for_each(|number| make(&path, number));
        let error = merge(&path, FIRST, &options()).unwrap_err();
        assert!(error.to_string().contains(reason), "{reason}: {error}");
        assert!(!path.exists());
    }
}

#[test]
fn parts_of_two_numbers_of_processes_are_not_mixed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.sds");
    save_part(&path, FIRST, 0);
    let three = Part::new(FIRST, 1, 3).unwrap();
    options().create_part(&path, three).unwrap().finish().unwrap();
    let error = merge(&path, FIRST, &options()).unwrap_err();
    assert!(matches!(error, Error::OtherSave { .. }), "{error}");
}

/// Returns every file of a merged state, with its bytes.
fn files(directory: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let parts = directory.join("a.sds.parts");
    let mut paths: Vec<_> = names(&parts).iter().map(|name| parts.join(name)).collect();
    paths.push(directory.join("a.sds"));
    paths.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn flipped_bits_and_truncations_of_every_file_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.sds");
    save(&path, FIRST).unwrap();
    for (file, bytes) in files(directory.path()) {
        for bit in (0..bytes.len()).map(|byte| 8 * byte + byte % 8) {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            fs::write(&file, &damaged).unwrap();
            match Reader::open(&path) {
                Ok(_) => assert!(!is_whole(&path), "bit {bit} of {}", file.display()),
                Err(error) => assert!(
                    matches!(error, Error::Corrupt { .. } | Error::NotDeviceState { .. }),
                    "bit {bit} of {}: {error}",
                    file.display()
                ),
            }
        }
        for length in (0..bytes.len()).step_by(37) {
            fs::write(&file, &bytes[..length]).unwrap();
            assert!(!is_whole(&path), "{length} bytes of {}", file.display());
        }
        for tail in [&b"\0"[..], b"x", &bytes] {
            fs::write(&file, [&bytes, tail].concat()).unwrap();
            assert!(!is_whole(&path), "a tail behind {}", file.display());
        }
        fs::write(&file, &bytes).unwrap();
        assert!(is_whole(&path));
    }
}

#[test]
fn swapped_chunks_and_swapped_parts_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.sds");
    save(&path, FIRST).unwrap();
    let files = files(directory.path());
    for (file, bytes) in &files {
        let count = bytes.len() / 128;
        for first in 0..count {
            for second in first + 1..count {
                let mut swapped = bytes.clone();
                let (head, tail) = swapped.split_at_mut(second * 128);
                head[first * 128..][..128].swap_with_slice(&mut tail[..128]);
                if swapped != *bytes {
                    fs::write(file, swapped).unwrap();
                    assert!(!is_whole(&path), "{first} {second} of {}", file.display());
                }
            }
        }
        fs::write(file, bytes).unwrap();
    }
    fs::write(&files[0].0, &files[1].1).unwrap();
    fs::write(&files[1].0, &files[0].1).unwrap();
    assert!(!is_whole(&path));
}

#[test]
fn a_part_that_is_missing_or_of_another_save_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.sds");
    save(&path, FIRST).unwrap();
    let parts = directory.path().join("a.sds.parts");
    let one = parts.join(Part::new(FIRST, 1, 2).unwrap().name());
    let bytes = fs::read(&one).unwrap();
    fs::remove_file(&one).unwrap();
    let error = Reader::open(&path).unwrap_err();
    assert!(matches!(error, Error::MissingPart { .. }), "{error}");
    assert!(error.to_string().contains("part 1 of 2"), "{error}");
    // The same content, saved by another attempt.
    let other = directory.path().join("b.sds");
    save(&other, SECOND).unwrap();
    let foreign =
        directory.path().join("b.sds.parts").join(Part::new(SECOND, 1, 2).unwrap().name());
    fs::copy(foreign, &one).unwrap();
    let error = Reader::open(&path).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("another save"), "{error}");
    assert_eq!(error.path(), Some(&*one), "{error}");
    fs::write(&one, &bytes[..bytes.len() - 100]).unwrap();
    let salvaged = Reader::salvage(&one, &ProgressMonitor::new()).unwrap();
    assert_eq!(salvaged.whole[0].name(), "own-1");
    fs::write(&one, bytes).unwrap();
    assert!(is_whole(&path));
}

/// Salvages a merged state; returns the complete tensors, lost tensors and lost parts.
fn salvaged(path: &Path) -> ([Vec<String>; 3], Vec<Error>) {
    let salvaged = Reader::salvage(path, &ProgressMonitor::new()).unwrap();
    assert!(salvaged.complete_list);
    for tensor in &salvaged.whole {
        let mut data = Vec::new();
        std::io::Read::read_to_end(&mut tensor.read().unwrap(), &mut data).unwrap();
        assert_eq!(data.len() as u64, tensor.bytes());
    }
    let whole = salvaged.whole.iter().map(|tensor| tensor.name().to_owned()).collect();
    let lost = salvaged.lost.iter().map(|damage| damage.tensor.clone()).collect();
    let parts = salvaged.lost_parts.iter().map(|damage| damage.tensor.clone()).collect();
    let errors = salvaged.lost.into_iter().chain(salvaged.lost_parts).map(|damage| damage.error);
    ([whole, lost, parts], errors.collect())
}

#[test]
fn salvage_reads_other_parts_and_names_the_lost_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.sds");
    save(&path, FIRST).unwrap();
    assert_eq!(salvaged(&path).0, [vec!["b", "own-0", "own-1", "w"], vec![], vec![]]);
    let name = Part::new(FIRST, 1, 2).unwrap().name();
    let one = directory.path().join("a.sds.parts").join(&name);
    let bytes = fs::read(&one).unwrap();
    // The shards of "w" are in both parts; "b" is the same in both and stored in the first one.
    let expected = [vec!["b", "own-0"], vec!["own-1", "w"], vec![&name]];
    let lose = |expected_error: fn(&Error) -> bool| {
        let (found, errors) = salvaged(&path);
        assert_eq!(found, expected);
        let [tensors @ .., part] = &errors[..] else { panic!("{errors:?}") };
        assert!(expected_error(part), "{part}");
        for error in tensors {
            assert!(error.to_string().contains("part 1 of 2"), "{error}");
        }
    };
    fs::remove_file(&one).unwrap();
    lose(|error| matches!(error, Error::MissingPart { .. }));
    fs::create_dir(&one).unwrap();
    lose(|error| matches!(error, Error::Io { .. }));
    fs::remove_dir(&one).unwrap();
    // A part that a newer build has rewritten is too new, not damaged.
    fs::write(&one, include_bytes!("../../../../tests/golden/device_state/future.sds")).unwrap();
    lose(|error| matches!(error, Error::TooNew { .. }));
    let error = Reader::open(&path).unwrap_err();
    assert!(matches!(error, Error::TooNew { .. }), "{error}");

    // A truncated part still has the tensors before the cut.
    let whole_of = |bytes: &[u8]| {
        fs::write(&one, bytes).unwrap();
        let ([whole, lost, parts], errors) = salvaged(&path);
        assert_eq!(whole.len() + lost.len(), 4);
        assert_eq!(parts, std::slice::from_ref(&name));
        assert!(matches!(errors[lost.len()], Error::Corrupt { .. }), "{}", errors[lost.len()]);
        whole
    };
    assert_eq!(whole_of(&bytes[..bytes.len() - 1]).len(), 4);
    assert_eq!(whole_of(&[&bytes[..], b"tail"].concat()).len(), 4);
    assert_eq!(whole_of(&[]), ["b", "own-0"]);
    let counts: Vec<_> =
        (0..bytes.len()).step_by(97).map(|end| whole_of(&bytes[..end]).len()).collect();
    assert!(counts.is_sorted() && counts.contains(&3), "{counts:?}");
    // Damage is reported with the damaged part.
    fs::write(&one, &bytes).unwrap();
    let own = Reader::open(&one).unwrap();
    let mut flipped = bytes.clone();
    let at = own.tensor("own-1").unwrap().pieces().next().unwrap().1.data_offset as usize;
    flipped[at] ^= 1;
    fs::write(&one, &flipped).unwrap();
    let (_, errors) = salvaged(&path);
    assert_eq!(errors[0].path(), Some(&*one), "{}", errors[0]);
    // Damage outside the data loses no tensor.
    let mut flipped = bytes.clone();
    flipped[40] ^= 1;
    assert_eq!(whole_of(&flipped).len(), 4);
    fs::write(&one, bytes).unwrap();
    assert!(is_whole(&path));
}

#[test]
fn names_of_parts_are_read_as_they_are_written() {
    let part = Part::new(SaveId::random(), 7, 12).unwrap();
    assert_eq!(Part::from_name(&part.name()), Some(part));
    assert!(Part::new(FIRST, 2, 2).is_err() && Part::new(FIRST, 0, 0).is_err());
    for wrong in ["", "a.part", "../x.part", "01-000000-of-000001.part"] {
        assert_eq!(Part::from_name(wrong), None, "{wrong}");
    }
    let upper = Part::new(SaveId::new([0xab; 16]), 0, 1).unwrap().name().to_uppercase();
    assert_eq!(Part::from_name(&upper), None);
    assert_eq!(Part::from_name(&part.name().replace("-000007-", "-7-")), None);
    assert!("g".repeat(32).parse::<SaveId>().is_err());
    assert_ne!(SaveId::random(), SaveId::random());
}

#[test]
fn a_merged_state_is_written_and_read_as_it_was_laid_down() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/device_state/v0");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("merged.sds");
    save(&path, FIRST).unwrap();
    let parts = names(&directory.path().join("merged.sds.parts"));
    let files = parts.iter().map(|name| format!("merged.sds.parts/{name}"));
    for file in files.chain(["merged.sds".to_owned()]) {
        let written = fs::read(directory.path().join(&file)).unwrap();
        if std::env::var_os("SERDES_REGENERATE_GOLDEN").is_some() && !golden.join(&file).exists() {
            fs::create_dir_all(golden.join("merged.sds.parts")).unwrap();
            fs::write(golden.join(&file), &written).unwrap();
        }
        assert!(written == fs::read(golden.join(&file)).unwrap(), "{file}");
    }
    assert!(is_whole(&golden.join("merged.sds")));
}

/// A directory that counts how many parts are open at a time.
#[derive(Clone, Debug)]
struct Counting {
    parts: LocalParts,
    open: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

struct Counted(Box<dyn ReadAt>, Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Relaxed);
    }
}

impl ReadAt for Counted {
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }
}

impl PartStore for Counting {
    fn place(&self) -> PathBuf {
        self.parts.place()
    }

    fn directory(&self) -> String {
        self.parts.directory()
    }

    fn put_part(&self, part: Part) -> Result<PendingPart, Error> {
        self.parts.put_part(part)
    }

    fn list_parts(&self) -> Result<Vec<Part>, Error> {
        self.parts.list_parts()
    }

    fn open_part(&self, directory: &str, part: Part) -> Result<Box<dyn ReadAt>, Error> {
        self.most.fetch_max(self.open.fetch_add(1, Relaxed) + 1, Relaxed);
        let source = self.parts.open_part(directory, part)?;
        Ok(Box::new(Counted(source, Arc::clone(&self.open))))
    }

    fn open_index(&self) -> Result<Box<dyn ReadAt>, Error> {
        self.parts.open_index()
    }

    fn commit_index(&self, bytes: &[u8], durability: Durability) -> Result<Duration, Error> {
        self.parts.commit_index(bytes, durability)
    }

    fn clean(&self, keep: &[SaveId]) {
        self.parts.clean(keep);
    }
}

#[test]
fn more_parts_than_a_process_may_open_are_no_trouble() {
    const COUNT: u32 = 300;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.sds");
    for number in 0..COUNT {
        let part = Part::new(FIRST, number, COUNT).unwrap();
        let mut writer = options().create_part(&path, part).unwrap();
        writer.add_bytes(&format!("own-{number}"), &single(&[4]), &number.to_le_bytes()).unwrap();
        writer.finish().unwrap();
    }
    let store =
        Counting { parts: LocalParts::new(&path), open: Arc::default(), most: Arc::default() };
    let merged = merge_in(Arc::new(store.clone()), FIRST, &options()).unwrap();
    assert_eq!((merged.parts, merged.tensors), (COUNT, u64::from(COUNT)));
    assert_eq!((store.most.swap(0, Relaxed), store.open.load(Relaxed)), (1, 0));

    let reader = Reader::open_in(Arc::new(store.clone())).unwrap();
    for number in 0..COUNT {
        let mut bytes = [0; 4];
        let tensor = reader.tensor(&format!("own-{number}")).unwrap();
        tensor.read().unwrap().read_exact(&mut bytes).unwrap();
        assert_eq!(u32::from_le_bytes(bytes), number);
    }
    assert!(reader.verify(&ProgressMonitor::new()).unwrap().is_empty());
    assert!(store.most.load(Relaxed) < 200, "{store:?}");
}
