//! The files of `crates/releases/data`: adds and removes rows.

use std::{fs, path::Path, str::FromStr as _};

use pep440_rs::Version;
use serdes_releases::{
    Jaxlib, JaxlibRelease, Package, PackageRelease, Packages, PjrtVersion, Plugins,
};

use super::task_result::TaskResult;

const FOLDER: &str = "crates/releases/data";

/// The tables, with their original texts.
#[derive(Debug)]
pub(super) struct Tables {
    jaxlib: Jaxlib,
    packages: Packages,
    plugins: Plugins,
    before: [String; 3],
}

/// The files, in the order in which they are stored.
const FILES: [&str; 3] = ["jaxlib.json", "packages.json", "plugins.json"];

fn version(text: &str) -> TaskResult<Version> {
    Version::from_str(text).map_err(|error| format!("{text}: {error}").into())
}

/// Inserts a row in the order of versions, or replaces the one of the same version.
fn put<T>(rows: &mut Vec<T>, row: T, number: impl Fn(&T) -> Option<Version>) {
    let own = number(&row);
    rows.retain(|other| number(other) != own);
    let at = rows.partition_point(|other| number(other) < own);
    rows.insert(at, row);
}

impl Tables {
    /// Reads the tables of a tree.
    pub(super) fn read(root: &Path) -> TaskResult<Self> {
        let before = FILES.map(|name| fs::read_to_string(root.join(FOLDER).join(name)));
        let [jaxlib, packages, plugins] = before;
        let before = [jaxlib?, packages?, plugins?];
        Ok(Self {
            jaxlib: Jaxlib::parse(&before[0])?,
            packages: Packages::parse(&before[1])?,
            plugins: Plugins::parse(&before[2])?,
            before,
        })
    }

    fn texts(&self) -> TaskResult<[String; 3]> {
        Ok([self.jaxlib.text()?, self.packages.text()?, self.plugins.text()?])
    }

    /// Writes the tables into a tree.
    pub(super) fn write(&self, root: &Path) -> TaskResult<()> {
        for (name, text) in FILES.iter().zip(self.texts()?) {
            fs::write(root.join(FOLDER).join(name), text)?;
        }
        Ok(())
    }

    /// Returns the rows that were added since the tables were read, with their files.
    pub(super) fn moved(&self) -> TaskResult<Vec<(String, String)>> {
        let mut moved = Vec::new();
        for ((name, before), text) in FILES.iter().zip(&self.before).zip(self.texts()?) {
            let known: Vec<&str> = before.lines().map(|line| line.trim_end_matches(',')).collect();
            for line in text.lines().map(|line| line.trim_end_matches(',')) {
                if !known.contains(&line) {
                    moved.push((format!("{FOLDER}/{name}"), line.to_owned()));
                }
            }
        }
        Ok(moved)
    }

    /// Returns the newest known version of a package.
    pub(super) fn newest(&self, package: &str) -> Option<Version> {
        let releases = &self.packages.named(package)?.releases;
        releases.iter().filter_map(|release| Version::from_str(&release.version).ok()).max()
    }

    /// Returns the Python version of the wheel in the row before a release: `3.12` for `cp312-…`.
    /// Rows of a package keep one Python while it has wheels for it.
    pub(super) fn python_of(&self, package: &str, release: &str) -> Option<String> {
        let own = Version::from_str(release).ok()?;
        let releases = &self.packages.named(package)?.releases;
        let is_before = |row: &&PackageRelease| {
            Version::from_str(&row.version).is_ok_and(|version| version < own)
        };
        let row = releases.iter().rfind(is_before).or_else(|| releases.last())?;
        let minor = row.tag.as_deref()?.strip_prefix("cp3")?.split('-').next()?;
        Some(format!("3.{minor}"))
    }

    /// Returns true if the table of packages has releases of a package.
    pub(super) fn has_package(&self, package: &str) -> bool {
        self.packages.named(package).is_some()
    }

    /// Adds a release of a package.
    pub(super) fn put_package(&mut self, name: &str, row: PackageRelease) -> TaskResult<()> {
        let _ = version(&row.version)?;
        let number = |row: &PackageRelease| Version::from_str(&row.version).ok();
        let package = self.packages.packages.iter_mut().find(|package| package.name == name);
        match package {
            Some(package) => put(&mut package.releases, row, number),
            None => {
                self.packages.packages.push(Package { name: name.to_owned(), releases: vec![row] })
            }
        }
        Ok(())
    }

