//! The reports that were asked for, and where each goes. It must never know what is in one.

use std::path::{Path, PathBuf};

use serdes_check::report::Format;

use crate::{
    arguments::ReportArguments, commands::nearest::nearest, failure::Failure, terminal::Terminal,
};

/// A form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The objects of `--json`.
    Json,
    /// A report of the library.
    Report(Format),
}

/// The reports that were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outputs {
    /// The form for standard output; `None` where it went into a file.
    pub(crate) standard: Option<Form>,
    pub(crate) files: Vec<(Form, PathBuf)>,
}

impl Outputs {
    /// The reports that the arguments name. Without any it is text for people, or with `--json` the
    /// objects; reports in files come besides.
    pub(crate) fn of(
        arguments: &ReportArguments,
        terminal: &mut Terminal,
    ) -> Result<Self, Failure> {
        let outputs = Self::named(&arguments.format, arguments.output.as_deref(), terminal.json())?;
        if outputs.standard == Some(Form::Json) {
            terminal.speak_json();
        }
        Ok(outputs)
    }

    fn named(formats: &[String], output: Option<&Path>, json: bool) -> Result<Self, Failure> {
        let mut plain = json.then_some(Form::Json);
        let mut files: Vec<(Form, PathBuf)> = Vec::new();
        for text in formats {
            let (name, file) = match text.split_once('=') {
                Some((name, file)) => (name, Some(file).filter(|file| *file != "-")),
                None => (text.as_str(), None),
            };
            let form = form(name)?;
            match file {
                Some("") => {
                    let expected = format_args!("--format {text}: expected a file behind `=`");
                    return Err(Failure::new(expected));
                }
                Some(file) => files.push((form, file.into())),
                None if plain.is_some_and(|other| other != form) => {
                    return Err(Failure::new("two reports for standard output")
                        .with_hint("name a file for each further one: --format sarif=FILE"));
                }
                None => plain = Some(form),
            }
        }
        let form = plain.unwrap_or(Form::Report(Format::Text));
        let standard = match output.filter(|output| *output != Path::new("-")) {
            Some(output) => {
                files.push((form, output.to_owned()));
                None
            }
            None => Some(form),
        };
        let twice = files.iter().enumerate().find(|(number, (_, file))| {
            files.iter().skip(number + 1).any(|(_, other)| other == file)
        });
        match twice {
            Some((_, (_, file))) => Err(Failure::new(format_args!(
                "two reports for {}; name a file for each",
                file.display()
            ))),
            None => Ok(Self { standard, files }),
        }
    }

    /// True if some report is of the findings of all artifacts.
    pub(crate) fn is_asked(&self, form: Form) -> bool {
        self.standard == Some(form) || self.files.iter().any(|(other, _)| *other == form)
    }
}

fn form(name: &str) -> Result<Form, Failure> {
    if name == "json" {
        return Ok(Form::Json);
    }
    name.parse().map(Form::Report).map_err(|_| {
        let names = || Format::ALL.map(Format::id).into_iter().chain(["json"]);
        let failure = Failure::new(format_args!("there is no report {name:?}"));
        match nearest(name, names()) {
            Some(meant) => failure.with_hint(format_args!("did you mean {meant}?")),
            None => failure
                .with_hint(format_args!("expected {}", names().collect::<Vec<_>>().join(", "))),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(formats: &[&str], output: Option<&str>, json: bool) -> Result<Outputs, Failure> {
        let formats: Vec<String> = formats.iter().map(|&format| format.to_owned()).collect();
        Outputs::named(&formats, output.map(Path::new), json)
    }

    const TEXT: Form = Form::Report(Format::Text);
    const SARIF: Form = Form::Report(Format::Sarif);

    #[test]
    fn outputs_go_where_the_options_say() {
        for (formats, output, json, standard, files) in [
            (&[][..], None, false, Some(TEXT), vec![]),
            (&[], None, true, Some(Form::Json), vec![]),
            (&["json"], None, true, Some(Form::Json), vec![]),
            (&["sarif"], None, false, Some(SARIF), vec![]),
            (&["sarif"], Some("a"), false, None, vec![(SARIF, "a")]),
            (&[], Some("a"), false, None, vec![(TEXT, "a")]),
            (&["sarif=a=b"], None, false, Some(TEXT), vec![(SARIF, "a=b")]),
            (&["sarif=-"], None, false, Some(SARIF), vec![]),
            (&["sarif=a", "json"], Some("b"), false, None, vec![(SARIF, "a"), (Form::Json, "b")]),
        ] {
            let files = files.into_iter().map(|(form, file)| (form, file.into())).collect();
            assert_eq!(named(formats, output, json).unwrap(), Outputs { standard, files });
        }
    }

    #[test]
    fn outputs_that_contradict_are_bad_usage() {
        for (formats, output, json, words) in [
            (&["sarif", "html"][..], None, false, "two reports for standard output"),
            (&["sarif"], None, true, "two reports for standard output"),
            (&["sarif=a", "html=a"], None, false, "two reports for a"),
            (&["sarif=a"], Some("a"), false, "two reports for a"),
            (&["sarif="], None, false, "expected a file"),
            (&["sarfi"], None, false, "did you mean sarif?"),
            (&["excel"], None, false, "expected text, github"),
        ] {
            let error = named(formats, output, json).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
