//! The plug-ins of a process, looked up by the names of their platforms and the types of their
//! devices (RFC #257, "Registration": platforms and device factories are registered under their
//! names).

use std::path::{Path, PathBuf};

use super::{
    device::Device,
    error::Error,
    plugin::{Plugin, PluginOptions},
};

/// Open plug-ins, in the order in which they were added.
///
/// A device is named by its type and a number: `GPU:1`. If several plug-ins have devices of one
/// type, the numbers continue from one plug-in to the next.
///
/// ```
/// use serdes_stream_executor::{Plugin, PluginRegistry};
///
/// let mut plugins = PluginRegistry::new();
/// plugins.add(Plugin::host())?;
/// let device = plugins.device("SERDES_HOST:0")?;
/// # assert_eq!(device.ordinal(), 0);
/// # Ok::<(), serdes_stream_executor::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct PluginRegistry {
    plugins: Vec<Plugin>,
}

/// A library that was skipped.
#[derive(Debug)]
#[non_exhaustive]
pub struct SkippedLibrary {
    /// The file.
    pub path: PathBuf,
    /// The reason why it cannot be used as a plug-in here.
    pub error: Error,
}

impl PluginRegistry {
    /// Creates a registry without plug-ins.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an open plug-in.
    ///
    /// # Errors
    /// [`Error::AlreadyRegistered`] if there is a platform of the same name.
    pub fn add(&mut self, plugin: Plugin) -> Result<(), Error> {
        let name = plugin.platform().name().to_owned();
        if self.platform(&name).is_some() {
            return Err(Error::AlreadyRegistered { what: "the platform", name });
        }
        self.plugins.push(plugin);
        Ok(())
    }

    /// Opens every library in `directory` whose name ends in `.so`, by name, and adds those that
    /// are plug-ins. Returns the skipped ones with the reasons: one bad library does not exclude
    /// the others, as in TensorFlow. Subdirectories are not searched.
    ///
    /// # Errors
    /// [`Error::System`] if the directory cannot be read.
    pub fn load_directory(
        &mut self,
        directory: impl AsRef<Path>,
        options: PluginOptions,
    ) -> Result<Vec<SkippedLibrary>, Error> {
        let unreadable = |error| Error::System { doing: "read the directory of plug-ins", error };
        let mut libraries = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.extension().is_some_and(|extension| extension == "so") {
                libraries.push(path);
            }
        }
        libraries.sort();
        let mut skipped = Vec::new();
        for path in libraries {
            let opened = options.load(&path).and_then(|plugin| self.add(plugin));
            if let Err(error) = opened {
                skipped.push(SkippedLibrary { path, error });
            }
        }
        Ok(skipped)
    }

    /// Returns the plug-ins, in the order in which they were added.
    #[must_use]
    pub fn plugins(&self) -> &[Plugin] {
        &self.plugins
    }

    /// Returns the plug-in whose platform has this name.
    #[must_use]
    pub fn platform(&self, name: &str) -> Option<&Plugin> {
        self.plugins.iter().find(|plugin| plugin.platform().name() == name)
    }

    /// Returns the names of all devices, as [`Self::device`] accepts them.
    #[must_use]
    pub fn device_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for (index, plugin) in self.plugins.iter().enumerate() {
            let platform = plugin.platform();
            let kind = platform.device_type();
            let before = self.count_before(index, kind);
            names.extend((0..plugin.device_count()).map(|n| format!("{kind}:{}", before + n)));
        }
        names
    }

    /// Returns the number of devices of a type in the plug-ins before this one.
    fn count_before(&self, index: usize, kind: &str) -> usize {
        let before = self.plugins.iter().take(index);
        before
            .filter(|plugin| plugin.platform().device_type() == kind)
            .map(Plugin::device_count)
            .sum()
    }

    /// Returns the device with this name: `GPU:1`, or `/device:GPU:1`; without a number the first
    /// of its type.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if there is none, with the existing names; the errors of creating
    /// the device.
    pub fn device(&self, name: &str) -> Result<Device, Error> {
        let missing = || {
            let names = self.device_names();
            let names = if names.is_empty() { "no devices".to_owned() } else { names.join(", ") };
            Error::InvalidArgument {
                what: "the name of the device",
                found: format!("`{}` (there are {names})", name.escape_debug()),
                expected: "the type of a device that is there, a colon and its number",
            }
        };
        let bare = name.strip_prefix("/device:").unwrap_or(name);
        let (kind, number) = match bare.split_once(':') {
            Some((kind, number)) => (kind, number.parse::<usize>().map_err(|_| missing())?),
            None => (bare, 0),
        };
        for (index, plugin) in self.plugins.iter().enumerate() {
            if plugin.platform().device_type() != kind {
                continue;
            }
            let before = self.count_before(index, kind);
            if let Some(ordinal) = number.checked_sub(before)
                && ordinal < plugin.device_count()
            {
                return plugin.device(ordinal);
            }
        }
        Err(missing())
    }
}
