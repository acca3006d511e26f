//! Output formats of `serdes plugin verify`.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use super::{
    form_places::FormPlaces,
    plugin_junit, plugin_pages,
    plugin_tally::{Tally, json_line, text_line},
    report_file,
};
use crate::{arguments::VerifyArguments, failure::Failure, terminal::Terminal};

/// A format of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Text,
    Json,
    JUnit,
    Markdown,
    Html,
}

/// Names of the formats.
const FORMS: [&str; 5] = ["text", "json", "junit", "markdown", "html"];

impl Form {
    /// Returns the format of one of these names.
    fn named(name: &str) -> Self {
        match name {
            "json" => Self::Json,
            "junit" => Self::JUnit,
            "markdown" => Self::Markdown,
            "html" => Self::Html,
            _ => Self::Text,
        }
    }
}

/// Destinations of results: one format on standard output, any number in files.
pub(super) struct Outputs {
    /// `None` if all formats go to files.
    standard: Option<Form>,
    files: Vec<(Form, PathBuf)>,
}

impl Outputs {
    /// Returns the outputs of the arguments, and sets the terminal to their line format.
    pub(super) fn of(
        arguments: &VerifyArguments,
        terminal: &mut Terminal,
    ) -> Result<Self, Failure> {
        let output = arguments.output.as_deref();
        let places = FormPlaces::of(&arguments.format, output, terminal.json(), &FORMS)?;
        let standard = places.standard.map(Form::named);
        if standard == Some(Form::Json) {
            terminal.speak_json();
        }
        let files = places.files.into_iter().map(|(name, path)| (Form::named(name), path));
        Ok(Self { standard, files: files.collect() })
    }

    /// Returns true if each outcome is printed immediately.
    pub(super) fn prints(&self) -> bool {
        matches!(self.standard, Some(Form::Text | Form::Json))
    }

    /// Writes all formats other than lines.
    pub(super) fn write(
        &self,
        plugin: &str,
        tally: &Tally,
        terminal: &mut Terminal,
    ) -> Result<(), Failure> {
        for (form, path) in &self.files {
            let bytes = content(*form, plugin, tally)?;
            report_file::write(path, &mut |file| file.write_all(&bytes))?;
        }
        if let Some(form) = self.standard.filter(|_| !self.prints()) {
            let bytes = content(form, plugin, tally)?;
            terminal.raw(&bytes)?;
        }
        Ok(())
    }
}

fn content(form: Form, plugin: &str, tally: &Tally) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match form {
        Form::Text => {
            for tried in tally.tried() {
                writeln!(bytes, "{}", anstream::adapter::strip_str(&text_line(tried)))?;
            }
            writeln!(bytes, "\n{}", tally.summary())?;
        }
        Form::Json => {
            for tried in tally.tried() {
                writeln!(bytes, "{}", json_line(tried))?;
            }
        }
        Form::JUnit => plugin_junit::write(plugin, tally, &mut bytes)?,
        Form::Markdown => bytes.write_all(plugin_pages::markdown(plugin, tally)?.as_bytes())?,
        Form::Html => bytes.write_all(plugin_pages::html(plugin, tally)?.as_bytes())?,
    }
    Ok(bytes)
}
