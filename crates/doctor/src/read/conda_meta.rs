//! The records of a conda prefix: one file `conda-meta/NAME-VERSION-BUILD.json` per package.

use std::{path::Path, str::FromStr as _};

use pep440_rs::Version;

use super::{
    conda_export::{is_for_cuda, pip_name},
    guard::Guard,
};
use crate::{
    environment::Environment,
    names::{is_judged, normal},
    package::Package,
};

/// Adds the information in the records' names. The packages' own metadata take precedence, so names
/// are used only for packages without any.
pub(super) fn read(guard: &Guard, prefix: &Path, environment: &mut Environment) {
    let by_records = environment.packages.is_empty();
    for file in guard.names(&prefix.join("conda-meta")) {
        let Some((name, version, build)) = parts(&file) else { continue };
        environment.jaxlib_holds_plugin |= name == "jaxlib" && is_for_cuda(build);
        if !by_records {
            continue;
        }
        environment.count += 1;
        let Ok(version) = Version::from_str(version) else { continue };
        if name == "python" {
            environment.python.get_or_insert(version);
        } else if let Some(name) = normal(pip_name(name)).filter(|name| is_judged(name)) {
            let package = Package::named(name.clone(), version);
            environment.packages.insert(name, package);
        }
    }
}

/// Splits the name of a record into name, version and build.
fn parts(file: &str) -> Option<(&str, &str, &str)> {
    let mut parts = file.strip_suffix(".json")?.rsplitn(3, '-');
    let (build, version, name) = (parts.next()?, parts.next()?, parts.next()?);
    Some((name, version, build))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_record_are_counted_from_behind() {
        let record = "orbax-checkpoint-0.11.40-pyhd8ed1ab_0.json";
        assert_eq!(parts(record), Some(("orbax-checkpoint", "0.11.40", "pyhd8ed1ab_0")));
        assert_eq!(parts("history"), None);
        assert_eq!(parts("a-1.json"), None);
    }
}
