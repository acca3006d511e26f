//! Creates environments for tests.

use std::{fs, path::Path};

use serdes_doctor::{Diagnosis, Environment, TablesOnly, diagnose};

/// The folder of packages in a virtual environment of Python 3.12.
pub(crate) const SITE: &str = "lib/python3.12/site-packages";

pub(crate) fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Creates a virtual environment with packages that have only a name and a version.
pub(crate) fn venv(packages: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "pyvenv.cfg", "home = /usr/bin\nversion = 3.12.4\n");
    for (name, version) in packages {
        install(folder.path(), name, version, "");
    }
    folder
}

/// Writes the metadata of a package; `fields` are further lines in it.
pub(crate) fn install(folder: &Path, name: &str, version: &str, fields: &str) {
    let metadata = format!("Name: {name}\nVersion: {version}\n{fields}\n");
    write(folder, &format!("{SITE}/{name}-{version}.dist-info/METADATA"), &metadata);
}

/// Writes the tag of a package's wheel.
pub(crate) fn tag(folder: &Path, name: &str, version: &str, tag: &str) {
    let text = format!("Wheel-Version: 1.0\nTag: {tag}\n");
    write(folder, &format!("{SITE}/{name}-{version}.dist-info/WHEEL"), &text);
}

pub(crate) fn judged(path: &Path) -> Diagnosis {
    diagnose(&Environment::read(path).unwrap()[0], &TablesOnly)
}

/// Returns the diagnosis of a list of pinned packages, `name==version` on each line.
pub(crate) fn judged_lock(text: &str) -> Diagnosis {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "requirements.txt", text);
    judged(&folder.path().join("requirements.txt"))
}

pub(crate) fn rules(diagnosis: &Diagnosis) -> Vec<&'static str> {
    diagnosis.problems.iter().map(|problem| problem.rule.id()).collect()
}

pub(crate) fn warnings(diagnosis: &Diagnosis) -> Vec<&'static str> {
    diagnosis.warnings.iter().map(|warning| warning.rule.id()).collect()
}

/// Returns the commands of the first problem's remedies.
pub(crate) fn commands(diagnosis: &Diagnosis) -> Vec<String> {
    let remedies = diagnosis.problems.iter().take(1).flat_map(|problem| &problem.remedies);
    remedies.filter_map(|remedy| remedy.command.clone()).collect()
}
