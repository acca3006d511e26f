//! Saves that are killed, or run out of space, leave the old state or the new one.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use serdes::{
    device_state::{Error, Reader, Sync, Watch, WriteOptions},
    ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding},
    version::SerDesVersion,
};

const TENSORS: i64 = 8;
const BYTES: usize = 512 << 10;
/// Where a child of these tests saves.
const TARGET: &str = "SERDES_TEST_SAVE_TO";

fn save(path: &Path, fill: u8) -> Result<(), Error> {
    let options = WriteOptions::new(SerDesVersion::current()).with_sync(Sync::None);
    let mut writer = options.create(path)?;
    let shape = Shape::new([BYTES as i64]).expect("a shape");
    let spec = ArraySpec::new(DType::U8, shape, SingleDeviceSharding::new(DeviceId(0)));
    for number in 0..TENSORS {
        writer.add_bytes(&format!("t{number}"), &spec, &vec![fill; BYTES])?;
    }
    writer.finish().map(drop)
}

/// Runs one of the ignored tests of this file in a process of its own, in which `sh` does `before`.
fn child(test: &str, target: &Path, before: &str) -> Child {
    Command::new("sh")
        .args(["-c", &format!("{before} exec \"$0\" --ignored --exact {test}")])
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

/// The byte that all tensors of a whole state are made of.
fn fill(path: &Path) -> u8 {
    let state = Reader::open(path).expect("a state");
    assert!(state.verify(&Watch::new()).expect("a readable state").is_empty());
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
fn a_kill_at_any_moment_leaves_a_whole_state_and_the_next_save_cleans_up() {
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
