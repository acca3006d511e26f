//! Names of the frameworks for `plugin check --for`.

use std::str::FromStr as _;

use pep440_rs::Version;
use serdes_pjrt::Framework;

use super::nearest::nearest;
use crate::failure::Failure;

/// Name for all known frameworks.
pub(super) const ALL: &str = "all";

/// Prefixes of names of releases, each with the table's prefix.
const PREFIXES: [(&str, &str); 8] = [
    ("jaxlib==", "jaxlib-"),
    ("jax==", "jaxlib-"),
    ("jaxlib-", "jaxlib-"),
    ("jax-", "jaxlib-"),
    ("torch_xla==", "torch_xla-"),
    ("torch-xla==", "torch_xla-"),
    ("torch_xla-", "torch_xla-"),
    ("torch-xla-", "torch_xla-"),
];

/// Returns the frameworks of these names: `all` stands for the releases of jaxlib, `jaxlib-0.8..`
/// for those since a release, and `jax==0.9.1` for the jaxlib of that number. Names of torch_xla
/// have the same forms.
pub(super) fn frameworks(names: &[String]) -> Result<Vec<Framework>, Failure> {
    let mut found = Vec::new();
    for name in names {
        found.extend(named(name)?);
    }
    Ok(found)
}

fn named(name: &str) -> Result<Vec<Framework>, Failure> {
    if name == ALL {
        return Ok(Framework::names().filter_map(|name| Framework::named(&name)).collect());
    }
    let found =
        PREFIXES.iter().find_map(|(prefix, family)| Some((*family, name.strip_prefix(prefix)?)));
    let Some((family, number)) = found else {
        return Framework::named(name).map(|one| vec![one]).ok_or_else(|| unknown(name));
    };
    if let Some((from, to)) = number.split_once("..") {
        return range(family, from, to).ok_or_else(|| unknown(name));
    }
    release(family, number).map(|one| vec![one]).ok_or_else(|| unknown(name))
}

/// Returns the names of all releases.
fn known() -> impl Iterator<Item = String> {
    Framework::names().chain(Framework::torch_xla_names())
}

fn number_of(name: &str, family: &str) -> Option<Version> {
    Version::from_str(name.strip_prefix(family)?).ok()
}

/// Returns the release of a number in any form: 2.9 is 2.9.0.
fn release(family: &str, number: &str) -> Option<Framework> {
    let number = Version::from_str(number).ok()?;
    let name = known().find(|name| number_of(name, family).as_ref() == Some(&number))?;
    Framework::named(&name)
}

/// Returns the releases between two, inclusive; an omitted end is open, and `0.9` as the last one
/// includes 0.9.2. `None` if a number is invalid, or there is no release between them.
fn range(family: &str, from: &str, to: &str) -> Option<Vec<Framework>> {
    let bound = |text: &str| match text {
        "" => Ok(None),
        text => Version::from_str(text).map(Some),
    };
    let (from, to) = (bound(from).ok()?, bound(to).ok()?);
    let is_between = |name: &String| {
        number_of(name, family).is_some_and(|number| {
            from.as_ref().is_none_or(|from| number >= *from)
                && to
                    .as_ref()
                    .is_none_or(|to| number <= *to || number.release().starts_with(to.release()))
        })
    };
    let found: Vec<Framework> =
        known().filter(is_between).filter_map(|name| Framework::named(&name)).collect();
    (!found.is_empty()).then_some(found)
}

fn unknown(name: &str) -> Failure {
    let known: Vec<String> = known().collect();
    // Prefer the newest of equally near names.
    let meant = nearest(name, known.iter().rev().map(String::as_str));
    let meant = meant.map(|meant| format!(" (did you mean {meant}?)")).unwrap_or_default();
    let ends = |family: &str| {
        let mut names = known.iter().filter(|name| name.starts_with(family));
        let (first, last) = (names.next(), names.next_back());
        format!("{} to {}", first.cloned().unwrap_or_default(), last.cloned().unwrap_or_default())
    };
    Failure::new(format_args!(
        "`{name}` is no framework that is known{meant}; use a release from {} or {}, a range such as jaxlib-0.8.., \
         jax==0.9.1, all, or pjrt-0.N for a framework that was built with that version",
        ends("jaxlib-"),
        ends("torch_xla-")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> Result<Vec<String>, String> {
        let found = frameworks(&[name.to_owned()]).map_err(|error| error.to_string())?;
        Ok(found.iter().map(|one| one.name().to_owned()).collect())
    }

    #[test]
    fn ranges_of_releases_include_both_ends() {
        assert_eq!(of("jaxlib-0.9.1..0.9.2").unwrap(), ["jaxlib-0.9.1", "jaxlib-0.9.2"]);
        assert_eq!(of("jaxlib-0.9.1..0.9").unwrap(), ["jaxlib-0.9.1", "jaxlib-0.9.2"]);
        assert_eq!(of("jaxlib-0.12..").unwrap(), ["jaxlib-0.12.0", "jaxlib-0.12.0.1"]);
        assert!(of("jaxlib-99..").is_err());
    }

    #[test]
    fn requirements_name_releases() {
        assert_eq!(of("jax==0.9.1").unwrap(), ["jaxlib-0.9.1"]);
        assert_eq!(of("jaxlib==0.9.1").unwrap(), ["jaxlib-0.9.1"]);
        assert_eq!(of("pjrt-0.96").unwrap(), ["pjrt-0.96"]);
    }

    #[test]
    fn releases_of_torch_xla_are_named_as_those_of_jaxlib() {
        for name in ["torch_xla-2.9.0", "torch-xla-2.9", "torch_xla==2.9.0", "torch-xla==2.9"] {
            assert_eq!(of(name).unwrap(), ["torch_xla-2.9.0"], "{name}");
        }
        assert_eq!(of("torch_xla-2.8..2.8").unwrap(), ["torch_xla-2.8.0", "torch_xla-2.8.1"]);
        assert_eq!(of("torch_xla-2.8.1..").unwrap(), ["torch_xla-2.8.1", "torch_xla-2.9.0"]);
        assert!(of("all").unwrap().iter().all(|name| name.starts_with("jaxlib-")));
        let error = of("torch_xla-2.9.5").unwrap_err();
        assert!(error.contains("did you mean torch_xla-2.9.0?"), "{error}");
        assert!(error.contains("torch_xla-2.1.0 to torch_xla-2.9.0"), "{error}");
    }

    #[test]
    fn unknown_names_get_the_nearest_one() {
        let error = of("jaxlib-0.9.3").unwrap_err();
        assert!(error.contains("did you mean jaxlib-0.9.2?"), "{error}");
        assert!(error.len() < 400, "{error}");
    }
}
