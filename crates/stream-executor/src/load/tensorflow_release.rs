//! The interface of a TensorFlow release to plug-ins, known without loading anything: the C
//! functions that it exports, and the layout under which it registers plug-ins.

use std::{collections::HashMap, sync::LazyLock};

use serdes_abi::ErrorKind;

use super::elf::{Api, Inspection, is_of_tensorflow};

/// The releases with known exported functions, oldest first; one line of the table.
static RELEASES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let mut lines = TABLE.lines().filter_map(|line| line.strip_prefix("# releases: "));
    lines.next().unwrap_or_default().split(' ').collect()
});

/// The layout of all these releases: `force_memory_growth` was added before the first.
const LAYOUT: &str = "tensorflow-2.14";

/// Each line has a name, which may be followed by the first and the last release that export it.
const TABLE: &str = include_str!("tensorflow_symbols.txt");

/// The indices of the first and the last release that export a function, by its name.
static EXPORTS: LazyLock<HashMap<&str, (usize, usize)>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    let entry = |line: &'static str| {
        let mut words = line.split(' ');
        let name = words.next()?;
        let mut release = || {
            let name = words.next()?;
            RELEASES.iter().position(|release| *release == name)
        };
        let first = release().unwrap_or(0);
        Some((name, (first, release().unwrap_or(RELEASES.len().saturating_sub(1)))))
    };
    lines.filter_map(entry).collect()
});

/// A release of TensorFlow as the host of StreamExecutor plug-ins.
///
/// ```no_run
/// use serdes_stream_executor::{TensorFlowRelease, elf};
///
/// let release = TensorFlowRelease::named("2.18")?;
/// let fit = release.fit(&elf::inspect("libmy_device.so")?);
/// println!("{:?} are missing; the layout is {:?}", fit.not_exported, fit.layout);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorFlowRelease {
    index: usize,
}

/// The error of a release whose exported functions are not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the functions that TensorFlow {found:?} exports are not known; known are those of {}",
    RELEASES.join(", ")
)]
#[non_exhaustive]
pub struct UnknownTensorFlowRelease {
    /// The text found, cut at 40 characters.
    pub found: String,
}

impl UnknownTensorFlowRelease {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        ErrorKind::NotFound
    }
}

/// The result of comparing a plug-in's file with a release.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorFlowFit {
    /// The layout under which the release would register it; `None` if it exports no
    /// `SE_InitPlugin`.
    pub layout: Option<&'static str>,
    /// The functions of TensorFlow that the plug-in needs and the release does not export, so that
    /// it cannot be loaded.
    pub not_exported: Vec<String>,
    /// Functions and data of TensorFlow's C++ that the plug-in needs. No release promises them, and
    /// it is not known here which release has them: such a plug-in works only with the release that
    /// it was built for.
    pub undecided: Vec<String>,
}

impl TensorFlowRelease {
    /// Returns a release, given as `MAJOR.MINOR`, `MAJOR.MINOR.PATCH` or `latest`: patches of a
    /// release export the same functions.
    ///
    /// # Errors
    /// [`UnknownTensorFlowRelease`] for a release before 2.12, after 2.21, or none at all.
    pub fn named(release: &str) -> Result<Self, UnknownTensorFlowRelease> {
        if release == "latest" {
            return Ok(Self { index: RELEASES.len().saturating_sub(1) });
        }
        let is_patch =
            |rest: &str| rest.strip_prefix('.').is_some_and(|patch| patch.parse::<u16>().is_ok());
        let index = RELEASES.iter().position(|name| {
            release.strip_prefix(name).is_some_and(|rest| rest.is_empty() || is_patch(rest))
        });
        let unknown = || UnknownTensorFlowRelease { found: release.chars().take(40).collect() };
        index.map(|index| Self { index }).ok_or_else(unknown)
    }

