//! The parsed tables of releases.
//!
//! The tables are in the crate `serdes-releases`; a test parses them, so that parsing cannot fail
//! for a user.

use std::{collections::HashMap, str::FromStr as _, sync::OnceLock};

use pep440_rs::{Version, VersionSpecifiers};
use pep508_rs::Requirement;
use serdes_releases::{Jaxlib, PackageRelease, Packages, Plugins};

/// A release of a package.
#[derive(Debug)]
pub(crate) struct Release {
    pub(crate) version: Version,
    pub(crate) python: Option<VersionSpecifiers>,
    pub(crate) tag: Option<String>,
    pub(crate) requires: Vec<Requirement>,
    pub(crate) pjrt: Option<u32>,
    pub(crate) minimum_jaxlib: Option<Version>,
    /// The libtpu pinned by the extra `tpu` of jax.
    pub(crate) libtpu: Option<Requirement>,
}

/// A measured or reported requirement that the metadata do not declare correctly.
#[derive(Debug)]
pub(crate) struct Need {
    pub(crate) package: String,
    pub(crate) versions: VersionSpecifiers,
    pub(crate) needs: Requirement,
    pub(crate) measured: bool,
    pub(crate) symptom: Option<String>,
    pub(crate) source: Option<String>,
}

impl Need {
    /// Returns true if the requirement was measured for one release only, so that it takes
    /// precedence over that release's metadata.
    pub(crate) fn replaces_declared(&self) -> bool {
        self.measured && self.versions.to_string().starts_with("==")
    }
}

/// The known releases of packages.
#[derive(Debug)]
pub struct Releases {
    as_of: String,
    packages: HashMap<String, Vec<Release>>,
    pjrt: HashMap<String, Vec<(Version, u32)>>,
    built_with: HashMap<String, Vec<(Version, Version, Version)>>,
    drivers: Vec<(u64, String)>,
    needs: Vec<Need>,
}

