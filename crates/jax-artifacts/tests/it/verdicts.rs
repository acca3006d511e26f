//! Compares verdicts with those of twelve builds of jaxlib, which `tests/data/README.md` describes.
//!
//! `SERDES_JAX_CORPUS` names another folder of the same form.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use serdes_jax_artifacts::{Artifact, Kind, Options, Release, Verdict, sniff};

/// Returns the files of a corpus, each with its recorded verdicts.
fn corpus() -> Vec<(serde_json::Value, PathBuf)> {
    let folder = env::var_os("SERDES_JAX_CORPUS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"), PathBuf::from);
    let lines = fs::read_to_string(folder.join("verdicts.jsonl")).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap());
    lines
        .map(|line: serde_json::Value| {
            let path = folder.join("files").join(line["name"].as_str().unwrap());
            (line, path)
        })
        .collect()
}

fn kind(line: &serde_json::Value) -> Kind {
    if line["kind"] == "stablehlo" { Kind::StableHlo } else { Kind::JaxExport }
}

#[test]
fn judge_says_what_each_build_says() {
    let options = Options::new();
    let (mut compared, mut apart, mut wrong) = (0, BTreeMap::new(), Vec::new());
    for (line, path) in corpus() {
        let bytes = fs::read(&path).unwrap();
        let artifact = Artifact::with_kind(kind(&line), &bytes);
        for (build, seen) in line["verdicts"].as_object().unwrap() {
            let seen = &line["seen"][seen.as_u64().unwrap() as usize];
            let release = Release::find(build).unwrap();
            let judgement = artifact.judge(release, &options);
            let is_accepted = seen["verdict"] == "accepted";
            if let Some(why) = seen["apart"].as_str() {
                *apart
                    .entry((why.to_owned(), is_accepted, judgement.is_acceptable()))
                    .or_insert(0) += 1;
                continue;
            }
            compared += 1;
            if judgement.is_acceptable() != is_accepted {
                let reasons: Vec<_> = judgement.reasons.iter().map(ToString::to_string).collect();
                wrong
                    .push(format!("{}: {build} says {seen}, and here {reasons:?}", path.display()));
            }
            assert_eq!(judgement.is_acceptable(), judgement.reasons.is_empty());
        }
    }
    println!("{compared} verdicts compared, {} wrong, apart: {apart:?}", wrong.len());
    assert!(wrong.is_empty(), "{} of {compared} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 1000, "{compared}");
}

#[test]
fn sniff_tells_whole_files_by_their_content() {
    let mut told = 0;
    for (line, path) in corpus() {
        let bytes = fs::read(&path).unwrap();
        if line["broken"].is_null() && !bytes.is_empty() {
            assert_eq!(sniff(&bytes), Some(kind(&line)), "{}", path.display());
            told += 1;
        }
    }
    assert!(told > 50);
}

#[test]
fn judge_finds_whole_files_readable_by_somebody() {
    for (line, path) in corpus().into_iter().filter(|(line, _)| line["broken"].is_null()) {
        let bytes = fs::read(&path).unwrap();
        let judgement =
            Artifact::with_kind(kind(&line), &bytes).judge(Release::latest(), &Options::new());
        assert_ne!(judgement.verdict, Verdict::Unreadable, "{}: {judgement:?}", path.display());
    }
}
