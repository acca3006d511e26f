//! Tests that saves that are killed or run out of space leave the old state or the new one.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use serdes::ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding};
use serdes_device_state::{
    Durability, Error, Part, ProgressMonitor, Reader, SaveId, Versions, WriteOptions, merge,
};

const TENSORS: i64 = 8;
/// Length of each tensor in the tests of several processes, in bytes; half a MiB by default.
const TENSOR_BYTES: &str = "SERDES_TEST_TENSOR_BYTES";
/// Path at which a child of these tests saves.
const TARGET: &str = "SERDES_TEST_SAVE_TO";

/// Id of the save in which a child takes part, and number of its part.
const SAVE: &str = "SERDES_TEST_SAVE_ID";
const PART: &str = "SERDES_TEST_PART";
const PARTS: u32 = 4;

fn options() -> WriteOptions {
    WriteOptions::new(Versions::current()).with_durability(Durability::None)
}

fn bytes() -> usize {
    env::var(TENSOR_BYTES).ok().and_then(|bytes| bytes.parse().ok()).unwrap_or(512 << 10)
}

fn spec(bytes: usize) -> ArraySpec {
    let shape = Shape::new([bytes as i64]).expect("a shape");
    ArraySpec::new(DType::U8, shape, SingleDeviceSharding::new(DeviceId(0)))
}

/// Saves one process's part: every fourth tensor.
fn save_part(path: &Path, save: SaveId, number: u32, fill: u8) -> Result<(), Error> {
    let mut writer = options().create_part(path, Part::new(save, number, PARTS)?)?;
    for tensor in (0..TENSORS).filter(|tensor| *tensor as u32 % PARTS == number) {
        writer.add_bytes(&format!("t{tensor}"), &spec(bytes()), &vec![fill; bytes()])?;
    }
    writer.finish().map(drop)
}

fn save(path: &Path, fill: u8) -> Result<(), Error> {
    let mut writer = options().create(path)?;
    for number in 0..TENSORS {
        writer.add_bytes(&format!("t{number}"), &spec(bytes()), &vec![fill; bytes()])?;
    }
    writer.finish().map(drop)
}

/// Runs one of the ignored tests of this file in its own process, in which `sh` runs `before`
/// first.
fn child(test: &str, target: &Path, before: &str) -> Child {
    // The path without the name of the program.
    let module = module_path!().split_once("::").expect("a module of the program").1;
    Command::new("sh")
        .args(["-c", &format!("{before} exec \"$0\" --ignored --exact {module}::{test}")])
        .arg(env::current_exe().expect("this program"))
        .env(TARGET, target)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a child")
}

fn target() -> PathBuf {
    env::var_os(TARGET).expect("run by the other tests of this file").into()
}

fn files(directory: &Path) -> usize {
    fs::read_dir(directory).expect("a directory").count()
}

/// Verifies a state, and returns the byte that fills its tensors.
fn fill(path: &Path) -> u8 {
    let state = Reader::open(path).expect("a state");
    assert!(state.verify(&ProgressMonitor::new()).expect("a readable state").is_empty());
    assert_eq!(state.len() as i64, TENSORS);
    let mut byte = [0];
    let mut data = state.tensor("t3").expect("a tensor").read().expect("data");
    std::io::Read::read_exact(&mut data, &mut byte).expect("a byte");
    byte[0]
}

#[test]
#[ignore = "saves until it is killed; started by another test"]
fn child_that_saves_for_ever() {
    for fill in (1..=255).cycle() {
        save(&target(), fill).expect("a save");
    }
}

#[test]
#[ignore = "fails when the files may not grow; started by another test"]
fn child_that_runs_out_of_space() {
    let error = save(&target(), 9).expect_err("no space for so much");
    assert!(matches!(error, Error::Io { .. }), "{error}");
}

#[test]
fn kill_at_any_moment_leaves_a_whole_state() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.sds");
    save(&path, 0).expect("a save");
    let rounds = env::var("SERDES_TEST_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    for round in 0..rounds {
        let mut child = child("child_that_saves_for_ever", &path, "");
        thread::sleep(Duration::from_millis(20 + round * 7 % 41));
        child.kill().expect("a kill");
        child.wait().expect("an end");
        fill(&path);
    }
    save(&path, 7).expect("a save");
    assert_eq!(fill(&path), 7);
    assert_eq!(files(directory.path()), 1);
}

#[test]
fn a_full_disk_leaves_the_old_state_and_nothing_else() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.sds");
    save(&path, 5).expect("a save");
    // Files may grow to one MiB; the signal that says so is ignored, so that the write fails.
    let mut child = child("child_that_runs_out_of_space", &path, "trap '' XFSZ; ulimit -f 1024;");
    assert!(child.wait().expect("an end").success());
    assert_eq!(fill(&path), 5);
    assert_eq!(files(directory.path()), 1);
}

