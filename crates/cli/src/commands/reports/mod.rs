//! Reports of `check`: verdicts become findings, which pass the gate and go to each requested
//! report.

mod gate;
mod objects;
mod outputs;

use std::{env, path::Path};

use serde_json::Value;
use serdes_check::{
    Outcome, Remedy, Verdicts,
    report::{self, Artifact, Cell, Format, Report, Terms, TextOptions},
};

use self::{
    gate::Gate,
    outputs::{Form, Outputs},
};
use crate::{
    arguments::{CheckArguments, ModelLoader},
    commands::{remedies, report_file},
    failure::Failure,
    object_reports::location,
    status::ExitStatus,
    terminal::{Terminal, json_line},
};

/// The reports of one run.
#[derive(Debug)]
pub(crate) struct Reports {
    outputs: Outputs,
    gate: Gate,
    report: Report,
    loader: ModelLoader,
    text: TextOptions,
    /// True if the text output is one page at the end.
    is_page: bool,
    /// The lines of `--json`, for files.
    lines: String,
}

/// The counted verdicts on an artifact.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    /// The worst outcome of all releases.
    pub(crate) outcome: Outcome,
    /// Name of the outcome in text, which distinguishes models that compute something else.
    pub(crate) words: &'static str,
    /// The status, without known findings.
    pub(crate) status: ExitStatus,
}

impl Reports {
    /// Creates the reports of the arguments.
    ///
    /// # Errors
    /// If the options contradict each other, or the baseline cannot be read.
    pub(crate) fn of(
        arguments: &CheckArguments,
        are_several: bool,
        terminal: &mut Terminal,
    ) -> Result<Self, Failure> {
        let outputs = Outputs::of(&arguments.reports, terminal)?;
        let gate = Gate::of(&arguments.reports, arguments.strict)?;
        let columns = || env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let mut text = match terminal.columns().or_else(columns) {
            Some(columns) => TextOptions::terminal(columns),
            None => TextOptions::file(),
        };
        text.has_colours = true;
        Ok(Self {
            outputs,
            gate,
            report: report::report_with(&words),
            loader: arguments.loader,
            text,
            is_page: are_several,
            lines: String::new(),
        })
    }

    /// Returns true if the library converts warnings to reasons: levels or a baseline do that
    /// themselves.
    pub(crate) fn strict(&self, arguments: &CheckArguments) -> bool {
        arguments.strict && !self.gate.is_active
    }

    /// Returns true if text is printed immediately.
    pub(crate) fn is_streamed(&self) -> bool {
        self.outputs.standard == Some(Form::Report(Format::Text)) && !self.is_page
    }

    /// Adds a message that concerns no artifact; if text is printed immediately, the caller prints
    /// it.
    pub(crate) fn note(&mut self, sentence: String) {
        self.report.note(sentence);
    }

    /// Adds and counts the verdicts on an artifact, and prints them if output is immediate.
    pub(crate) fn add(
        &mut self,
        found: &Verdicts,
        are_several: bool,
        comparison: &mut Option<report::Comparison<'_>>,
        terminal: &mut Terminal,
    ) -> Result<Counted, Failure> {
        let terms =
            Terms { remedy: &words, location: &location, loader: Some(name_of(self.loader)) };
        let mut artifact = report::artifact_with(found, &terms);
        if self.gate.is_active {
            artifact.apply(&self.gate.levels);
            if let Some(comparison) = comparison {
                comparison.mark(&mut artifact);
            }
        }
        if self.outputs.is_asked(Form::Json) {
            self.add_objects(found, &artifact, are_several, terminal)?;
        }
        if self.is_streamed() {
            let mut text = Vec::new();
            artifact.write_text(self.text, &mut text).map_err(Failure::of)?;
            terminal.raw(&text)?;
        }
        let counted = Counted {
            outcome: objects::outcome(artifact.worst()),
            words: match artifact.worst() {
                Cell::Differs => Cell::Differs.id(),
                cell => objects::outcome(cell).id(),
            },
            status: ExitStatus::of(objects::outcome(artifact.outcome())),
        };
        self.report.add(artifact);
        Ok(counted)
    }

