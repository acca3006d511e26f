//! The requested reports and their destinations. Does not depend on their contents.

use std::path::PathBuf;

use serdes_check::report::Format;

use crate::{
    arguments::ReportArguments, commands::form_places::FormPlaces, failure::Failure,
    terminal::Terminal,
};

/// A format of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The objects of `--json`.
    Json,
    /// A report of the library.
    Report(Format),
}

/// The requested reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outputs {
    /// The format on standard output; `None` if all go to files.
    pub(crate) standard: Option<Form>,
    pub(crate) files: Vec<(Form, PathBuf)>,
}

impl Outputs {
    /// Returns the reports of the arguments. The default is text, or the objects with `--json`;
    /// reports in files are additional.
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

    /// Returns true if the format is requested.
    pub(crate) fn is_asked(&self, form: Form) -> bool {
        self.standard == Some(form) || self.files.iter().any(|(other, _)| *other == form)
    }
}

impl Form {
    /// Returns the format of this name; only the objects are not a report of the library.
    fn named(name: &str) -> Self {
        name.parse().map_or(Self::Json, Self::Report)
    }
}
