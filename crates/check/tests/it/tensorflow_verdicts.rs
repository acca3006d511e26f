//! Tests that every artifact of the corpus gets the verdict of TensorFlow 2.21, as far as this
//! crate judges the reason.

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;
use serdes_check::{self as check, Consumer, Loader, Options, Outcome, Verdict};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/tensorflow");

/// Returns true if the recorded verdict of `operation` counts for artifacts of `kind`.
fn decides(kind: &str, operation: &str) -> bool {
    matches!(
        (kind, operation),
        ("graphdef", "capi_import")
            | ("graphdef_text", "import_text")
            | ("meta_graph", "import_meta")
            | ("saved_model", "load_v1")
    )
}

fn records() -> Vec<Value> {
    let text = std::fs::read_to_string(Path::new(DATA).join("verdicts.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text<'v>(record: &'v Value, field: &str) -> &'v str {
    record[field].as_str().unwrap_or_default()
}

fn check(record: &Value, consumer: &Consumer) -> Verdict {
    let mut options = Options::for_consumer(consumer.clone());
    if let Some(tags) = record["props"]["tags"].as_array() {
        options = options.with_tags(tags.iter().map(|tag| tag.as_str().unwrap().to_owned()));
    }
    check::all(Path::new(DATA).join(text(record, "path")), &options).next().unwrap().unwrap()
}

#[test]
fn every_graph_of_the_corpus_gets_tensorflows_verdict() {
    let consumer = Consumer::tensorflow("2.21").unwrap();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for record in
        records().iter().filter(|record| decides(text(record, "kind"), text(record, "op")))
    {
        let verdict = check(record, &consumer);
        let reason = text(record, "reason");
        *seen.entry(reason.to_owned()).or_default() += 1;
        let expected = match (text(record, "verdict"), reason) {
            ("accept", _) => (Outcome::Acceptable, None),
            (_, "version_producer_too_old") => (Outcome::Unacceptable, Some("producer_too_old")),
            (_, "version_min_consumer") => (Outcome::Unacceptable, Some("min_consumer")),
            (_, "version_bad_consumer") => (Outcome::Unacceptable, Some("bad_consumer")),
            (_, "op_deprecated") => (Outcome::Unacceptable, Some("deprecated_op")),
            // A valid file of another kind, although no parser of graphs accepts it.
            (_, "parse") if text(record, "id") == "gzip_of_graph" => {
                (Outcome::Unreadable, Some("other_kind"))
            }
            (_, "parse" | "parse_text") => (Outcome::Unreadable, Some("corrupt")),
            (_, "graph_structure") => (Outcome::Unreadable, Some("corrupt")),
            (_, "tags") => (Outcome::Unreadable, Some("not_found")),
            (_, "missing_file") => (Outcome::Unreadable, Some("not_found")),
            // Only TensorFlow's registry knows whether an operation exists and which attributes it
            // has.
            (_, "op_unknown" | "node_attr") => continue,
            other => panic!("no expectation for {other:?}"),
        };
        let found = (verdict.outcome(), verdict.reasons().first().map(|reason| reason.rule.id()));
        if found != expected {
            wrong.push(format!(
                "{}: {found:?} instead of {expected:?}: {verdict}",
                text(record, "id")
            ));
        }
        if let Some(operation) = record["names"]["op"].as_str()
            && reason == "op_deprecated"
        {
            let first = &verdict.reasons()[0];
            assert!(first.message.contains(operation), "{first}");
            assert!(first.message.contains(&record["names"]["producer"].to_string()), "{first}");
            assert!(first.message.contains(&record["names"]["removed_in"].to_string()), "{first}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen["op_deprecated"] > 40 && seen["parse"] > 15 && seen[""] > 90, "{seen:?}");
}

#[test]
fn every_checkpoint_of_the_corpus_gets_tensorflows_verdict() {
    let mut wrong = Vec::new();
    let (mut opened, mut restored) = (0, 0);
    for record in records() {
        let verify_data = match (text(&record, "kind"), text(&record, "op")) {
            ("ckpt_v1" | "ckpt_v2", "open") => false,
            ("ckpt_v1" | "ckpt_v2", "restore_v2") => true,
            _ => continue,
        };
        let options = Options::default().with_verify_data(verify_data);
        let path = Path::new(DATA).join(text(&record, "path"));
        let verdict = check::all(path, &options).next().unwrap().unwrap();
        let expected = match (text(&record, "verdict"), text(&record, "reason")) {
            ("accept", _) => (Outcome::Acceptable, None),
            // Where the real reader aborts the process, opening works here, and the tensor is
            // refused.
            ("crash", _) if !verify_data => (Outcome::Acceptable, None),
            (_, "version_producer_too_old") => (Outcome::Unacceptable, Some("producer_too_old")),
            (_, "version_min_consumer") => (Outcome::Unacceptable, Some("min_consumer")),
            (_, "version_bad_consumer") => (Outcome::Unacceptable, Some("bad_consumer")),
            (_, "missing_file") => (Outcome::Unreadable, Some("not_found")),
            // The recorded operation restores tensors by their expected names and types; the
            // checkpoint itself has every tensor that it lists.
            (_, "missing_tensor") => continue,
            (_, "entry_dtype") => continue,
            _ => (Outcome::Unreadable, Some("corrupt")),
        };
        let found = (verdict.outcome(), verdict.reasons().first().map(|reason| reason.rule.id()));
        if found != expected {
            wrong.push(format!(
                "{} {}: {found:?} instead of {expected:?}: {verdict}",
                text(&record, "id"),
                text(&record, "op")
            ));
        }
        *(if verify_data { &mut restored } else { &mut opened }) += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(opened > 70 && restored > 60, "{opened} {restored}");
}

fn verdicts(path: &Path) -> Vec<Verdict> {
    check::all(path, &Options::default()).map(Result::unwrap).collect()
}

fn worst(verdicts: &[Verdict]) -> Option<Outcome> {
    verdicts.iter().map(Verdict::outcome).max()
}

#[test]
fn a_directory_is_walked_and_every_artifact_in_it_judged() {
    let models = verdicts(&Path::new(DATA).join("sm"));
    assert_eq!(models.len(), 23);
    assert!(models.windows(2).all(|pair| pair[0].path < pair[1].path));
    assert_eq!(worst(&models), Some(Outcome::Unreadable));
    let verdicts = verdicts(&Path::new(DATA).join("ckpt/saver_v2"));
    let kinds: Vec<_> = verdicts.iter().map(|verdict| verdict.kind.unwrap().id()).collect();
    assert_eq!(kinds, ["tensor_bundle", "meta_graph"]);
    assert_eq!(worst(&verdicts), Some(Outcome::Acceptable), "{verdicts:?}");
}

/// Uses a model that TensorFlow 2.21 exported, with a `MutableHashTable` as `table`: 2.12.0 refuses
/// to load it, and 2.13.1, 2.14.1, 2.15.1, 2.16.2 and 2.21.0 accept it.
#[test]
fn an_object_that_a_release_cannot_save_is_named() {
    let path = Path::new(DATA).join("objects/mutable_table");
    for (release, rule) in [("2.12", Some("input_type")), ("2.13", None), ("2.21", None)] {
        let consumer = Consumer::tensorflow(release).unwrap();
        for loader in [Loader::Load, Loader::LoadV1] {
            let options = Options::for_consumer(consumer.clone()).with_loader(loader);
            let verdict = check::all(&path, &options).next().unwrap().unwrap();
            let found = verdict.reasons().first();
            let expected = rule.filter(|_| loader == Loader::Load);
            assert_eq!(found.map(|reason| reason.rule.id()), expected, "{release}: {verdict}");
            if let Some(reason) = found {
                assert_eq!(reason.place.as_deref(), Some("object root.table"), "{reason}");
                assert!(reason.message.contains("TensorFlow 2.13 is the first"), "{reason}");
            }
        }
    }
}

#[test]
fn a_path_without_an_artifact_is_not_found() {
    let empty = tempfile::tempdir().unwrap();
    std::fs::write(empty.path().join("notes.txt"), "nothing").unwrap();
    for path in [
        empty.path().to_owned(),
        empty.path().join("nothing"),
        empty.path().join("x.ckpt-?????-of-00001"),
    ] {
        let verdicts = verdicts(&path);
        assert_eq!(verdicts.len(), 1, "{path:?}");
        assert_eq!(verdicts[0].reasons()[0].rule.id(), "not_found", "{}", verdicts[0]);
        assert_eq!(worst(&verdicts), Some(Outcome::Unreadable));
    }
}
