//! The version of a plug-in from the file beside its library, and jaxlib's comparison with it.

use std::{fs::File, io::Read as _, path::Path};

use pep440_rs::Version;

use crate::read;

/// First release of jaxlib that compares versions of plug-ins.
const COMPARES_SINCE: [u64; 3] = [0, 5, 3];
/// The last release that was measured to compare the version of ROCm's plug-in.
const COMPARES_ROCM_UNTIL: [u64; 3] = [0, 8, 0];
/// Maximum size of a version file in bytes.
const LIMIT: u64 = 1 << 20;

/// An installed plug-in with its version file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstalledPlugin {
    /// The name between `jax-` and `-pjrt`, such as `cuda12`.
    pub name: String,
    /// The version in `version.py`.
    pub version: Version,
}

impl InstalledPlugin {
    /// Finds the plug-in of a library at its place in a wheel, as in
    /// `jax_plugins/xla_cuda12/xla_cuda_plugin.so`; `None` for any other place.
    #[must_use]
    pub fn of_library(library: &Path) -> Option<Self> {
        let folder = library.parent()?;
        let name = folder.file_name()?.to_str()?.strip_prefix("xla_")?.to_owned();
        let file = File::open(folder.join("version.py")).ok()?;
        let mut bytes = Vec::new();
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        file.take(LIMIT).read_to_end(&mut bytes).ok()?;
        let version = read::version_in(&String::from_utf8_lossy(&bytes))?;
        Some(Self { name, version })
    }

    /// Returns true if a release of jaxlib ignores the kernels of the plug-in, because it compares
    /// the versions and they differ: CUDA's and oneAPI's since 0.5.3, ROCm's until 0.8.
    #[must_use]
    pub fn is_dropped_by(&self, jaxlib: &Version) -> bool {
        is_dropped(&self.name, &self.version, jaxlib)
    }
}

/// Returns true if a release of jaxlib compares versions of plug-ins with its own.
pub(crate) fn compares(jaxlib: &Version) -> bool {
    jaxlib.clone().without_local() >= Version::new(COMPARES_SINCE)
}

/// Returns true if jaxlib compares the version of a plug-in with its own and they differ.
pub(crate) fn is_dropped(name: &str, plugin: &Version, jaxlib: &Version) -> bool {
    let (plugin, jaxlib) = (plugin.clone().without_local(), jaxlib.clone().without_local());
    let is_compared = if name.starts_with("rocm") {
        jaxlib <= Version::new(COMPARES_ROCM_UNTIL)
    } else {
        name.starts_with("cuda") || name.starts_with("oneapi")
    };
    is_compared && compares(&jaxlib) && plugin != jaxlib
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_of_another_number_are_dropped_where_jaxlib_compares() {
        let dropped = |name: &str, plugin: &str, jaxlib: &str| {
            is_dropped(name, &plugin.parse().unwrap(), &jaxlib.parse().unwrap())
        };
        assert!(dropped("cuda12", "0.9.2", "0.9.0.1"));
        assert!(!dropped("cuda12", "0.9.2", "0.9.2"));
        assert!(!dropped("cuda12", "0.5.0", "0.5.1"));
        assert!(dropped("rocm60", "0.5.3", "0.6.0"));
        assert!(!dropped("rocm7", "0.12.0", "0.12.0.1"));
        assert!(!dropped("mps", "0.11.1", "0.11.0"));
    }

    #[test]
    fn plugin_of_a_library_is_that_of_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let module = folder.path().join("jax_plugins/xla_cuda12");
        std::fs::create_dir_all(&module).unwrap();
        let library = module.join("xla_cuda_plugin.so");
        assert_eq!(InstalledPlugin::of_library(&library), None);
        std::fs::write(module.join("version.py"), "__version__ = '0.9.2'\n").unwrap();
        let found = InstalledPlugin::of_library(&library).unwrap();
        assert_eq!((found.name.as_str(), found.version), ("cuda12", "0.9.2".parse().unwrap()));
    }
}
