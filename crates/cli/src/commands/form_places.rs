//! The places that forms of results go to: `--format FORMAT`, `--format FORMAT=FILE`, `--output`.

use std::path::{Path, PathBuf};

use crate::{failure::Failure, terminal::shown};

/// Forms by name, each with its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FormPlaces {
    /// The form on standard output, if one is named.
    pub(super) standard: Option<String>,
    /// The forms that go into files.
    pub(super) files: Vec<(String, PathBuf)>,
}

impl FormPlaces {
    /// The places that the values of `--format` and `--output` name, of these forms.
    pub(super) fn of(
        formats: &[String],
        output: Option<&Path>,
        known: &[&str],
    ) -> Result<Self, Failure> {
        let mut places = Self::default();
        for value in formats {
            let (name, file) = match value.split_once('=') {
                Some((name, file)) => (name, Some(file)),
                None => (value.as_str(), None),
            };
            if !known.contains(&name) {
                return Err(Failure::new(format_args!(
                    "--format: there is no form {:?} of these results; expected {}",
                    shown(name).to_string(),
                    known.join(", ")
                )));
            }
            match file {
                Some("") => {
                    return Err(Failure::new(format_args!("--format {name}=: no file is named")));
                }
                Some(file) => places.files.push((name.to_owned(), PathBuf::from(file))),
                None if places.standard.is_some() => {
                    return Err(Failure::new(
                        "several forms go to one place; name a file for each: --format FORMAT=FILE",
                    ));
                }
                None => places.standard = Some(name.to_owned()),
            }
        }
        if let Some(path) = output {
            let Some(form) = places.standard.take() else {
                return Err(Failure::new("--output: name the form by --format, without a file"));
            };
            places.files.push((form, path.to_owned()));
        }
        Ok(places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(formats: &[&str], output: Option<&str>) -> Result<FormPlaces, String> {
        let formats: Vec<String> = formats.iter().map(|one| (*one).to_owned()).collect();
        FormPlaces::of(&formats, output.map(Path::new), &["text", "json"])
            .map_err(|failure| failure.to_string())
    }

    #[test]
    fn forms_go_to_files_and_one_to_standard_output() {
        let found = places(&["json=a.json", "text"], None).unwrap();
        assert_eq!(found.standard.as_deref(), Some("text"));
        assert_eq!(found.files, [("json".to_owned(), PathBuf::from("a.json"))]);
        let found = places(&["text"], Some("a.txt")).unwrap();
        assert_eq!((found.standard, found.files.len()), (None, 1));
        for (formats, output) in
            [(&["xml"][..], None), (&["json="], None), (&["text", "json"], None), (&[], Some("a"))]
        {
            assert!(places(formats, output).is_err(), "{formats:?}");
        }
    }
}
