//! Tests of `serdes explain`: rules and behaviours.

use crate::testkit::{objects, printed, serdes, status};

#[test]
fn rules_are_explained_and_bad_usage_is_told() {
    for rule in objects(&serdes(&["explain", "--json"])) {
        let id = rule["rule"].as_str().unwrap();
        assert_eq!(status(&serdes(&["explain", id])), 0, "{id}");
    }
    for arguments in [&["explain", "no_such_rule"][..], &["save"], &["no-such-command"], &[]] {
        assert_eq!(status(&serdes(arguments)), 2, "{arguments:?}");
    }
    for arguments in [
        &["inspect", "absent", "--json"][..],
        &["save", "--json"],
        &["save", "--from", "a", "-o", "b", "--serdes-version", "-1", "--json"],
    ] {
        let error = serdes(arguments);
        assert_eq!(status(&error), 2, "{arguments:?}");
        assert!(objects(&error)[0]["error"].is_string(), "{arguments:?}");
    }
    let absent = &objects(&serdes(&["check", "absent", "--json"]))[0]["reasons"][0];
    assert_ne!(absent["remedy"], "");
    assert_eq!(status(&serdes(&["--version"])), 0);
}

#[test]
fn rule_is_explained_in_any_case_or_a_similar_one_suggested() {
    for rule in ["other_kind", "empty", "MIN_CONSUMER", "Min-Consumer"] {
        assert_eq!(status(&serdes(&["explain", rule])), 0, "{rule}");
    }
    let output = serdes(&["explain", "min_consumr"]);
    assert_eq!(status(&output), 2);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("did you mean min_consumer?"), "{error}");
}

#[test]
fn a_behaviour_that_was_probably_meant_is_suggested() {
    for (found, meant) in [("memcpy_dthh", "memcpy_dtoh"), ("PJRT-puts", "pjrt_put")] {
        let output = serdes(&["explain", found]);
        assert_eq!(status(&output), 2);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(&format!("did you mean {meant}?")), "{error}");
    }
}

#[test]
fn behaviour_says_what_counts_as_a_failure() {
    let said = printed(&serdes(&["explain", "pjrt_compile"]));
    assert!(said.contains("`unsupported`") && said.contains("is no failure"), "{said}");
    let said = printed(&serdes(&["explain", "pjrt_no_program"]));
    assert!(said.contains("--level robust"), "{said}");
}
