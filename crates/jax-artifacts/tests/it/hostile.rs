//! Tests that no untrusted bytes cause a panic: every truncation, changed bytes, arbitrary bytes.

use std::{fs, path::Path};

use proptest::prelude::*;
use serdes_jax_artifacts::{Artifact, Kind, Options, Release, sniff};

fn files() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/files");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    files
}

fn kind(name: &str) -> Kind {
    if name.ends_with(".mlirbc") { Kind::StableHlo } else { Kind::JaxExport }
}

/// Judges bytes as both kinds, and calls every accessor.
fn look(bytes: &[u8], kind: Kind) {
    let _ = sniff(bytes);
    let options = Options::new();
    let artifact = Artifact::with_kind(kind, bytes);
    for version in ["0.8.0", "0.10.0", "latest"] {
        let judgement = artifact.judge(Release::find(version).unwrap(), &options);
        assert_eq!(judgement.is_acceptable(), judgement.reasons.is_empty());
    }
    let inspection = artifact.inspect(&options);
    assert_eq!(inspection.bytes, bytes.len());
}

#[test]
fn judge_refuses_every_cut_of_a_file_or_reads_what_is_left() {
    for (name, bytes) in files().into_iter().step_by(23) {
        for end in 0..bytes.len().min(3000) {
            look(&bytes[..end], kind(&name));
        }
    }
}

#[test]
fn cut_modules_are_never_acceptable() {
    for (name, bytes) in files().into_iter().filter(|(name, _)| name.ends_with(".mlirbc")) {
        if name.contains('+') {
            continue;
        }
        for end in (0..bytes.len()).step_by(7) {
            let artifact = Artifact::with_kind(Kind::StableHlo, &bytes[..end]);
            let judgement = artifact.judge(Release::latest(), &Options::new());
            assert!(!judgement.is_acceptable(), "{name} cut to {end}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn look_takes_changed_bytes(
        file in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let files = files_once();
        let (name, bytes) = file.get(files);
        let mut bytes = bytes.clone();
        for (at, value) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
        }
        look(&bytes, kind(name));
    }

    #[test]
    fn look_takes_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..600), with_magic: bool) {
        look(&bytes, Kind::JaxExport);
        let mut module = if with_magic { b"ML\xefR\x0dStableHLO_v1.0.0\0".to_vec() } else { Vec::new() };
        module.extend(bytes);
        look(&module, Kind::StableHlo);
    }
}

fn files_once() -> &'static [(String, Vec<u8>)] {
    static FILES: std::sync::OnceLock<Vec<(String, Vec<u8>)>> = std::sync::OnceLock::new();
    FILES.get_or_init(files)
}