#[test]
#[ignore = "saves a part; started by another test"]
fn child_that_saves_a_part() {
    let number = |name| env::var(name).expect("run by the other tests of this file");
    let save = number(SAVE).parse().expect("an id");
    let part = number(PART).parse().expect("a number");
    save_part(&target(), save, part, 6).expect("a part");
}

#[test]
#[ignore = "never finishes its part; started by another test"]
fn child_that_is_killed_in_its_part() {
    let save = env::var(SAVE).expect("an id").parse().expect("an id");
    let part = Part::new(save, 2, PARTS).expect("a part");
    let mut writer = options().create_part(target(), part).expect("a part");
    for number in 0.. {
        writer.add_bytes(&format!("endless-{number}"), &spec(100), &[0; 100]).expect("a tensor");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
#[ignore = "saves in parts until it is killed; started by another test"]
fn child_that_merges_for_ever() {
    for fill in (1..=255).cycle() {
        let id = SaveId::random();
        (0..PARTS).for_each(|part| save_part(&target(), id, part, fill).expect("a part"));
        merge(target(), id, &options()).expect("a state");
    }
}

fn parts(directory: &Path) -> usize {
    fs::read_dir(directory.join("a.sds.parts")).map_or(0, |entries| entries.count())
}

/// Four processes save their parts of one state; process `broken` is killed during the save.
fn save_together(path: &Path, save: SaveId, broken: Option<u32>) {
    let children: Vec<_> = (0..PARTS)
        .map(|part| {
            let test = match broken == Some(part) {
                true => "child_that_is_killed_in_its_part",
                false => "child_that_saves_a_part",
            };
            (part, child(test, path, &format!("export {SAVE}={save} {PART}={part};")))
        })
        .collect();
    for (part, mut child) in children {
        if broken == Some(part) {
            // Waits until the save has begun.
            while !has_partial(path) {
                thread::sleep(Duration::from_millis(5));
            }
            child.kill().expect("a kill");
        }
        let status = child.wait().expect("an end");
        assert_eq!(status.success(), broken != Some(part));
    }
}

fn has_partial(path: &Path) -> bool {
    let parts = path.with_file_name("a.sds.parts");
    let entries = fs::read_dir(parts).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().contains("-000002-of"))
}

#[test]
fn state_of_four_processes_appears_once_all_have_saved() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.sds");
    for old in [false, true] {
        if old {
            save(&path, 5).expect("a save");
        }
        let first = SaveId::random();
        save_together(&path, first, Some(2));
        let error = merge(&path, first, &options()).expect_err("a part is missing");
        assert!(
            matches!(error, Error::IncompleteSave { found: 3, first_missing: 2, .. }),
            "{error}"
        );
        assert_eq!(path.exists(), old);
        if old {
            assert_eq!(fill(&path), 5);
        }
        assert!(parts(directory.path()) >= 3);
        let second = SaveId::random();
        save_together(&path, second, None);
        merge(&path, second, &options()).expect("a state");
        assert_eq!(fill(&path), 6);
        assert_eq!(parts(directory.path()), 4, "what the first attempt left has gone");
    }
}

#[test]
fn a_kill_while_parts_are_saved_and_merged_leaves_a_whole_state() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.sds");
    save(&path, 0).expect("a save");
    let rounds = env::var("SERDES_TEST_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    for round in 0..rounds {
        let mut child = child("child_that_merges_for_ever", &path, "");
        thread::sleep(Duration::from_millis(20 + round * 7 % 41));
        child.kill().expect("a kill");
        child.wait().expect("an end");
        fill(&path);
    }
    let id = SaveId::random();
    (0..PARTS).for_each(|part| save_part(&path, id, part, 7).expect("a part"));
    merge(&path, id, &options()).expect("a state");
    assert_eq!(fill(&path), 7);
    assert_eq!((files(directory.path()), parts(directory.path())), (2, 4));
}

#[test]
fn a_full_disk_under_a_part_or_the_index_leaves_the_old_state() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.sds");
    save(&path, 5).expect("a save");
    let id = SaveId::random();
    let before = format!("export {SAVE}={id} {PART}=1; trap '' XFSZ; ulimit -f 64;");
    let status = child("child_that_saves_a_part", &path, &before).wait().expect("an end");
    assert!(!status.success());
    assert_eq!(fill(&path), 5);
    assert_eq!(parts(directory.path()), 0);
}