    /// Returns the name, `MAJOR.MINOR`.
    #[must_use]
    pub fn name(self) -> &'static str {
        RELEASES.get(self.index).copied().unwrap_or_default()
    }

    /// Returns true if the release exports a C function with this name.
    #[must_use]
    pub fn exports(self, symbol: &str) -> bool {
        EXPORTS.get(symbol).is_some_and(|(first, last)| (*first..=*last).contains(&self.index))
    }

    /// Returns the first and the last of the known releases that export a function; `None` if none
    /// does.
    #[must_use]
    pub fn exporters_of(symbol: &str) -> Option<(&'static str, &'static str)> {
        let (first, last) = EXPORTS.get(symbol)?;
        Some((RELEASES.get(*first)?, RELEASES.get(*last)?))
    }

    /// Checks if a plug-in could be loaded and registered, as far as its file shows.
    #[must_use]
    pub fn fit(self, plugin: &Inspection) -> TensorFlowFit {
        let needed = |is_meant: &dyn Fn(&str) -> bool| -> Vec<String> {
            plugin.undefined.iter().filter(|symbol| is_meant(symbol)).cloned().collect()
        };
        TensorFlowFit {
            layout: (plugin.api() == Some(Api::StreamExecutor)).then_some(LAYOUT),
            not_exported: needed(&|symbol| is_of_tensorflow(symbol) && !self.exports(symbol)),
            undecided: needed(&is_of_its_cpp),
        }
    }
}

/// Returns true for a mangled C++ name in one of TensorFlow's namespaces.
fn is_of_its_cpp(symbol: &str) -> bool {
    const NAMESPACES: [&str; 4] = ["10tensorflow", "15stream_executor", "3tsl", "3xla"];
    symbol.starts_with("_Z") && NAMESPACES.iter().any(|name| symbol.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(name: &str) -> TensorFlowRelease {
        TensorFlowRelease::named(name).unwrap()
    }

    #[test]
    fn releases_are_named_with_and_without_their_patch() {
        assert_eq!(release("2.16.2"), release("2.16"));
        assert_eq!(release("latest").name(), "2.21");
        for name in ["2.1", "2.11", "2.22", "2.16.", "2.16.x", "2.160", "", "all"] {
            let error = TensorFlowRelease::named(name).unwrap_err().to_string();
            assert!(error.contains("2.12, 2.13"), "{error}");
        }
    }

    #[test]
    fn symbol_table_has_unique_names_with_known_releases() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        let mut count = 0;
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            assert!(is_of_tensorflow(words[0]), "{line}");
            assert!(words.len() == 1 || words.len() == 3, "{line}");
            assert!(words[1..].iter().all(|word| RELEASES.contains(word)), "{line}");
            let (first, last) = EXPORTS[words[0]];
            assert!(first <= last, "{line}");
            count += 1;
        }
        assert!(count > 600);
        assert_eq!(EXPORTS.len(), count);
    }

    #[test]
    fn missing_exports_of_a_release_are_listed() {
        let plugin = |symbols: &[&str]| Inspection {
            architecture: "x86_64".to_owned(),
            shared: true,
            exports: vec!["SE_InitPlugin".to_owned()],
            entry_is_data: false,
            undefined: symbols.iter().map(|&symbol| symbol.to_owned()).collect(),
            served: Vec::new(),
            unserved: Vec::new(),
            needed: Vec::new(),
        };
        let cpp = "_ZN10tensorflow8OpKernelD2Ev";
        let symbols = ["TF_AssignVariable", "TF_NewStatus", "TF_NoSuchFunction", cpp, "malloc"];
        let older = release("2.18").fit(&plugin(&symbols));
        assert_eq!(older.layout, Some("tensorflow-2.14"));
        assert_eq!(older.not_exported, ["TF_NoSuchFunction"]);
        assert_eq!(older.undecided, [cpp]);
        let newer = release("2.19").fit(&plugin(&symbols));
        assert_eq!(newer.not_exported, ["TF_AssignVariable", "TF_NoSuchFunction"]);
        assert_eq!(TensorFlowRelease::exporters_of("TF_AssignVariable"), Some(("2.12", "2.18")));
        assert_eq!(TensorFlowRelease::exporters_of("TF_NoSuchFunction"), None);
        let kernels = Inspection { exports: vec!["TF_InitKernel".to_owned()], ..plugin(&[]) };
        assert_eq!(release("2.19").fit(&kernels).layout, None);
    }
}
