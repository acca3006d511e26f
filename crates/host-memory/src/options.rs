//! The options of the plug-in, and their form as text: `devices=2,memory=1073741824`.

use std::{borrow::Cow, fmt};

use serdes_plugin::{
    Allocator,
    abi::{LAYOUTS, Layout, layout_named},
};

/// The environment variable from which the shared library takes its options.
pub const ENVIRONMENT_VARIABLE: &str = "SERDES_HOST_PLUGIN";

/// Largest number of devices of a platform; a larger one is taken for a mistyped number.
pub(crate) const MAX_DEVICES: u32 = 1024;

/// Options of the plug-in.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// `devices=N`: the number of devices; 0 is allowed, as on a machine without the hardware. 1 by
    /// default.
    pub(crate) devices: u32,
    /// `memory=BYTES`: the memory of each device, in bytes. By default all devices share 7/8 of the
    /// memory that the machine has left at the start.
    pub(crate) memory: Option<u64>,
    /// `allocator=custom`: the host passes each allocation to the plug-in, the default.
    /// `allocator=bfc`: the host uses its best-fit allocator over it, which grows on demand.
    pub(crate) allocator: Allocator,
    /// `layout=NAME`: writes the C structs in this layout and ignores the sizes that the host
    /// declares, to test how hosts treat older and newer plug-ins. The structs of the host must be
    /// large enough. By default the layout is detected from the declared sizes.
    pub(crate) layout: Option<&'static Layout>,
}

impl Default for Options {
    fn default() -> Self {
        Self { devices: 1, memory: None, allocator: Allocator::Custom, layout: None }
    }
}

/// The error of an option that is unknown, is given twice, or has an invalid value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionError {
    found: String,
    expected: String,
}

impl OptionError {
    fn new(found: &str, expected: &str) -> Self {
        Self { found: found.to_owned(), expected: expected.to_owned() }
    }
}

impl fmt::Display for OptionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "option of the host-memory plug-in: found {:?}, expected {}",
            self.found, self.expected
        )
    }
}

impl std::error::Error for OptionError {}

impl Options {
    /// Parses options of the form `NAME=VALUE,NAME=VALUE`; an empty text gives the default ones.
    ///
    /// # Errors
    /// [`OptionError`] if an option is unknown, is given twice, or has an invalid value.
    pub fn parse(text: &str) -> Result<Self, OptionError> {
        let mut options = Self::default();
        let mut seen = Vec::new();
        for option in text.split(',').map(str::trim).filter(|option| !option.is_empty()) {
            let error = |expected: &str| OptionError::new(option, expected);
            let (name, value) = option.split_once('=').ok_or_else(|| {
                error("NAME=VALUE with one of the names devices, memory, allocator, layout")
            })?;
            let (name, value) = (name.trim(), value.trim());
            if seen.contains(&name) {
                return Err(error("each option once"));
            }
            seen.push(name);
            options.set(name, value).map_err(|expected| OptionError::new(option, &expected))?;
        }
        Ok(options)
    }

    /// Sets the option `name` to a value.
    ///
    /// # Errors
    /// The expected form, for an unknown name or an invalid value.
    fn set(&mut self, name: &str, value: &str) -> Result<(), Cow<'static, str>> {
        match name {
            "devices" => {
                let devices = value.parse().ok().filter(|devices| *devices <= MAX_DEVICES);
                self.devices = devices.ok_or("devices=N with N from 0 to 1024")?;
            }
            "memory" => {
                let bytes = value.parse().map_err(|_| "memory=BYTES with a number of bytes")?;
                self.memory = Some(bytes);
            }
            "allocator" => {
                self.allocator = match value {
                    "custom" => Allocator::Custom,
                    "bfc" => Allocator::BestFit { growth: true },
                    _ => return Err("allocator=custom or allocator=bfc".into()),
                };
            }
            "layout" => {
                let names =
                    || LAYOUTS.iter().map(|layout| layout.name).collect::<Vec<_>>().join(", ");
                let layout = layout_named(value)
                    .ok_or_else(|| format!("layout= with one of {}", names()))?;
                self.layout = Some(layout);
            }
            _ => return Err("one of the options devices, memory, allocator, layout".into()),
        }
        Ok(())
    }

    /// Parses the options in [`ENVIRONMENT_VARIABLE`]; without the variable, returns the default
    /// ones.
    ///
    /// # Errors
    /// [`OptionError`] as for [`Options::parse`], and if the variable is not UTF-8.
    pub fn from_environment() -> Result<Self, OptionError> {
        match std::env::var(ENVIRONMENT_VARIABLE) {
            Ok(text) => Self::parse(&text),
            Err(std::env::VarError::NotPresent) => Ok(Self::default()),
            Err(std::env::VarError::NotUnicode(text)) => Err(OptionError {
                found: text.to_string_lossy().into_owned(),
                expected: format!("UTF-8 text in {ENVIRONMENT_VARIABLE}"),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_means_the_defaults() {
        assert_eq!(Options::parse(""), Ok(Options::default()));
        assert_eq!(Options::default().devices, 1);
    }

    #[test]
    fn every_option_is_read() {
        let options =
            Options::parse("devices=2, memory=4096,allocator=bfc,layout=rfc-257").unwrap();
        assert_eq!((options.devices, options.memory), (2, Some(4096)));
        assert_eq!(options.allocator, Allocator::BestFit { growth: true });
        assert_eq!(options.layout.map(|layout| layout.name), Some("rfc-257"));
    }

    #[test]
    fn a_wrong_option_is_named_with_what_it_could_be() {
        for (text, part) in [
            ("devices=-1", "0 to 1024"),
            ("devices=1025", "0 to 1024"),
            ("memory=1GB", "number of bytes"),
            ("allocator=best", "bfc"),
            ("layout=new", "tensorflow-2.14"),
            ("device=2", "devices"),
            ("devices", "NAME=VALUE"),
            ("devices=1,devices=2", "once"),
        ] {
            let error = Options::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
