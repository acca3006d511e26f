//! The reports that were asked for, and where each goes. It must never know what is in one.

use std::path::PathBuf;

use serdes_check::report::Format;

use crate::{
    arguments::ReportArguments, commands::form_places::FormPlaces, failure::Failure,
    terminal::Terminal,
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
    /// Returns the reports that the arguments name. Without any it is text for people, or with
    /// `--json` the objects; reports in files come besides.
    pub(crate) fn of(
        arguments: &ReportArguments,
        terminal: &mut Terminal,
    ) -> Result<Self, Failure> {
        let known: Vec<_> = Format::ALL.iter().map(|format| format.id()).chain(["json"]).collect();
        let output = arguments.output.as_deref();
        let places = FormPlaces::of(&arguments.format, output, terminal.json(), &known)?;
        let standard = places.standard.map(Form::named);
        if standard == Some(Form::Json) {
            terminal.speak_json();
        }
        let files = places.files.into_iter().map(|(name, file)| (Form::named(name), file));
        Ok(Self { standard, files: files.collect() })
    }

    /// Returns true if some report is of the findings of all artifacts.
    pub(crate) fn is_asked(&self, form: Form) -> bool {
        self.standard == Some(form) || self.files.iter().any(|(other, _)| *other == form)
    }
}

impl Form {
    /// Returns the form of this name; the objects have the only one that is no report of the
    /// library.
    fn named(name: &str) -> Self {
        name.parse().map_or(Self::Json, Self::Report)
    }
}
