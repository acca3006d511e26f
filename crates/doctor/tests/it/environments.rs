//! Tests of environments with their expected problems: installed ones, roots of images, and lock
//! files.
//!
//! Each is an archive in `tests/data`. Their Python files, path files and libraries are traps: each
//! would write into the file that `SERDES_DOCTOR_TRAP` names if it were run or loaded.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    path::{Path, PathBuf},
};

use flate2::read::GzDecoder;
use pep440_rs::{Version, VersionSpecifiers};
use serde::Deserialize;
use serde_json::Value;
use serdes_doctor::{Diagnosis, Environment, TablesOnly, Verdict, diagnose, judge_safetensors};

use crate::site::write;

#[derive(Deserialize)]
struct Expected {
    id: String,
    title: String,
    args: Vec<String>,
    verdict: String,
    rules: Vec<String>,
    allowed: Vec<String>,
    packages: Vec<String>,
    remedies: Vec<serde_json::Map<String, Value>>,
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn expected() -> Vec<Expected> {
    let text = fs::read_to_string(data("expected.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn unpack(id: &str, folder: &Path) {
    let archive = File::open(data(&format!("{id}.tar.gz"))).unwrap();
    tar::Archive::new(GzDecoder::new(archive)).unpack(folder).unwrap();
}

fn run(expected: &Expected, folder: &Path) -> Vec<Diagnosis> {
    let root = folder.join(&expected.id);
    let argument = |flag: &str| {
        let at = expected.args.iter().position(|argument| argument == flag)?;
        Some(expected.args[at + 1].replace("{}", root.to_str().unwrap()))
    };
    let path = argument("--env").or_else(|| argument("--lock")).unwrap();
    let environments = Environment::read(path).unwrap();
    let judge = |environment: &Environment| {
        let mut diagnosis = diagnose(environment, &TablesOnly);
        if let Some(artifact) = argument("--artifacts") {
            diagnosis.problems.extend(judge_safetensors(
                environment,
                artifact.as_ref(),
                &TablesOnly,
            ));
        }
        diagnosis
    };
    environments.iter().map(judge).collect()
}

/// Asserts that each rule occurs once: in these environments each has one cause.
fn says_each_rule_once(diagnosis: &Diagnosis) -> bool {
    let rules: BTreeSet<&str> =
        diagnosis.problems.iter().map(|problem| problem.rule.id()).collect();
    rules.len() == diagnosis.problems.len()
}

/// Returns true if the change is one of the wanted ones, as a version or as a specifier.
fn is_wanted(changes: &[serdes_doctor::Change], wanted: &serde_json::Map<String, Value>) -> bool {
    let names: BTreeSet<&str> = changes.iter().map(|change| change.package.as_str()).collect();
    names == wanted.keys().map(String::as_str).collect()
        && changes.iter().all(|change| match (&change.to, &wanted[&change.package]) {
            (serdes_doctor::Target::Removed, Value::Null) => true,
            (serdes_doctor::Target::Version(version), Value::String(text)) => {
                text.parse::<VersionSpecifiers>().unwrap().contains(version)
            }
            (serdes_doctor::Target::Specifiers(found), Value::String(text)) => {
                let wanted: VersionSpecifiers = text.parse().unwrap();
                let named = |one: &VersionSpecifiers| -> BTreeSet<Version> {
                    one.iter().map(|part| part.version().only_release()).collect()
                };
                named(found) == named(&wanted)
            }
            _ => false,
        })
}

#[test]
fn environments_are_judged_as_expected() {
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for expected in expected() {
        unpack(&expected.id, folder.path());
        let diagnoses = run(&expected, folder.path());
        let problems: Vec<_> = diagnoses.iter().flat_map(|diagnosis| &diagnosis.problems).collect();
        let rules: BTreeSet<&str> = problems.iter().map(|problem| problem.rule.id()).collect();
        let verdicts: Vec<&str> =
            diagnoses.iter().map(|diagnosis| diagnosis.verdict().name()).collect();
        let missing = expected.rules.iter().any(|rule| !rules.contains(rule.as_str()));
        let allowed =
            |rule: &&str| expected.rules.iter().chain(&expected.allowed).any(|known| known == rule);
        let named: BTreeSet<&String> =
            problems.iter().flat_map(|problem| &problem.packages).collect();
        let remedies = problems.iter().flat_map(|problem| &problem.remedies);
        let healed = expected.remedies.is_empty()
            || remedies.clone().any(|remedy| {
                expected.remedies.iter().any(|wanted| is_wanted(&remedy.changes, wanted))
            });
        let fits = verdicts.contains(&expected.verdict.as_str())
            && !missing
            && rules.iter().all(allowed)
            && diagnoses.iter().all(says_each_rule_once)
            && expected.packages.iter().all(|package| named.contains(package))
            && healed;
        if !fits {
            let remedies: Vec<&str> = remedies.map(|remedy| remedy.text.as_str()).collect();
            wrong.push(format!(
                "{} ({}): {verdicts:?} {rules:?} {remedies:?}",
                expected.id, expected.title
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn environments_stay_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let listing = |root: &Path| {
        let mut files = Vec::new();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                let metadata = entry.path().symlink_metadata().unwrap();
                if metadata.is_dir() {
                    folders.push(entry.path());
                }
                files.push((entry.path(), metadata.len(), metadata.modified().unwrap()));
            }
        }
        files.sort();
        files
    };
    for expected in expected() {
        unpack(&expected.id, folder.path());
        let root = folder.path().join(&expected.id);
        let before = listing(&root);
        let diagnoses = run(&expected, folder.path());
        assert!(!diagnoses.is_empty());
        assert_eq!(listing(&root), before, "{}", expected.id);
    }
}

#[test]
fn remedies_are_for_the_tool_of_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let all = expected();
    let command = |id: &str| {
        let expected = all.iter().find(|expected| expected.id == id).unwrap();
        unpack(id, folder.path());
        let diagnoses = run(expected, folder.path());
        diagnoses[0].problems[0].remedies[0].command.clone().unwrap()
    };
    assert_eq!(command("e01"), "pip install 'jaxlib==0.10.0'");
    assert_eq!(command("e35"), "uv add 'jax-cuda12-pjrt==0.9.2'");
    assert_eq!(
        command("e11"),
        "pip install --force-reinstall --no-deps 'jax-cuda13-pjrt==0.12.0.1'"
    );
}

fn site(folder: &Path) -> PathBuf {
    write(folder, "pyvenv.cfg", "home = /nowhere\nversion = 3.12.4\n");
    let site = folder.join("lib/python3.12/site-packages");
    fs::create_dir_all(&site).unwrap();
    site
}

fn install(site: &Path, name: &str, version: &str, requires: &str, record: &str) {
    let info = format!("{name}-{version}.dist-info");
    write(
        site,
        &format!("{info}/METADATA"),
        &format!("Name: {name}\nVersion: {version}\n{requires}\n"),
    );
    write(site, &format!("{info}/RECORD"), record);
}

#[test]
fn record_that_leads_out_of_the_environment_is_a_missing_file() {
    let folder = tempfile::tempdir().unwrap();
    let site = site(folder.path());
    install(
        &site,
        "jax",
        "0.10.2",
        "",
        "../../../../../../../../etc/passwd,,\njax/__init__.py,,\n",
    );
    install(&site, "jaxlib", "0.10.2", "", "");
    let diagnosis = &diagnose(&Environment::read(folder.path()).unwrap()[0], &TablesOnly);
    assert_eq!(diagnosis.verdict(), Verdict::DoesNotFit);
    assert_eq!(diagnosis.problems[0].rule.id(), "files_missing");
    assert!(diagnosis.problems[0].message.starts_with("2 of 2 files"));
}

#[test]
fn headers_that_are_gone_hinder_no_program() {
    let folder = tempfile::tempdir().unwrap();
    let site = site(folder.path());
    let header = "jaxlib/include/xla/ffi/api/c_api.h,,1\n";
    install(&site, "jax", "0.10.2", "", "");
    install(&site, "jaxlib", "0.10.2", "", header);
    let problems = || {
        let environment = Environment::read(folder.path()).unwrap();
        let diagnosis = diagnose(&environment[0], &TablesOnly);
        diagnosis.problems.iter().map(|problem| problem.rule.id()).collect::<Vec<_>>()
    };
    assert!(problems().is_empty(), "{:?}", problems());
    install(&site, "jaxlib", "0.10.2", "", &format!("{header}jaxlib/_jax.so,,1\n"));
    assert_eq!(problems(), ["files_missing"]);
}

#[test]
fn hostile_metadata_is_read_in_bounded_time() {
    let folder = tempfile::tempdir().unwrap();
    let site = site(folder.path());
    let marker = "(".repeat(500);
    let many =
        (0..20_000).map(|at| format!("Requires-Dist: numpy>={at}; {marker}\n")).collect::<String>();
    install(&site, "jax", "0.10.2", &many, &"a,b,c\n".repeat(100_000));
    install(&site, "jaxlib", "0.10.2", "", "");
    write(&site, "jax_plugins/x/__init__.py", "");
    write(
        &site,
        "evil-1.dist-info/entry_points.txt",
        &"[jax_plugins]\nx = ../../..\n".repeat(10_000),
    );
    let began = std::time::Instant::now();
    let environments = Environment::read(folder.path()).unwrap();
    let _ = diagnose(&environments[0], &TablesOnly);
    assert!(began.elapsed().as_secs() < 20);
}

#[test]
fn lock_that_is_damaged_is_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in
        [("uv.lock", "[[package]]\nname = 1"), ("requirements.txt", "\u{1}\u{2}"), ("uv.lock", "")]
    {
        write(folder.path(), name, text);
        let error = Environment::read(folder.path().join(name)).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn lock_with_forks_is_several_environments() {
    let folder = tempfile::tempdir().unwrap();
    let package = |name: &str, version: &str| {
        format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n")
    };
    let text = [package("jax", "0.10.2"), package("jaxlib", "0.10.2"), package("jaxlib", "0.9.2")]
        .concat();
    write(folder.path(), "uv.lock", &text);
    let environments = Environment::read(folder.path().join("uv.lock")).unwrap();
    let verdicts: Vec<Verdict> = environments
        .iter()
        .map(|environment| diagnose(environment, &TablesOnly).verdict())
        .collect();
    assert_eq!(verdicts, [Verdict::Fits, Verdict::DoesNotFit]);
}

#[test]
fn lock_with_a_jax_newer_than_the_tables_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "requirements.txt", "jax==99.0\njaxlib==99.0\n");
    let environments = Environment::read(folder.path().join("requirements.txt")).unwrap();
    assert_eq!(diagnose(&environments[0], &TablesOnly).verdict(), Verdict::Unknown);
}
