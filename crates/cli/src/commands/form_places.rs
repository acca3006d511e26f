//! Destinations of output formats: `--format FORMAT`, `--format FORMAT=FILE`, `--output`.

use std::path::{Path, PathBuf};

use super::nearest::nearest;
use crate::{
    failure::Failure,
    terminal::{shown, shown_path},
};

/// Output formats, each with its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FormPlaces {
    /// The format on standard output; `None` if it goes to a file.
    pub(crate) standard: Option<&'static str>,
    /// The formats that go to files.
    pub(crate) files: Vec<(&'static str, PathBuf)>,
}

impl FormPlaces {
    /// Returns the destinations in the values of `--format` and `--output`, for these formats;
    /// without any it is `text`, or `json` with `--json`.
    ///
    /// # Errors
    /// If a format is unknown, or two of them have one destination.
    pub(crate) fn of(
        formats: &[String],
        output: Option<&Path>,
        json: bool,
        known: &[&'static str],
    ) -> Result<Self, Failure> {
        let mut plain = json.then_some("json");
        let mut files: Vec<(&'static str, PathBuf)> = Vec::new();
        for value in formats {
            let (name, file) = match value.split_once('=') {
                Some((name, file)) => (name, Some(file).filter(|file| *file != "-")),
                None => (value.as_str(), None),
            };
            let form = form(name, known)?;
            match file {
                Some("") => {
                    let expected = format_args!("--format {form}=: expected a file behind `=`");
                    return Err(Failure::new(expected));
                }
                Some(file) => files.push((form, file.into())),
                None if plain.is_some_and(|other| other != form) => {
                    return Err(Failure::new("two reports for standard output").with_hint(
                        format_args!("name a file for each further one: --format {form}=FILE"),
                    ));
                }
                None => plain = Some(form),
            }
        }
        let form = plain.unwrap_or("text");
        let standard = match output.filter(|output| *output != Path::new("-")) {
            Some(output) => {
                files.push((form, output.to_owned()));
                None
            }
            None => Some(form),
        };
        match twice(&files) {
            Some(file) => Err(Failure::new(format_args!(
                "two reports for {}; name a file for each",
                shown_path(file)
            ))),
            None => Ok(Self { standard, files }),
        }
    }
}

/// Returns the format of this name.
fn form(name: &str, known: &[&'static str]) -> Result<&'static str, Failure> {
    if let Some(form) = known.iter().find(|form| **form == name) {
        return Ok(form);
    }
    let failure = Failure::new(format_args!(
        "--format: there is no form {:?} of these results",
        shown(name).to_string()
    ));
    Err(match nearest(name, known.iter().copied()) {
        Some(meant) => failure.with_hint(format_args!("did you mean {meant}?")),
        None => failure.with_hint(format_args!("expected {}", known.join(", "))),
    })
}

/// Returns a file that is the destination of two formats.
fn twice<'f>(files: &'f [(&'static str, PathBuf)]) -> Option<&'f Path> {
    let is_again = |(number, (_, file)): &(usize, &(&str, PathBuf))| {
        files.iter().skip(number + 1).any(|(_, other)| other == file)
    };
    files.iter().enumerate().find(is_again).map(|(_, (_, file))| file.as_path())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(formats: &[&str], output: Option<&str>, json: bool) -> Result<FormPlaces, Failure> {
        let formats: Vec<String> = formats.iter().map(|&format| format.to_owned()).collect();
        let known = ["text", "github", "sarif", "html", "json"];
        FormPlaces::of(&formats, output.map(Path::new), json, &known)
    }

    #[test]
    fn forms_go_where_the_options_say() {
        for (formats, output, json, standard, files) in [
            (&[][..], None, false, Some("text"), vec![]),
            (&[], None, true, Some("json"), vec![]),
            (&["json"], None, true, Some("json"), vec![]),
            (&["sarif"], None, false, Some("sarif"), vec![]),
            (&["sarif", "sarif"], None, false, Some("sarif"), vec![]),
            (&["sarif"], Some("a"), false, None, vec![("sarif", "a")]),
            (&["sarif"], Some("-"), false, Some("sarif"), vec![]),
            (&[], Some("a"), false, None, vec![("text", "a")]),
            (&["sarif=a=b"], None, false, Some("text"), vec![("sarif", "a=b")]),
            (&["sarif=-"], None, false, Some("sarif"), vec![]),
            (&["sarif=a", "json"], Some("b"), false, None, vec![("sarif", "a"), ("json", "b")]),
        ] {
            let files = files.into_iter().map(|(form, file)| (form, file.into())).collect();
            let found = places(formats, output, json).unwrap();
            assert_eq!(found, FormPlaces { standard, files });
        }
    }

    #[test]
    fn forms_that_contradict_are_bad_usage() {
        for (formats, output, json, words) in [
            (&["sarif", "html"][..], None, false, "two reports for standard output"),
            (&["sarif"], None, true, "two reports for standard output"),
            (&["sarif=a", "html=a"], None, false, "two reports for a"),
            (&["sarif=a"], Some("a"), false, "two reports for a"),
            (&["sarif="], None, false, "expected a file"),
            (&["sarfi"], None, false, "did you mean sarif?"),
            (&["excel"], None, false, "expected text, github"),
        ] {
            let error = places(formats, output, json).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