impl Releases {
    /// Returns the tables of this build.
    #[must_use]
    pub fn known() -> &'static Self {
        static KNOWN: OnceLock<Releases> = OnceLock::new();
        KNOWN.get_or_init(Self::embedded)
    }

    #[expect(
        clippy::expect_used,
        reason = "the text is part of the program and a test parses it; without tables everything would fit"
    )]
    fn embedded() -> Self {
        let (jaxlib, packages, plugins) =
            (serdes_releases::jaxlib(), serdes_releases::packages(), serdes_releases::plugins());
        Self::from_tables(jaxlib, packages, plugins).expect("the embedded tables parse")
    }

    fn from_tables(
        jaxlib: &Jaxlib,
        packages: &Packages,
        plugins: &Plugins,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let mut known = Self {
            as_of: packages.as_of.clone(),
            packages: HashMap::new(),
            pjrt: HashMap::new(),
            built_with: HashMap::new(),
            drivers: Vec::new(),
            needs: Vec::new(),
        };
        for package in &packages.packages {
            let mut releases =
                package.releases.iter().map(release).collect::<Result<Vec<_>, _>>()?;
            releases.sort_by(|one, other| one.version.cmp(&other.version));
            known.packages.insert(package.name.clone(), releases);
        }
        for row in &jaxlib.releases {
            let version: Version = row.version.parse()?;
            let releases = known.packages.entry("jaxlib".to_owned()).or_default();
            if let Some(release) = releases.iter_mut().find(|one| one.version == version) {
                release.pjrt = Some(row.pjrt);
            }
        }
        for row in &plugins.pjrt {
            let minors = known.pjrt.entry(row.package.clone()).or_default();
            minors.push((row.version.parse()?, row.minor));
        }
        for row in &plugins.built_with {
            let ranges = known.built_with.entry(row.package.clone()).or_default();
            ranges.push((row.from.parse()?, row.to.parse()?, row.cudnn.parse()?));
        }
        for row in &plugins.driver {
            let _: Version = row.driver.parse()?;
            known.drivers.push((row.cuda, row.driver.clone()));
        }
        for row in &plugins.needs {
            known.needs.push(Need {
                package: row.package.clone(),
                versions: row.versions.parse()?,
                needs: Requirement::from_str(&row.needs).map_err(|_| "no requirement")?,
                measured: row.measured,
                symptom: row.symptom.clone(),
                source: row.source.clone(),
            });
        }
        Ok(known)
    }

    /// Returns the day of the tables, `YYYY-MM-DD`.
    #[must_use]
    pub fn as_of(&self) -> &str {
        &self.as_of
    }

    /// Returns the known versions of a package, oldest first.
    pub fn versions(&self, package: &str) -> impl Iterator<Item = &Version> {
        self.of(package).iter().map(|release| &release.version)
    }

    /// Returns the known releases of a package, oldest first.
    pub(crate) fn of(&self, package: &str) -> &[Release] {
        let package =
            if crate::names::TENSORFLOW.contains(&package) { "tensorflow" } else { package };
        self.packages.get(package).map_or(&[], Vec::as_slice)
    }

    /// Returns a release of a package; the local part of the version is ignored.
    pub(crate) fn release(&self, package: &str, version: &Version) -> Option<&Release> {
        let version = version.clone().without_local();
        self.of(package).iter().find(|release| release.version == version)
    }

    /// Returns the newest release that satisfies a specifier; a pre-release only if there is no
    /// other.
    pub(crate) fn newest(&self, package: &str, specifiers: &VersionSpecifiers) -> Option<&Release> {
        let fits = |release: &&Release| specifiers.contains(&release.version);
        let releases = self.of(package);
        let stable = releases.iter().rev().filter(|release| release.version.is_stable());
        stable.clone().find(fits).or_else(|| releases.iter().rev().find(fits))
    }

    /// Returns the PJRT minor of a package's release.
    pub(crate) fn pjrt_minor(&self, package: &str, version: &Version) -> Option<u32> {
        let version = version.clone().without_local();
        let listed = self.pjrt.get(package).and_then(|minors| {
            minors.iter().find(|(known, _)| *known == version).map(|(_, minor)| *minor)
        });
        // Both packages of a plug-in are built together with jaxlib, from the same sources.
        let same_day = || {
            let built_beside = package.starts_with("jax-cuda") && package.ends_with("-pjrt");
            let jaxlib = (built_beside || package == "jaxlib").then_some("jaxlib")?;
            self.release(jaxlib, &version)?.pjrt
        };
        listed.or_else(same_day)
    }

    /// Returns the version of cuDNN that a CUDA plug-in was built with.
    pub(crate) fn cudnn_of(&self, plugin: &str, version: &Version) -> Option<&Version> {
        let version = version.clone().without_local();
        let ranges = self.built_with.get(plugin)?;
        // Between two ranges, use the older one as a lower bound.
        let (_, _, cudnn) = ranges.iter().rev().find(|(from, _, _)| *from <= version)?;
        Some(cudnn)
    }

    /// Returns the oldest driver for a CUDA major.
    pub(crate) fn driver_for(&self, cuda: u64) -> Option<&str> {
        self.drivers.iter().find(|(major, _)| *major == cuda).map(|(_, version)| version.as_str())
    }

    /// Returns the requirements of a package's release.
    pub(crate) fn needs_of<'a>(
        &'a self,
        package: &'a str,
        version: &'a Version,
    ) -> impl Iterator<Item = &'a Need> {
        let name = if crate::names::TENSORFLOW.contains(&package) { "tensorflow" } else { package };
        let version = version.clone().without_local();
        self.needs
            .iter()
            .filter(move |need| need.package == name && need.versions.contains(&version))
    }
}

fn release(row: &PackageRelease) -> Result<Release, Box<dyn std::error::Error>> {
    let requirement =
        |text: &String| Requirement::from_str(text).map_err(|_| format!("no requirement: {text}"));
    Ok(Release {
        version: row.version.parse()?,
        python: row.python.as_deref().map(str::parse).transpose()?,
        tag: row.tag.clone(),
        requires: row.requires.iter().map(requirement).collect::<Result<_, _>>()?,
        pjrt: None,
        minimum_jaxlib: row.minimum_jaxlib.as_deref().map(str::parse).transpose()?,
        libtpu: row.libtpu.as_ref().map(requirement).transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_parse_and_have_the_newest_jaxlib() {
        let known = Releases::embedded();
        let newest = known.of("jaxlib").last().unwrap();
        assert_eq!(newest.version, "0.12.0.1".parse().unwrap());
        assert_eq!(newest.pjrt, Some(116));
        assert_eq!(known.as_of().len(), 10);
    }

    #[test]
    fn newest_prefers_releases_to_candidates() {
        let known = Releases::known();
        let any = VersionSpecifiers::empty();
        assert!(known.newest("tensorflow", &any).unwrap().version.is_stable());
    }

    #[test]
    fn cudnn_of_a_plugin_is_that_of_its_range() {
        let known = Releases::known();
        let cudnn = |version: &str| {
            known.cudnn_of("jax-cuda12-plugin", &version.parse().unwrap()).map(ToString::to_string)
        };
        assert_eq!(cudnn("0.6.0").as_deref(), Some("9.8.0"));
        assert_eq!(cudnn("0.12.0").as_deref(), Some("9.10.2"));
        assert_eq!(cudnn("0.4.20"), None);
    }
}
