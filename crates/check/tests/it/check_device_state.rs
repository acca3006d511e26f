//! Tests of verdicts on device states through the crate's entry point.

use std::path::Path;

use serdes::ifrt::{
    ArraySpec, DType, DeviceId, MemoryKind, Shape, Sharding, ShardingParamSharding,
    SingleDeviceSharding,
};
use serdes_check::{self as check, Consumer, Kind, Options, Outcome, Verdict};
use serdes_device_state::{Versions, WriteOptions};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/device_state");

#[test]
fn golden_state_is_acceptable_and_flipped_bytes_are_found() {
    let path = Path::new(GOLDEN).join("v0/small.sds");
    let options = Options::default().with_verify_data(true);
    let verdict = check::all(&path, &options).next().unwrap().unwrap();
    assert_eq!(verdict.outcome(), Outcome::Acceptable, "{verdict}");
    assert_eq!(verdict.kind, Some(Kind::DeviceState));
    assert!(!check::path(&path).unwrap().inspect().unwrap().tensors.is_empty());
    let bytes = std::fs::read(&path).unwrap();
    for position in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[position] ^= 0x10;
        let artifact = check::reader(&damaged[..], Some(Kind::DeviceState)).unwrap();
        assert!(!artifact.check(&options).unwrap().is_acceptable(), "byte {position}");
    }
}

#[test]
fn a_state_of_a_later_format_is_too_new_and_never_corrupt() {
    let artifact = check::path(Path::new(GOLDEN).join("future.sds")).unwrap();
    let verdict = artifact.check(&Options::default()).unwrap();
    assert_eq!(verdict.outcome(), Outcome::Unacceptable, "{verdict}");
    assert_eq!(verdict.reasons()[0].rule.id(), "too_new");
}

/// Writes a state that was requested at the IFRT number 6, with `plain` tensors that every build
/// reads, and `sharded` ones whose sharding needs number 1.
fn state(path: &Path, plain: usize, sharded: bool) {
    let spec = |sharding: Sharding| ArraySpec::new(DType::F32, Shape::new([6]).unwrap(), sharding);
    let options = WriteOptions::new(Versions::from_numbers(0, 6).unwrap());
    let mut writer = options.create(path).unwrap();
    for number in 0..plain {
        let sharding = SingleDeviceSharding::new(DeviceId(0));
        let name = format!("plain-{number:06}");
        writer.add_bytes(&name, &spec(sharding.into()), &[0; 24]).unwrap();
    }
    if sharded {
        let param = "1 to [0,1] on 1x1 unreduced [1]".parse().unwrap();
        let sharding = ShardingParamSharding::new(param, [0].into(), MemoryKind::unset()).unwrap();
        writer.add_bytes("sharded", &spec(sharding.into()), &[0; 24]).unwrap();
    }
    writer.finish().unwrap();
}

fn for_ifrt(path: &Path, number: i32) -> Verdict {
    let consumer = Consumer::newest().with(&format!("ifrt_serdes={number}")).unwrap();
    check::path(path).unwrap().for_consumer(&consumer)
}

fn recorded(path: &Path) -> i64 {
    let inspection = check::path(path).unwrap().inspect().unwrap();
    let specs = inspection.nested.iter().find(|nested| nested.type_name == "ifrt_serdes").unwrap();
    specs.recorded.unwrap()
}

#[test]
fn state_is_judged_by_the_versions_that_its_specs_record() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plain.sds");
    state(&path, 3, false);
    assert_eq!(recorded(&path), 0);
    for number in 0..=6 {
        let verdict = for_ifrt(&path, number);
        assert!(verdict.is_acceptable(), "{number}: {verdict}");
    }
    let path = directory.path().join("sharded.sds");
    state(&path, 3, true);
    assert_eq!(recorded(&path), 1);
    assert!(for_ifrt(&path, 1).is_acceptable());
    let verdict = for_ifrt(&path, 0);
    let [reason] = verdict.reasons() else { panic!("{verdict}") };
    assert_eq!(reason.rule.id(), "too_new");
    assert_eq!((reason.found.as_deref(), reason.expected.as_deref()), (Some("1"), Some("<= 0")));
    assert_eq!(reason.place.as_deref(), Some("sharded"));
}

#[test]
fn many_arrays_have_one_reason_where_the_spec_of_one_is_too_new() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("many.sds");
    state(&path, 2000, true);
    let verdict = for_ifrt(&path, 0);
    assert_eq!(verdict.reasons().len(), 1, "{verdict}");
    assert!(for_ifrt(&path, 6).is_acceptable());
}

#[test]
fn an_empty_file_called_a_state_is_an_unreadable_state() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.sds");
    std::fs::write(&path, b"").unwrap();
    let verdict = check::path(&path).unwrap().check(&Options::default()).unwrap();
    assert_eq!((verdict.kind, verdict.outcome()), (Some(Kind::DeviceState), Outcome::Unreadable));
    assert_eq!(verdict.reasons()[0].rule.id(), "corrupt");
}

#[test]
fn a_state_of_several_savers_is_judged_with_its_parts() {
    let options = Options::default().with_verify_data(true);
    let golden = Path::new(GOLDEN).join("v0");
    for verdict in check::all(&golden, &options).map(Result::unwrap) {
        assert_eq!(verdict.outcome(), Outcome::Acceptable, "{verdict}");
    }
    let artifact = check::path(golden.join("merged.sds")).unwrap();
    assert_eq!(artifact.inspect().unwrap().tensors.len(), 4);
    // Only the index, and a state with a damaged part.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("merged.sds");
    std::fs::copy(golden.join("merged.sds"), &path).unwrap();
    let verdict = check::path(&path).unwrap().check(&options).unwrap();
    assert_eq!(verdict.outcome(), Outcome::Unreadable, "{verdict}");
    assert_eq!(verdict.reasons()[0].rule.id(), "not_found");
    let parts = directory.path().join("merged.sds.parts");
    std::fs::create_dir(&parts).unwrap();
    for entry in std::fs::read_dir(golden.join("merged.sds.parts")).unwrap() {
        let entry = entry.unwrap();
        let mut bytes = std::fs::read(entry.path()).unwrap();
        // This byte is in the writer's release, which is neither data nor checked by opening.
        bytes[60] ^= 1;
        std::fs::write(parts.join(entry.file_name()), bytes).unwrap();
    }
    let verdict = check::path(&path).unwrap().check(&Options::default()).unwrap();
    assert_eq!(verdict.outcome(), Outcome::Acceptable, "{verdict}");
    let verdict = check::path(&path).unwrap().check(&options).unwrap();
    assert_eq!(verdict.outcome(), Outcome::Unreadable, "{verdict}");
    assert_eq!(verdict.reasons()[0].rule.id(), "corrupt");
}