    /// Adds a jaxlib; returns the release before it.
    pub(super) fn put_jaxlib(&mut self, row: JaxlibRelease) -> Option<JaxlibRelease> {
        let number = |row: &JaxlibRelease| Version::from_str(&row.version).ok();
        let own = number(&row);
        put(&mut self.jaxlib.releases, row, number);
        self.jaxlib.releases.iter().rfind(|other| number(other) < own).cloned()
    }

    /// Adds the PJRT version of a plug-in after the others of its package.
    pub(super) fn put_pjrt(&mut self, package: &str, release: &str, minor: u32) -> TaskResult<()> {
        let own = version(release)?;
        let rows = &mut self.plugins.pjrt;
        rows.retain(|row| row.package != package || row.version != release);
        let is_before = |row: &PjrtVersion| {
            row.package == package && Version::from_str(&row.version).is_ok_and(|one| one < own)
        };
        let first = rows.iter().position(|row| row.package == package);
        let at = rows.iter().rposition(is_before).map_or(first, |at| Some(at + 1));
        let at = at.unwrap_or(rows.len());
        let (package, release) = (package.to_owned(), release.to_owned());
        rows.insert(at, PjrtVersion { package, version: release, minor });
        Ok(())
    }

    /// Removes a release from every table.
    pub(super) fn remove(&mut self, package: &str, release: &str) -> TaskResult<()> {
        let count = self.rows();
        if package == "jaxlib" {
            self.jaxlib.releases.retain(|row| row.version != release);
        }
        for one in self.packages.packages.iter_mut().filter(|one| one.name == package) {
            one.releases.retain(|row| row.version != release);
        }
        self.plugins.pjrt.retain(|row| row.package != package || row.version != release);
        if self.rows() == count {
            return Err(format!("the tables have no {package} {release}").into());
        }
        Ok(())
    }

    fn rows(&self) -> usize {
        let packages = self.packages.packages.iter().map(|one| one.releases.len());
        self.jaxlib.releases.len() + self.plugins.pjrt.len() + packages.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables() -> Tables {
        Tables::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
    }

    #[test]
    fn tables_are_the_same_after_a_release_was_taken_out_and_put_in() {
        let mut tables = tables();
        let jaxlib = tables.jaxlib.releases.last().unwrap().clone();
        let package = tables.packages.named("jaxlib").unwrap().releases.last().unwrap().clone();
        tables.remove("jaxlib", &jaxlib.version).unwrap();
        assert_ne!(tables.texts().unwrap(), tables.before);
        tables.put_package("jaxlib", package).unwrap();
        let before = tables.put_jaxlib(jaxlib.clone()).unwrap();
        assert_eq!(tables.texts().unwrap(), tables.before);
        assert_ne!(before.version, jaxlib.version);
        assert!(tables.moved().unwrap().is_empty());
    }

    #[test]
    fn python_is_that_of_the_row_before() {
        let tables = tables();
        let rows = &tables.packages.named("tensorflow").unwrap().releases;
        for pair in rows.windows(2) {
            let [before, row] = pair else { unreachable!() };
            let python = tables.python_of("tensorflow", &row.version).unwrap();
            let tag = format!("cp{}-", python.replace('.', ""));
            assert!(before.tag.as_ref().unwrap().starts_with(&tag), "{}: {tag}", row.version);
        }
        assert_eq!(tables.python_of("no-such-package", "1.0"), None);
    }

    #[test]
    fn pjrt_versions_of_a_package_stay_together() {
        let mut tables = tables();
        let rows = tables.plugins.pjrt.clone();
        let row = rows.iter().find(|row| row.package == "jax-cuda12-pjrt").unwrap();
        tables.remove(&row.package, &row.version).unwrap();
        tables.put_pjrt(&row.package, &row.version, row.minor).unwrap();
        assert_eq!(tables.plugins.pjrt, rows);
        assert!(tables.remove("jaxlib", "99.0").is_err());
    }
}
