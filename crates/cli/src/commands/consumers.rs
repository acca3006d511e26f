//! The consumers of `serdes check`: releases, custom numbers, additional operations.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use serdes_check::{Consumer, Kind, Loader, Options};
use serdes_graphs::graph::DeprecatedOperations;
use serdes_operations::{self as ops, OperationDefinition};

use crate::{
    arguments::{CheckArguments, ModelLoader},
    configuration::{Effective, Origin},
    failure::Failure,
};

/// The consumers for which artifacts are judged.
#[derive(Debug)]
pub(crate) struct Consumers {
    /// At least one TensorFlow consumer, and those of jaxlib; several releases are sorted, oldest
    /// first.
    pub(crate) all: Vec<Consumer>,
    /// Frameworks for which the user asked for several releases, even if only one matches.
    pub(crate) several: Several,
}

/// Frameworks with several releases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Several {
    tensorflow: bool,
    jax: bool,
}

impl Several {
    /// Returns true if a framework has several releases.
    pub(crate) const fn any(self) -> bool {
        self.tensorflow || self.jax
    }

    /// Returns true if there are several releases for artifacts of this kind.
    pub(crate) fn of(self, kind: Option<Kind>) -> bool {
        let is_of_jax = matches!(kind, Some(Kind::JaxExport | Kind::StableHlo));
        if is_of_jax { self.jax } else { self.tensorflow }
    }
}

/// Returns the consumers of the arguments.
pub(crate) fn consumers(arguments: &CheckArguments) -> Result<Consumers, Failure> {
    let mut all = Vec::new();
    for text in &arguments.tensorflow {
        all.extend(tensorflow(text).map_err(|failure| failure.about("--tensorflow"))?);
    }
    if all.is_empty() {
        all.push(Consumer::newest());
    }
    all.sort_by_key(order);
    all.dedup_by_key(|consumer| consumer.release());
    let several = Several {
        tensorflow: are_several(&arguments.tensorflow),
        jax: are_several(&arguments.jax),
    };
    let operations = operations(arguments)?;
    let mut consumers = Vec::new();
    for mut consumer in all {
        for text in &arguments.consumer {
            consumer = consumer
                .with(text)
                .map_err(|error| Failure::new(format_args!("--consumer: {error}")))?;
        }
        consumers.push(consumer.with_operations(operations.iter().cloned()));
    }
    if several.tensorflow && arguments.consumer.iter().any(|text| text.starts_with("graph_def=")) {
        return Err(Failure::new(
            "--consumer graph_def=N stands for one consumer, and --tensorflow names several; name one release, or none",
        ));
    }
    consumers.extend(jaxlibs(&arguments.jax)?);
    Ok(Consumers { all: consumers, several })
}

/// Checks the releases in `serdes.toml` that take effect, so that an unknown one is reported with
/// its line.
pub(crate) fn check_configured(effective: &Effective) -> Result<(), Failure> {
    let arguments = &effective.arguments;
    for setting in &effective.settings {
        let texts = match setting.key.as_str() {
            "tensorflow" => &arguments.tensorflow,
            "jax" => &arguments.jax,
            _ => continue,
        };
        let releases = if setting.key == "jax" { jaxlib } else { tensorflow };
        if matches!(setting.origin, Origin::Line(_)) {
            let place = format!("{}: {}", effective.place(&setting.origin), setting.key);
            for text in texts {
                releases(text).map_err(|failure| failure.about(&place))?;
            }
        }
    }
    Ok(())
}

/// Parses releases of TensorFlow.
fn tensorflow(text: &str) -> Result<Vec<Consumer>, Failure> {
    let text = without_name(text, &["tensorflow", "tf"]);
    Consumer::releases(text)
        .map_err(|error| advice(text).into_iter().fold(Failure::of(error), Failure::with_hint))
}

/// Parses releases of jaxlib.
fn jaxlib(text: &str) -> Result<Vec<Consumer>, Failure> {
    Consumer::jax_releases(without_name(text, &["jaxlib", "jax"])).map_err(Failure::of)
}

/// Removes the package's name from `NAME-RELEASE` or `NAME==RELEASE`.
fn without_name<'t>(text: &'t str, names: &[&str]) -> &'t str {
    let behind = |name: &&str| {
        let rest = text.strip_prefix(*name)?;
        rest.strip_prefix("==").or_else(|| rest.strip_prefix('-'))
    };
    names.iter().find_map(behind).unwrap_or(text)
}

/// Returns the advice for an unknown release of TensorFlow.
fn advice(text: &str) -> Option<String> {
    let newest = Consumer::newest().release()?.to_owned();
    let above = text.strip_prefix(">=").or_else(|| text.strip_suffix(".."));
    if let Some(oldest) = above.map(str::trim).filter(|oldest| number(oldest).is_some()) {
        return Some(format!("a range has both ends: {oldest}..{newest}"));
    }
    (number(text)? > number(&newest)?).then(|| {
        format!(
            "this build knows the releases up to {newest}: upgrade serdes, or take latest, with the operations of that release by --ops FILE"
        )
    })
}

