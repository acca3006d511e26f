//! The effective configuration: the command line takes precedence over the file.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde_json::{Value as Json, json};
use serdes_check::report::Level;

use super::{
    file::{Content, Placed, Value},
    key::Key,
    search,
};
use crate::{arguments::CheckArguments, failure::Failure, terminal::shown_path};

/// Source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The default: neither the file nor the command line has it.
    Default,
    /// A line of the file.
    Line(usize),
    /// An option or argument.
    CommandLine,
}

/// A value with its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The key in the file's notation: `tensorflow`, `levels.attribute_dropped`.
    pub(crate) key: String,
    /// The value.
    pub(crate) value: Json,
    /// Its source.
    pub(crate) origin: Origin,
}

/// The effective configuration.
#[derive(Debug)]
pub(crate) struct Effective {
    /// Arguments of `check`, with the file's values where the command line has none.
    pub(crate) arguments: CheckArguments,
    /// The file, if there is one.
    pub(crate) file: Option<PathBuf>,
    /// All values.
    pub(crate) settings: Vec<Setting>,
}

impl Effective {
    /// Reads the file, if there is one, and merges it with the command line.
    ///
    /// # Errors
    /// If the file cannot be read or is invalid.
    pub(crate) fn of(arguments: &CheckArguments) -> Result<Self, Failure> {
        let options = &arguments.configuration;
        let file = match &options.config {
            Some(path) => Some(path.clone()),
            None if options.no_config => None,
            None => search::nearest(),
        };
        let content = file.as_deref().map_or_else(|| Ok(Content::default()), Content::read)?;
        let mut effective = Self { arguments: arguments.clone(), file, settings: Vec::new() };
        for key in Key::ALL {
            effective.take(key, content.check.get(&key));
        }
        effective.take_levels(content.levels);
        Ok(effective)
    }

    /// Adds the levels of the file before those of the command line, of which the last one wins.
    /// `--strict` on the command line denies rules that the file only warns of or allows.
    fn take_levels(&mut self, found: BTreeMap<String, Placed<Level>>) {
        let is_strict = self.arguments.strict
            && self.settings.iter().any(|setting| {
                setting.key == Key::Strict.name() && setting.origin == Origin::CommandLine
            });
        let said = &mut self.arguments.reports.levels.levels;
        let mut settings: BTreeMap<String, (Level, Origin)> = BTreeMap::new();
        for (rule, level) in said.iter() {
            settings.insert(rule.clone(), (*level, Origin::CommandLine));
        }
        let mut levels = Vec::new();
        for (rule, Placed { value, line }) in found {
            if is_strict && value != Level::Deny {
                settings.entry(rule).or_insert((Level::Deny, Origin::CommandLine));
                continue;
            }
            settings.entry(rule.clone()).or_insert((value, Origin::Line(line)));
            levels.push((rule, value));
        }
        levels.append(said);
        *said = levels;
        self.settings.extend(settings.into_iter().map(|(rule, (level, origin))| Setting {
            key: format!("levels.{rule}"),
            value: json!(level.id()),
            origin,
        }));
    }

    fn take(&mut self, key: Key, found: Option<&Placed<Value>>) {
        let folder = self.file.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        let folder = folder.to_owned();
        let arguments = &mut self.arguments;
        let (value, origin) = match key {
            Key::Paths => {
                let said = &mut arguments.paths;
                let in_folder = |text: &String| folder.join(text);
                let origin = texts(said, found, in_folder);
                (json!(said.iter().map(|path| shown_path(path)).collect::<Vec<_>>()), origin)
            }
            Key::Exclude => list(&mut arguments.exclude, found),
            Key::Tensorflow => list(&mut arguments.tensorflow, found),
            Key::Jax => list(&mut arguments.jax, found),
            Key::CustomOps => list(&mut arguments.custom_op, found),
            Key::Tags => {
                let origin = match (&arguments.tags, found) {
                    (Some(_), _) => Origin::CommandLine,
                    (None, Some(Placed { value: Value::Texts(tags), line })) => {
                        arguments.tags = Some(tags.clone());
                        Origin::Line(*line)
                    }
                    _ => Origin::Default,
                };
                (json!(arguments.tags), origin)
            }
            Key::Strict => flag(&mut arguments.strict, arguments.configuration.no_strict, found),
            Key::RequireKnown => {
                flag(&mut arguments.require_known, arguments.configuration.no_require_known, found)
            }
        };
        self.settings.push(Setting { key: key.name().to_owned(), value, origin });
    }

    /// Describes the source of a value.
    pub(crate) fn place(&self, origin: &Origin) -> String {
        match (origin, &self.file) {
            (Origin::CommandLine, _) => "command line".to_owned(),
            (Origin::Line(line), Some(file)) => format!("{}:{line}", shown_path(file)),
            _ => "default".to_owned(),
        }
    }
}

fn list(said: &mut Vec<String>, found: Option<&Placed<Value>>) -> (Json, Origin) {
    let origin = texts(said, found, String::clone);
    (json!(said), origin)
}

/// Uses the texts of the file if the command line has none.
fn texts<T>(said: &mut Vec<T>, found: Option<&Placed<Value>>, of: impl Fn(&String) -> T) -> Origin {
    match found {
        _ if !said.is_empty() => Origin::CommandLine,
        Some(Placed { value: Value::Texts(texts), line }) => {
            *said = texts.iter().map(of).collect();
            Origin::Line(*line)
        }
        _ => Origin::Default,
    }
}

/// Uses the flag of the file if the command line neither sets nor clears it.
fn flag(said: &mut bool, is_denied: bool, found: Option<&Placed<Value>>) -> (Json, Origin) {
    let origin = match found {
        _ if *said || is_denied => Origin::CommandLine,
        Some(Placed { value: Value::Flag(flag), line }) => {
            *said = *flag;
            Origin::Line(*line)
        }
        _ => Origin::Default,
    };
    (json!(*said), origin)
}
