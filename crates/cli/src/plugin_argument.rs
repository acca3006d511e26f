//! The argument `--plugin`: the embedded plug-in, or a library of either interface with the options
//! of its client.
//!
//! The interface of a library is detected from its file, without running or loading it.

use std::path::{Path, PathBuf};

use serdes_pjrt::Value;
use serdes_stream_executor::elf;

use crate::failure::Failure;

/// Prefix of a path that is loaded as a PJRT plug-in.
const PJRT: &str = "pjrt:";

/// A plug-in from the command line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PluginArgument {
    /// The embedded plug-in, or a library of a StreamExecutor plug-in; also any other file, so that
    /// loading it reports the error.
    StreamExecutor(String),
    /// A library of a PJRT plug-in.
    Pjrt {
        /// The library.
        path: PathBuf,
        /// Options of its client.
        options: Vec<(String, Value)>,
    },
}

impl PluginArgument {
    /// Parses `host…`, `PATH`, `PATH:KEY=VALUE,…` or `pjrt:PATH…`.
    ///
    /// # Errors
    /// For invalid options, or options that this kind of plug-in does not accept.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        if text == "host" || text.starts_with("host:") {
            return Ok(Self::StreamExecutor(text.to_owned()));
        }
        let forced = text.strip_prefix(PJRT).filter(|_| !Path::new(text).exists());
        let (path, options) = split(forced.unwrap_or(text));
        let is_pjrt = forced.is_some()
            || elf::inspect(path).is_ok_and(|found| found.api() == Some(elf::Api::Pjrt));
        match (is_pjrt, options) {
            (true, options) => Ok(Self::Pjrt {
                path: PathBuf::from(path),
                options: named_values(options.unwrap_or_default())?,
            }),
            (false, Some(options)) => Err(Failure::new(format_args!(
                "{path} is no PJRT plug-in, and takes no options: found `{options}`"
            ))),
            (false, None) => Ok(Self::StreamExecutor(text.to_owned())),
        }
    }
}

/// Splits the path of a file from its options: the longest existing path, or all.
fn split(text: &str) -> (&str, Option<&str>) {
    if Path::new(text).exists() {
        return (text, None);
    }
    let mut cuts = text.rmatch_indices(':').filter_map(|(at, _)| {
        let (path, options) = text.split_at_checked(at)?;
        Path::new(path).is_file().then(|| (path, options.strip_prefix(':')))
    });
    cuts.next().unwrap_or((text, None))
}

/// Parses options of a client: `key=value`, separated by commas outside of brackets.
fn named_values(text: &str) -> Result<Vec<(String, Value)>, Failure> {
    let mut depth = 0_i32;
    let parts = text.split(|letter| {
        depth += i32::from(letter == '[') - i32::from(letter == ']');
        letter == ',' && depth == 0
    });
    let mut values: Vec<(String, Value)> = Vec::new();
    for part in parts.filter(|part| !part.is_empty()) {
        let named = part.split_once('=').filter(|(name, _)| !name.is_empty());
        let Some((name, text)) = named else {
            return Err(Failure::new(format_args!(
                "an option of the plug-in is `{part}`, expected KEY=VALUE"
            )));
        };
        if values.iter().any(|(known, _)| known == name) {
            return Err(Failure::new(format_args!("the option `{name}` is there twice; give one")));
        }
        values.push((name.to_owned(), value(text)));
    }
    Ok(values)
}

/// Parses an integer, integers in brackets, a number, true or false; otherwise a text.
fn value(text: &str) -> Value {
    let list = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Some(list) = list {
        let numbers = list.split(',').map(str::trim).filter(|number| !number.is_empty());
        let numbers: Result<Vec<i64>, _> = numbers.map(str::parse).collect();
        if let Ok(numbers) = numbers {
            return Value::Integers(numbers);
        }
    }
    if let Ok(integer) = text.parse() {
        return Value::Integer(integer);
    }
    // Other numbers of Rust, such as `nan` and `infinity`, are texts.
    let is_number = text.contains(|letter: char| letter.is_ascii_digit());
    match (text, text.parse()) {
        ("true", _) => Value::Bool(true),
        ("false", _) => Value::Bool(false),
        (_, Ok(number)) if is_number => Value::Float(number),
        _ => Value::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_what_it_looks_like() {
        for (text, expected) in [
            ("4", Value::Integer(4)),
            ("-7", Value::Integer(-7)),
            ("0.75", Value::Float(0.75)),
            ("1e3", Value::Float(1000.0)),
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("True", Value::Text("True".to_owned())),
            ("nan", Value::Text("nan".to_owned())),
            ("", Value::Text(String::new())),
            ("[0,2]", Value::Integers(vec![0, 2])),
            ("[]", Value::Integers(vec![])),
            ("[a]", Value::Text("[a]".to_owned())),
            ("99999999999999999999", Value::Float(1e20)),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
    }

    #[test]
    fn options_are_separated_by_commas_outside_of_brackets() {
        let found = named_values("visible_devices=[0,1],allocator=bfc,x=a=b").unwrap();
        let expected = [
            ("visible_devices", Value::Integers(vec![0, 1])),
            ("allocator", Value::Text("bfc".to_owned())),
            ("x", Value::Text("a=b".to_owned())),
        ];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)));
        assert!(named_values("4").is_err());
        assert!(named_values("=4").is_err());
        assert!(named_values("a=1,a=2").is_err());
        assert_eq!(named_values("").unwrap(), []);
    }

    #[test]
    fn the_options_stand_behind_the_longest_path_that_is_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a:b.so");
        std::fs::write(&file, "no library").unwrap();
        let file = file.to_str().unwrap();
        let with = |options: &str| format!("{file}{options}");
        assert_eq!(split(file), (file, None));
        assert_eq!(split(&with(":c=1")), (file, Some("c=1")));
        assert_eq!(split(&with(":c=x:y")), (file, Some("c=x:y")));
        assert_eq!(split("nowhere:c=1"), ("nowhere:c=1", None));
        // Not a plug-in of any kind: loading it reports that.
        let plain = PluginArgument::StreamExecutor(file.to_owned());
        assert_eq!(PluginArgument::parse(file).unwrap(), plain);
        assert!(PluginArgument::parse(&with(":c=1")).is_err());
        let forced = PluginArgument::parse(&format!("pjrt:{file}:c=1")).unwrap();
        let options = vec![("c".to_owned(), Value::Integer(1))];
        assert_eq!(forced, PluginArgument::Pjrt { path: file.into(), options });
    }

    #[test]
    fn the_embedded_plug_in_keeps_its_own_options() {
        for text in ["host", "host:devices=2"] {
            let expected = PluginArgument::StreamExecutor(text.to_owned());
            assert_eq!(PluginArgument::parse(text).unwrap(), expected);
        }
    }
}
