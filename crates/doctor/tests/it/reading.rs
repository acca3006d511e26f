//! Tests of unusual forms of environments: what is read from each, and which tool changes it.

use std::{fs, path::Path};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serdes_doctor::{Environment, TablesOnly, Tool, Verdict, diagnose};
use sha2::{Digest as _, Sha256};

use crate::site::{SITE, judged, rules, venv, write};

#[test]
fn contents_are_compared_where_that_is_asked_for() {
    let folder = venv(&[("jax", "0.10.2"), ("jaxlib", "0.10.2")]);
    write(folder.path(), &format!("{SITE}/jax/core.py"), "x = 2\n");
    let sum = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest("x = 1\n"));
    let record = format!("jax/core.py,sha256={sum},6\n");
    write(folder.path(), &format!("{SITE}/jax-0.10.2.dist-info/RECORD"), &record);
    assert_eq!(judged(folder.path()).verdict(), Verdict::Fits);
    let mut environment = Environment::read(folder.path()).unwrap().remove(0);
    environment.verify_files();
    assert_eq!(rules(&diagnose(&environment, &TablesOnly)), ["files_changed"]);
    write(folder.path(), &format!("{SITE}/jax/core.py"), "x = 1\n");
    let mut environment = Environment::read(folder.path()).unwrap().remove(0);
    environment.verify_files();
    assert!(rules(&diagnose(&environment, &TablesOnly)).is_empty());
}

#[test]
fn metadata_that_cannot_be_read_is_a_missing_file() {
    let folder = venv(&[("jax", "0.10.2"), ("jaxlib", "0.10.2")]);
    fs::remove_file(folder.path().join(format!("{SITE}/jaxlib-0.10.2.dist-info/METADATA")))
        .unwrap();
    let diagnosis = judged(folder.path());
    assert_eq!(rules(&diagnosis), ["files_missing"]);
    assert_eq!(diagnosis.problems[0].packages, ["jaxlib"]);
}

#[test]
fn plugins_of_torch_xla_are_judged() {
    let folder = venv(&[("acme_xla", "1.0")]);
    let name = format!("{SITE}/acme_xla-1.0.dist-info/entry_points.txt");
    write(folder.path(), &name, "[torch_xla.plugins]\nacme = acme_xla.device:Plugin\n");
    let diagnosis = judged(folder.path());
    assert_eq!(rules(&diagnosis), ["plugin_module_missing"]);
    assert_eq!(diagnosis.components[0].found_by, "entry_point");
    write(folder.path(), &format!("{SITE}/acme_xla/device.py"), "");
    assert_eq!(judged(folder.path()).verdict(), Verdict::Fits);
}

#[test]
fn tool_is_that_of_the_files() {
    let folder = venv(&[("jax", "0.10.2")]);
    let tool = |path: &Path| Environment::read(path).unwrap()[0].tool;
    assert_eq!(tool(folder.path()), Tool::Pip);
    write(folder.path(), "pyvenv.cfg", "home = /usr/bin\nuv = 0.9.1\nversion_info = 3.12.4\n");
    assert_eq!(tool(folder.path()), Tool::UvPip);
    let project = tempfile::tempdir().unwrap();
    write(project.path(), ".venv/pyvenv.cfg", "version = 3.12.4\n");
    write(
        project.path(),
        &format!(".venv/{SITE}/jax-0.10.2.dist-info/METADATA"),
        "Name: jax\nVersion: 0.10.2\n",
    );
    write(project.path(), "uv.lock", "version = 1\n");
    assert_eq!(tool(&project.path().join(".venv")), Tool::Uv);
}

#[test]
fn packages_of_the_python_below_are_said_to_be_unread() {
    let folder = venv(&[("jax", "0.10.2"), ("jaxlib", "0.10.2")]);
    let config = "home = /usr/bin\ninclude-system-site-packages = true\nversion = 3.12.4\n";
    write(folder.path(), "pyvenv.cfg", config);
    let mut diagnosis = judged(folder.path());
    assert_eq!(diagnosis.verdict(), Verdict::Fits);
    assert_eq!(diagnosis.warnings[0].rule.id(), "not_judged");
    diagnosis.strict = true;
    assert_eq!(diagnosis.verdict(), Verdict::DoesNotFit);
    assert_eq!(diagnosis.to_json()["problems"][0]["rule"], "not_judged");
    assert!(diagnosis.to_string().ends_with("1 problem"));
}

#[test]
fn folder_that_pythons_of_debian_share_belongs_to_each() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "etc/os-release", "ID=debian\n");
    let shared = "usr/lib/python3/dist-packages/numpy-1.24.2.dist-info/METADATA";
    write(folder.path(), shared, "Name: numpy\nVersion: 1.24.2\n");
    let local = "usr/local/lib/python3.11/dist-packages/jax-0.10.2.dist-info/METADATA";
    write(folder.path(), local, "Name: jax\nVersion: 0.10.2\n");
    let environments = Environment::read(folder.path()).unwrap();
    assert_eq!(environments.len(), 1);
    assert_eq!(environments[0].packages.keys().collect::<Vec<_>>(), ["jax", "numpy"]);
}

#[test]
fn tensorflow_and_the_build_that_brings_its_files_are_one() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("frozen.txt");
    fs::write(&name, "tensorflow==2.15.0\ntensorflow-macos==2.15.0\n").unwrap();
    assert!(Environment::is_at(&name));
    assert!(!rules(&judged(&name)).contains(&"same_files"));
    fs::write(&name, "tensorflow==2.15.0\ntensorflow-cpu==2.15.0\n").unwrap();
    assert!(rules(&judged(&name)).contains(&"same_files"));
}

