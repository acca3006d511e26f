//! Tests that the steps in `docs/contributing` for a new rule, callback, request and format of tensor
//! files are complete: the edits fit the sources, the edited copy compiles without a warning, and the tests
//! that the pages name pass.

use std::{fs::OpenOptions, io::Write, path::Path, process::Command};

use serdes_testkit::{
    copies::{cargo, workplace},
    pages::{Block, apply, blocks_of_page, copy_sources},
    protos,
};

use crate::scratch;

/// The sources, and the folders that their tests include.
const DIRECTORIES: [&str; 7] = ["src", "proto", "crates", "include", "tests", "docs", "fuzz"];

/// Packages under test: the library, the proxy, the host of plug-ins, files of tensors, verdicts, and
/// the layouts of the C API.
const TESTED: [&[&str]; 6] = [
    &["-p", "serdes", "--lib", "--test", "stream_executor"],
    &["-p", "serdes-proxy", "--lib"],
    &["-p", "serdes-stream-executor", "--lib"],
    &["-p", "serdes-tensors", "--lib"],
    &["-p", "serdes-check", "--test", "it"],
    &["-p", "serdes-abi", "--all-features"],
];

/// Modules with the tests of the examples, and with tests of every rule, every function of a
/// plug-in and every request.
const TESTS: [&str; 10] = [
    "server::tests::session::",
    "server::requests::tests::",
    "rules::",
    "raw_vector::",
    "check_kinds::",
    "requirements::tests::",
    "loaded::behaviour::a_device_says",
    "loaded::conformance::plugin_without_fault_switches_conforms",
    "has_the_layouts",
    "every_layout_is_the_measured_one",
];

/// One test of each of these modules, which must have been run.
const NAMED_BY_THE_PAGES: [&str; 10] = [
    "server::tests::session::the_sum_of_an_array_is_an_array_of_one_number",
    "server::requests::tests::every_request_is_answered_though_it_says_nothing",
    "server::requests::tests::failed_request_leaves_its_error_under_its_results",
    "rules::every_rule_has_an_artifact_that_it_is_about",
    "raw_vector::tests::raw_vector_is_read_back_as_it_was_written",
    "check_kinds::every_kind_is_told_by_its_name_by_any_name_and_without_one",
    "load::requirements::tests::every_function_of_every_layout_is_told_when_it_is_missing",
    "loaded::behaviour::a_device_says_how_many_watts_it_takes_at_most",
    "header::the_c_header_has_the_layouts_of_the_rust_types",
    "layout_data::every_layout_is_the_measured_one",
];

fn append(file: &Path, text: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(file).unwrap();
    write!(file, "\n{text}").unwrap();
}

/// Makes the edits of a page, and the artifacts that its commands create.
fn follow(page: &str, serdes: &Path) {
    for Block { language, subject, text } in blocks_of_page(page) {
        let file = subject.first().map(|file| serdes.join(file));
        match (language.as_str(), file) {
            ("diff", Some(file)) => apply(&file, &text),
            ("rust" | "proto", Some(file)) => append(&file, &text),
            ("console", None) => {
                for command in text.lines().filter_map(|line| line.strip_prefix("$ printf")) {
                    let mut shell = Command::new("sh");
                    shell.args(["-c", &format!("printf{command}")]).current_dir(serdes);
                    assert!(shell.status().unwrap().success(), "{command}");
                }
            }
            other => panic!("{other:?}: neither an edit nor commands"),
        }
    }
}

#[test]
#[ignore = "compiles a copy of the sources; `.ci/run copies` runs it"]
fn pages_add_a_rule_a_callback_a_request_and_a_format() {
    let serdes = workplace(scratch(), "contributing").join("serdes");
    copy_sources(&serdes, &DIRECTORIES);
    for page in ["rule", "callback", "request", "tensor-format"] {
        follow(&format!("docs/contributing/{page}.md"), &serdes);
    }
    protos::write(&serdes, &protos::generate(&serdes));

    let mut passed = String::new();
    for tested in TESTED {
        let output = cargo(scratch())
            .arg("test")
            .args(tested)
            .arg("--")
            .args(TESTS)
            .env("SERDES_REGENERATE_RULES", "1")
            .current_dir(&serdes)
            .output()
            .unwrap();
        let [said, errors] =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(output.status.success(), "{errors}{said}");
        assert!(!errors.contains("warning"), "{errors}");
        passed.push_str(&said);
    }
    for test in NAMED_BY_THE_PAGES {
        assert!(passed.contains(&format!("test {test} ... ok")), "{test}: {passed}");
    }
}