/// Returns the major and minor number of a release.
fn number(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

/// Returns the releases of jaxlib that are named.
fn jaxlibs(texts: &[String]) -> Result<Vec<Consumer>, Failure> {
    let mut all = Vec::new();
    for text in texts {
        all.extend(jaxlib(text).map_err(|failure| failure.about("--jax"))?);
    }
    all.sort_by_key(order);
    all.dedup_by_key(|consumer| consumer.jaxlib());
    Ok(all)
}

/// Returns true if an option names several releases.
fn are_several(texts: &[String]) -> bool {
    let is_range = |text: &str| text.contains("..") || text.starts_with(">=");
    texts.len() > 1 || texts.iter().any(|text| text == "all" || is_range(text))
}

/// Returns the numbers of a release, so that 2.9 sorts before 2.12.
fn order(consumer: &Consumer) -> Vec<u32> {
    let release = consumer.jaxlib().or(consumer.release());
    let numbers = release.unwrap_or_default().split('.');
    numbers.filter_map(|number| number.parse().ok()).collect()
}

/// Returns the operations that the consumer has in addition to its release.
fn operations(arguments: &CheckArguments) -> Result<Vec<OperationDefinition>, Failure> {
    let mut operations = Vec::new();
    for path in &arguments.ops {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(format_args!("--ops {}: {error}", path.display()))
        };
        let listed = match saved_model(path) {
            Some(model) => ops::read_saved_model(&File::open(model).map_err(|e| failed(&e))?),
            None => ops::read_list(&fs::read(path).map_err(|e| failed(&e))?),
        };
        operations.extend(listed.map_err(|error| failed(&error))?);
    }
    for name in &arguments.custom_op {
        if name.is_empty() {
            return Err(Failure::new("--custom-op: an operation has a name"));
        }
        operations.push(OperationDefinition::of_name(name));
    }
    Ok(operations)
}

/// Returns the SavedModel's file in a folder, if it exists.
fn saved_model(path: &Path) -> Option<PathBuf> {
    const FILE: &str = "saved_model.pb";
    if path.is_dir() {
        return Some(path.join(FILE));
    }
    (path.file_name()? == FILE).then(|| path.to_owned())
}

/// Options of the check that do not depend on the consumer.
pub(crate) fn options(arguments: &CheckArguments) -> Result<Options, Failure> {
    let mut options = Options::default()
        .with_loader(match arguments.loader {
            ModelLoader::LoadV1 => Loader::LoadV1,
            ModelLoader::Load => Loader::Load,
            ModelLoader::Cpp => Loader::Cpp,
        })
        .with_verify_data(arguments.verify_data)
        .with_strict(arguments.strict)
        .with_custom_nodes(arguments.custom_node.iter().cloned());
    if let Some(platform) = &arguments.platform {
        options = options.with_platform(platform.as_str());
    }
    if let Some(tags) = &arguments.tags {
        // An empty tag is not a tag: `--tags ""` selects the meta graph without tags.
        options = options.with_tags(tags.iter().filter(|tag| !tag.is_empty()).cloned());
    }
    if let Some(path) = &arguments.deprecated {
        options = options.with_deprecated(deprecated(path)?);
    }
    Ok(options)
}

fn deprecated(path: &Path) -> Result<DeprecatedOperations, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::new(format_args!("cannot read {}: {error}", path.display())))?;
    DeprecatedOperations::from_json(&text)
        .map_err(|error| Failure::new(format_args!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_taken_as_packages_are_written() {
        for (text, expected) in [
            ("jaxlib-0.12.0.1", "0.12.0.1"),
            ("jaxlib==0.9.1", "0.9.1"),
            ("jax==0.9..", "0.9.."),
            ("0.9.1", "0.9.1"),
            ("jaxlib", "jaxlib"),
        ] {
            assert_eq!(without_name(text, &["jaxlib", "jax"]), expected, "{text}");
        }
        assert_eq!(jaxlib("jaxlib-0.12.0.1").unwrap()[0].jaxlib(), Some("0.12.0.1"));
        assert_eq!(tensorflow("tensorflow==2.16").unwrap()[0].release(), Some("2.16"));
        let error = jaxlib("jaxlib-99").unwrap_err().to_string();
        assert!(error.contains("jaxlib 99 "), "{error}");
    }

    #[test]
    fn advice_is_for_open_ranges_and_newer_releases() {
        for (text, words) in [
            (">=2.17", Some("2.17..2.21")),
            ("2.17..", Some("2.17..2.21")),
            ("2.22", Some("--ops FILE")),
            ("3.0.1", Some("--ops FILE")),
            ("2.9", None),
            ("nonsense", None),
            ("..", None),
        ] {
            let found = advice(text);
            let is_right = match words {
                Some(words) => found.as_ref().is_some_and(|found| found.contains(words)),
                None => found.is_none(),
            };
            assert!(is_right, "{text}: {found:?}");
        }
    }
}
