//! Creates a row of the table of packages from a wheel's declarations.

use std::str::FromStr as _;

use pep508_rs::{Requirement, VerbatimUrl};
use serde::Deserialize;
use serdes_doctor::is_judged;
use serdes_releases::PackageRelease;

use super::task_result::TaskResult;

/// Declarations of a wheel, as printed by `read_wheel.py`.
#[derive(Debug, Deserialize)]
pub(super) struct Declared {
    version: String,
    python: Option<String>,
    tag: String,
    requires: Vec<String>,
    minimum_jaxlib: Option<String>,
}

/// Returns the row: requirements on judged packages, with the wheel's text but without spaces
/// around markers.
pub(super) fn row(declared: &Declared) -> TaskResult<PackageRelease> {
    let mut release = PackageRelease {
        version: declared.version.clone(),
        python: declared.python.clone(),
        minimum_jaxlib: declared.minimum_jaxlib.clone(),
        ..PackageRelease::default()
    };
    let is_of_jax = declared.minimum_jaxlib.is_some();
    if !is_of_jax {
        release.tag = Some(declared.tag.clone());
    }
    for text in &declared.requires {
        let requirement = Requirement::<VerbatimUrl>::from_str(text)
            .map_err(|error| format!("{text}: {error}"))?;
        let name = requirement.name.to_string();
        let extra = text.contains("extra ==") || text.contains("extra==");
        let written = compact(text);
        if is_of_jax && extra {
            // jax's extras name plug-ins of its own version; libtpu has its own numbers.
            if name.starts_with("libtpu") && written.contains("\"tpu\"") {
                let pin = written.split(';').next().unwrap_or_default();
                release.libtpu = Some(pin.to_owned());
            }
        } else if is_judged(&name) {
            release.requires.push(written);
        }
    }
    Ok(release)
}

/// Formats a requirement for the table, with spaces only around `and` and `or`.
fn compact(text: &str) -> String {
    let Some((requirement, marker)) = text.split_once(';') else {
        return text.replace(' ', "");
    };
    let marker = marker.trim().replace('\'', "\"");
    let marker = ["==", ">=", "<=", "!=", "<", ">"]
        .iter()
        .fold(marker, |marker, operator| marker.replace(&format!(" {operator} "), operator));
    format!("{};{marker}", requirement.replace(' ', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_written_without_spaces() {
        for (text, written) in [
            ("ml_dtypes>=0.5.0", "ml_dtypes>=0.5.0"),
            ("numpy>=1.26 ; python_version >= \"3.12\"", "numpy>=1.26;python_version>=\"3.12\""),
            (
                "nvidia-cublas>=13; sys_platform == 'linux' and extra == 'with-cuda'",
                "nvidia-cublas>=13;sys_platform==\"linux\" and extra==\"with-cuda\"",
            ),
        ] {
            assert_eq!(compact(text), written);
        }
    }

    #[test]
    fn row_of_a_wheel_has_what_is_judged() {
        let declared = Declared {
            version: "0.10.2".to_owned(),
            python: Some(">=3.11".to_owned()),
            tag: "py3-none-any".to_owned(),
            requires: [
                "jaxlib<=0.10.2,>=0.10.1",
                "opt_einsum",
                "libtpu==0.0.42.*; extra == \"tpu\"",
                "jax-cuda12-plugin==0.10.2; extra == \"cuda12\"",
            ]
            .map(str::to_owned)
            .to_vec(),
            minimum_jaxlib: Some("0.10.1".to_owned()),
        };
        let row = row(&declared).unwrap();
        assert_eq!(row.requires, ["jaxlib<=0.10.2,>=0.10.1"]);
        assert_eq!(row.libtpu.as_deref(), Some("libtpu==0.0.42.*"));
        assert_eq!(row.tag, None);
    }
}
