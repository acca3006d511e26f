//! Tests of `serdes ops`: listing, showing and comparing operations.

use crate::testkit::{objects, serdes, status};

#[test]
fn a_release_lists_each_of_its_operations_once() {
    for (release, count) in [("2.12", 1838), ("2.16.2", 1884), ("2.21", 1908)] {
        let output = serdes(&["ops", release, "--json"]);
        assert_eq!(output.status.code(), Some(0));
        let objects = objects(&output);
        assert_eq!(objects.len(), count);
        assert!(objects.iter().all(|object| object["name"].is_string()));
    }
}

#[test]
fn later_operation_is_refused_with_its_releases() {
    let output = serdes(&["ops", "2.12", "Conv", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let error = objects(&output)[0]["error"].as_str().unwrap().to_owned();
    assert!(error.contains("2.14 to 2.21"), "{error}");
    assert_eq!(serdes(&["ops", "2.14", "Conv"]).status.code(), Some(0));
}

#[test]
fn a_name_in_another_case_is_answered_with_the_right_one() {
    let output = serdes(&["ops", "2.21", "matmul"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("did you mean MatMul?"), "{text}");
}

#[test]
fn an_operation_shows_its_signature_and_what_changed() {
    let output = serdes(&["ops", "2.12", "MatMul"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("MatMul(a: T, b: T) -> (product: T)\n"), "{text}");
    assert!(text.contains("    transpose_a: bool = false\n"), "{text}");
    assert!(text.contains("  2.16: attribute grad_a: added, bool = false\n"), "{text}");
}

#[test]
fn an_attribute_shows_from_which_release_on_it_is_there() {
    let output = serdes(&["ops", "2.21", "MatMul"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("    grad_a: bool = false  (since 2.16)\n"), "{text}");
    assert!(text.contains("    transpose_a: bool = false\n"), "{text}");
    let object = &objects(&serdes(&["ops", "2.13", "CopyToMesh", "--json"]))[0];
    let attribute = &object["attrs"][0];
    assert_eq!(
        (&attribute["name"], &attribute["last_release"]),
        (&"layout".into(), &"2.13".into())
    );
    // The output is a list of operations, with additional fields.
    assert_eq!(object["first_release"], "2.12");
}

#[test]
fn two_releases_are_compared_both_ways() {
    let changes = |old, new| {
        let objects = objects(&serdes(&["ops", old, new, "--json"]));
        let of = |change: &str| {
            objects
                .iter()
                .filter(|object| object["change"] == change)
                .map(|object| object["name"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        (of("added"), of("removed"), of("changed"))
    };
    let (added, removed, changed) = changes("2.13", "2.14");
    assert!(added.contains(&"Conv".to_owned()));
    assert!(removed.contains(&"RelayoutGrad".to_owned()));
    assert!(changed.contains(&"ConcatOffset".to_owned()));
    assert_eq!(changes("2.14", "2.13"), (removed, added, changed));
    assert_eq!(changes("2.12", "2.12.1"), Default::default());
}

#[test]
fn a_release_that_is_not_known_is_bad_usage_with_those_that_are() {
    for arguments in [&["ops", "2.11"][..], &["ops", "2.12", "3.0"]] {
        let output = serdes(arguments);
        assert_eq!(output.status.code(), Some(2));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("2.12, 2.13"), "{text}");
    }
    assert_eq!(serdes(&["ops"]).status.code(), Some(2));
}

#[test]
fn a_name_that_is_nearly_right_is_answered_with_the_right_one() {
    let output = serdes(&["ops", "2.16", "MatMull"]);
    assert_eq!(status(&output), 1);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("did you mean MatMul?"), "{error}");
}

#[test]
fn the_newest_release_has_a_name_of_its_own() {
    let of = |release: &str| serdes(&["ops", release, "MatMul", "--json"]).stdout;
    assert_eq!(of("latest"), of("2.21"));
    assert_eq!(status(&serdes(&["ops", "2.20", "latest"])), 0);
}