    fn add_objects(
        &mut self,
        found: &Verdicts,
        artifact: &Artifact,
        are_several: bool,
        terminal: &mut Terminal,
    ) -> Result<(), Failure> {
        for (verdict, answer) in found.iter().zip(artifact.answers()) {
            let object = if self.gate.is_active {
                objects::judged(verdict, answer)?
            } else {
                crate::objects::verdict(verdict).map_err(Failure::of)?
            };
            self.object(&object, terminal)?;
        }
        if are_several {
            self.object(&objects::releases(&found.path, artifact), terminal)?;
        }
        Ok(())
    }

    /// Adds an object of `--json`.
    pub(crate) fn object(
        &mut self,
        object: &Value,
        terminal: &mut Terminal,
    ) -> Result<(), Failure> {
        if self.outputs.standard == Some(Form::Json) {
            terminal.object(object)?;
        }
        if self.outputs.files.iter().any(|(form, _)| *form == Form::Json) {
            self.lines.push_str(&json_line(object));
        }
        Ok(())
    }

    /// Returns the baseline, for [`Self::add`].
    pub(crate) fn baseline(&self) -> Option<report::Baseline> {
        self.gate.baseline.clone()
    }

    /// Writes the reports; returns the status to use instead of the computed one, if a baseline was
    /// written: everything is known then.
    pub(crate) fn finish(
        mut self,
        status: ExitStatus,
        comparison: Option<&report::Comparison<'_>>,
        terminal: &mut Terminal,
    ) -> Result<ExitStatus, Failure> {
        let is_text = self.outputs.standard == Some(Form::Report(Format::Text));
        for sentence in comparison.map(gate::outdated).unwrap_or_default() {
            if !is_text || self.is_streamed() {
                terminal.note(&sentence);
            }
            self.report.note(sentence);
        }
        if self.is_streamed() {
            self.report.known().map(|known| terminal.line(known)).transpose()?;
        }
        for (form, path) in &self.outputs.files {
            report_file::write(path, &mut |file| match form {
                Form::Json => file.write_all(self.lines.as_bytes()),
                Form::Report(format) => self.report.write(*format, file),
            })?;
        }
        if self.outputs.is_asked(Form::Report(Format::GitHub)) {
            self.summarise()?;
        }
        match self.outputs.standard {
            Some(Form::Report(Format::Text)) if self.is_page => {
                let mut text = Vec::new();
                self.report.write_text(self.text, &mut text).map_err(Failure::of)?;
                terminal.raw(&text)?;
            }
            Some(Form::Report(format)) if format != Format::Text => {
                let mut text = Vec::new();
                self.report.write(format, &mut text).map_err(Failure::of)?;
                terminal.raw(&text)?;
            }
            _ => {}
        }
        match self.gate.write(&self.report)? {
            Some(sentence) => {
                terminal.note(sentence);
                Ok(ExitStatus::Success)
            }
            None => Ok(status),
        }
    }

    /// Appends the report in Markdown to the summary of a GitHub job, if there is one.
    fn summarise(&self) -> Result<(), Failure> {
        let Some(path) = env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else {
            return Ok(());
        };
        let mut text = Vec::new();
        self.report.write(Format::Markdown, &mut text).map_err(Failure::of)?;
        text.push(b'\n');
        report_file::append(Path::new(&path), &text)
    }
}

fn words(remedy: &Remedy) -> String {
    remedies::words(remedy).into_owned()
}

const fn name_of(loader: ModelLoader) -> &'static str {
    match loader {
        ModelLoader::LoadV1 => "load_v1",
        ModelLoader::Load => "load",
        ModelLoader::Cpp => "cpp",
    }
}
