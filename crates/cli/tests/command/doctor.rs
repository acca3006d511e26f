//! Tests of `serdes doctor`: the caller's environments, by path and by lock, and the output about
//! them.

use std::{fs, path::Path};

use crate::testkit::{command, objects, serdes, status};

fn install(environment: &Path, name: &str, version: &str) {
    let folder = environment
        .join("lib/python3.12/site-packages")
        .join(format!("{name}-{version}.dist-info"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("METADATA"), format!("Name: {name}\nVersion: {version}\n")).unwrap();
}

fn environment(packages: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("pyvenv.cfg"), "home = /nowhere\nversion = 3.12.4\n").unwrap();
    for (name, version) in packages {
        install(folder.path(), name, version);
    }
    folder
}

#[test]
fn doctor_names_the_cause_and_the_command_that_mends_it() {
    let folder = environment(&[("jax", "0.10.0"), ("jaxlib", "0.10.2")]);
    let output = serdes(&["doctor", "--env", folder.path().to_str().unwrap(), "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let object = &objects(&output)[0];
    assert_eq!(object["verdict"], "does_not_fit");
    assert_eq!(object["problems"][0]["rule"], "jaxlib_too_new");
    assert_eq!(object["problems"][0]["remedies"][0]["command"], "pip install 'jaxlib==0.10.0'");
    install(folder.path(), "jax", "0.10.2");
    fs::remove_dir_all(folder.path().join("lib/python3.12/site-packages/jax-0.10.0.dist-info"))
        .unwrap();
    let output = serdes(&["doctor", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().ends_with("everything fits\n"));
}

#[test]
fn doctor_takes_the_environment_of_the_caller() {
    let folder = environment(&[("jax", "0.10.2")]);
    let run = |set: bool| {
        let mut command = command();
        command
            .arg("doctor")
            .current_dir(folder.path())
            .env_remove("CONDA_PREFIX")
            .env_remove("VIRTUAL_ENV");
        if set {
            command.env("VIRTUAL_ENV", folder.path());
        }
        command.output().unwrap()
    };
    let output = run(true);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stdout).unwrap().contains("jaxlib_missing"));
    let output = run(false);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--env DIR"));
}

#[test]
fn doctor_says_of_a_damaged_lock_that_it_could_not_tell() {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("uv.lock");
    fs::write(&lock, "[[package]]\nname = 1\n").unwrap();
    assert_eq!(status(&serdes(&["doctor", "--lock", lock.to_str().unwrap()])), 2);
    fs::write(&lock, "[[package]]\nname = \"jax\"\nversion = \"99.0\"\n[[package]]\nname = \"jaxlib\"\nversion = \"99.0\"\n").unwrap();
    assert_eq!(status(&serdes(&["doctor", lock.to_str().unwrap()])), 2);
}

#[test]
fn doctor_writes_a_report_into_a_file_and_nothing_else() {
    let folder = environment(&[("jax", "0.10.0"), ("jaxlib", "0.10.2")]);
    let report = folder.path().join("report.json");
    let (environment, file) = (folder.path().to_str().unwrap(), report.to_str().unwrap());
    let output = serdes(&["doctor", "--env", environment, "--format", "json", "-o", file]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty());
    let written: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
    assert_eq!(written["verdict"], "does_not_fit");
    let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().contains("partial")));
}

#[test]
fn doctor_writes_the_reports_that_check_writes() {
    let folder = environment(&[("jax", "0.10.0"), ("jaxlib", "0.10.2")]);
    let environment = folder.path().to_str().unwrap();
    let output = serdes(&["doctor", "--env", environment, "--format", "sarif"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let sarif: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&"jaxlib_too_new".into(), &"error".into()));
    let output = serdes(&["doctor", "--env", environment, "--format", "junit"]);
    assert!(String::from_utf8(output.stdout).unwrap().contains("failures=\"1\""));
    let output = serdes(&["doctor", "--env", environment, "--format", "html", "absent.pb"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn doctor_judges_the_others_where_one_cannot_be_read() {
    let folder = environment(&[("jax", "0.10.0"), ("jaxlib", "0.10.2")]);
    let missing = folder.path().join("none");
    let environment = folder.path().to_str().unwrap();
    let output = serdes(&["doctor", "--env", missing.to_str().unwrap(), "--env", environment]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stdout).unwrap().contains("jaxlib_too_new"));
}

#[test]
fn doctor_judges_artifacts_of_jax_for_the_jaxlib_that_is_found() {
    let exported =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/kinds/f-0.8.0.jaxexport");
    let exported = exported.to_str().unwrap();
    let run = |packages: &[(&str, &str)]| {
        let folder = environment(packages);
        let environment = folder.path().to_str().unwrap().to_owned();
        serdes(&["doctor", "--env", &environment, "--artifacts", exported, "--json"])
    };
    let output = run(&[("jax", "0.9.1"), ("jaxlib", "0.9.1")]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let found = objects(&output);
    assert_eq!((&found[1]["kind"], &found[1]["release"]), (&"jax_export".into(), &"0.9.1".into()));
    // A release whose verdicts are unknown, and no release.
    assert_eq!(run(&[("jax", "0.7.2"), ("jaxlib", "0.7.2")]).status.code(), Some(2));
    let output = run(&[("numpy", "2.2.0")]);
    assert_eq!((output.status.code(), objects(&output).len()), (Some(0), 1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("no jaxlib was found"));
}

#[test]
fn explain_knows_the_rules_of_environments() {
    let output = serdes(&["explain", "plugin_jaxlib_differ", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(objects(&output)[0]["verdict"], "does_not_fit");
}