#[test]
fn requirements_without_versions_are_not_guessed() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("requirements.txt");
    fs::write(&name, "jax>=0.9\njaxlib\n").unwrap();
    assert_eq!(judged(&name).verdict(), Verdict::Unknown);
    fs::write(&name, "-r base.txt\nnumpy>=2\n").unwrap();
    fs::write(folder.path().join("base.txt"), "-r requirements.txt\njax==0.10.0\njaxlib==0.10.2\n")
        .unwrap();
    let diagnosis = judged(&name);
    assert_eq!(rules(&diagnosis), ["jaxlib_too_new"]);
    assert_eq!(diagnosis.warnings[0].rule.id(), "not_judged");
}

#[test]
fn wheels_of_another_system_are_for_another_machine() {
    let folder = venv(&[("jax", "0.10.2"), ("jaxlib", "0.10.2")]);
    let tags = |name: &str, tag: &str| {
        write(
            folder.path(),
            &format!("{SITE}/{name}-0.10.2.dist-info/WHEEL"),
            &format!("Tag: {tag}\n"),
        );
    };
    tags("jaxlib", "cp312-cp312-macosx_11_0_arm64");
    let diagnosis = judged(folder.path());
    assert_eq!(diagnosis.environment.system, "darwin");
    tags("jax", "cp312-cp312-manylinux2014_x86_64");
    let numpy = format!("{SITE}/numpy-2.3.0.dist-info");
    write(folder.path(), &format!("{numpy}/METADATA"), "Name: numpy\nVersion: 2.3.0\n");
    write(folder.path(), &format!("{numpy}/WHEEL"), "Tag: cp312-cp312-manylinux2014_x86_64\n");
    assert!(rules(&judged(folder.path())).contains(&"architecture"));
}

#[test]
fn three_hundred_packages_are_read_quickly() {
    let folder = venv(&[("jax", "0.10.2"), ("jaxlib", "0.10.2")]);
    let long = "A line of a description.\n".repeat(4_000);
    for at in 0..300 {
        let metadata =
            format!("Name: other{at}\nVersion: 1.0\nRequires-Dist: requests>=2\n\n{long}");
        write(folder.path(), &format!("{SITE}/other{at}-1.0.dist-info/METADATA"), &metadata);
    }
    let began = std::time::Instant::now();
    let diagnosis = judged(folder.path());
    assert_eq!(diagnosis.environment.count, 302);
    // The contract is 50 ms; this limit allows for an unoptimised build on a busy machine.
    assert!(began.elapsed().as_secs() < 5);
}

#[test]
fn records_of_conda_tell_packages_without_metadata() {
    let folder = tempfile::tempdir().unwrap();
    for record in
        ["jax-0.9.2-pyh_0", "jaxlib-0.9.1-cpu_py312_0", "python-3.12.11-h9e_0", "zlib-1.3-h_0"]
    {
        write(folder.path(), &format!("conda-meta/{record}.json"), "{}");
    }
    let diagnosis = judged(folder.path());
    assert_eq!(rules(&diagnosis), ["jaxlib_too_old"]);
    // Metadata take precedence.
    write(
        folder.path(),
        &format!("{SITE}/jax-0.9.1.dist-info/METADATA"),
        "Name: jax\nVersion: 0.9.1\n",
    );
    assert_eq!(rules(&judged(folder.path())), ["jaxlib_missing"]);
}

#[test]
fn folder_of_caches_is_no_module_of_an_entry_point() {
    let folder = venv(&[("acme", "1.0")]);
    let points = format!("{SITE}/acme-1.0.dist-info/entry_points.txt");
    write(folder.path(), &points, "[jax_plugins]\nacme = jax_plugins.acme\n");
    write(folder.path(), &format!("{SITE}/jax_plugins/acme/__pycache__/x.pyc"), "");
    assert_eq!(rules(&judged(folder.path())), ["plugin_module_missing"]);
}

#[test]
fn root_has_the_environments_of_projects() {
    let prefixes =
        ["app/.venv", "workspace/venv", "opt/conda/envs/ml", "home/me/.venv", "opt/venv"];
    for prefix in prefixes {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "etc/os-release", "ID=debian\n");
        for (name, version) in [("jax", "0.10.2"), ("jaxlib", "0.10.0")] {
            let file = format!("{prefix}/{SITE}/{name}-{version}.dist-info/METADATA");
            write(root.path(), &file, &format!("Name: {name}\nVersion: {version}\n"));
        }
        assert_eq!(rules(&judged(root.path())), ["jaxlib_too_old"], "{prefix}");
    }
}

#[cfg(unix)]
#[test]
fn pipes_in_place_of_libraries_are_not_opened() {
    let folder = venv(&[("acme", "1.0"), ("tensorflow", "2.21.0"), ("jaxlib", "0.10.2")]);
    let site = folder.path().join(SITE);
    write(folder.path(), &format!("{SITE}/jax_plugins/acme/__init__.py"), "");
    write(folder.path(), &format!("{SITE}/jaxlib-0.10.2.dist-info/RECORD"), "jaxlib/_jax.so,,\n");
    fs::create_dir_all(site.join("tensorflow-plugins")).unwrap();
    fs::create_dir_all(site.join("jaxlib")).unwrap();
    for pipe in ["jax_plugins/acme/plugin.so", "tensorflow-plugins/libx.so", "jaxlib/_jax.so"] {
        let made = std::process::Command::new("mkfifo").arg(site.join(pipe)).status().unwrap();
        assert!(made.success());
    }
    let environment = Environment::read(folder.path()).unwrap().remove(0);
    assert!(environment.needs.is_empty() && environment.tensorflow_plugins.is_empty());
    assert!(environment.plugins.iter().all(|plugin| plugin.library.is_none()));
}
