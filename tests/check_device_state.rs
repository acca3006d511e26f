//! Verdicts on device states through the one door.

use std::path::Path;

use serdes::check::{self, Consumer, Kind, Options, Outcome};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/device_state");

#[test]
fn a_golden_state_is_acceptable_and_every_flipped_byte_of_it_is_noticed() {
    let path = Path::new(GOLDEN).join("v0/small.sds");
    let mut options = Options::default();
    options.verify_data = true;
    let verdict = check::all(&path, &options).next().unwrap();
    assert_eq!(verdict.outcome(), Outcome::Acceptable, "{verdict}");
    assert_eq!(verdict.kind, Some(Kind::DeviceState));
    assert!(!check::path(&path).unwrap().inspect().unwrap().tensors.is_empty());
    let bytes = std::fs::read(&path).unwrap();
    for position in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[position] ^= 0x10;
        let artifact = check::reader(&damaged[..], Some(Kind::DeviceState)).unwrap();
        assert!(!artifact.check(&options).is_acceptable(), "byte {position}");
    }
}

#[test]
fn a_state_of_a_later_format_is_too_new_and_never_corrupt() {
    let verdict =
        check::path(Path::new(GOLDEN).join("future.sds")).unwrap().check(&Options::default());
    assert_eq!(verdict.outcome(), Outcome::Unacceptable, "{verdict}");
    assert_eq!(verdict.reasons()[0].rule.id(), "too_new");
    assert_eq!(check::exit_status([&verdict]), 1);
}

#[test]
fn a_consumer_of_older_specs_does_not_take_a_newer_state() {
    let artifact = check::path(Path::new(GOLDEN).join("v0/small.sds")).unwrap();
    let written =
        artifact.inspect().unwrap().nested.iter().find_map(|nested| {
            (nested.type_name == "ifrt_serdes").then_some(nested.recorded.unwrap())
        });
    let older = i32::try_from(written.unwrap()).unwrap() - 1;
    if older >= 0 {
        let consumer = Consumer::newest().with(&format!("ifrt_serdes={older}")).unwrap();
        let verdict = artifact.for_consumer(&consumer);
        assert_eq!(verdict.reasons()[0].rule.id(), "too_new", "{verdict}");
    }
}

#[test]
fn an_empty_file_called_a_state_is_an_unreadable_state() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.sds");
    std::fs::write(&path, b"").unwrap();
    let verdict = check::path(&path).unwrap().check(&Options::default());
    assert_eq!((verdict.kind, verdict.outcome()), (Some(Kind::DeviceState), Outcome::Unreadable));
    assert_eq!(verdict.reasons()[0].rule.id(), "corrupt");
}

#[test]
fn a_state_of_several_savers_is_judged_with_its_parts() {
    let mut options = Options::default();
    options.verify_data = true;
    let golden = Path::new(GOLDEN).join("v0");
    for verdict in check::all(&golden, &options) {
        assert_eq!(verdict.outcome(), Outcome::Acceptable, "{verdict}");
    }
    let artifact = check::path(golden.join("merged.sds")).unwrap();
    assert_eq!(artifact.inspect().unwrap().tensors.len(), 4);
    // The index alone, and one with a damaged part.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("merged.sds");
    std::fs::copy(golden.join("merged.sds"), &path).unwrap();
    let verdict = check::path(&path).unwrap().check(&options);
    assert_eq!(verdict.outcome(), Outcome::Unreadable, "{verdict}");
    assert_eq!(verdict.reasons()[0].rule.id(), "not_found");
    let parts = directory.path().join("merged.sds.parts");
    std::fs::create_dir(&parts).unwrap();
    for entry in std::fs::read_dir(golden.join("merged.sds.parts")).unwrap() {
        let entry = entry.unwrap();
        let mut bytes = std::fs::read(entry.path()).unwrap();
        // In the release of the writer: neither data nor anything that opening reads.
        bytes[60] ^= 1;
        std::fs::write(parts.join(entry.file_name()), bytes).unwrap();
    }
    let verdict = check::path(&path).unwrap().check(&Options::default());
    assert_eq!(verdict.outcome(), Outcome::Acceptable, "{verdict}");
    let verdict = check::path(&path).unwrap().check(&options);
    assert_eq!(verdict.outcome(), Outcome::Unreadable, "{verdict}");
    assert_eq!(verdict.reasons()[0].rule.id(), "corrupt");
}
