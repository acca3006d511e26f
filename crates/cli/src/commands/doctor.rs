//! `serdes doctor`: checks if the packages of an environment fit one another.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::Parser as _;
use serdes_check::{Consumer, report::Format};
use serdes_doctor::{Diagnosis, Environment, ReadError, Verdict};

use crate::{
    arguments::{Cli, Command, DoctorArguments, DoctorFormat},
    commands::{
        check::{self, Loaders},
        doctor_report,
    },
    environments::EnvironmentQuestion,
    failure::Failure,
    status::ExitStatus,
    terminal::{BAD, FAINT, GOOD, Terminal, WARN, harmless},
    unfinished::Unfinished,
};

/// Diagnoses environments, and checks their artifacts.
pub(crate) fn run(
    arguments: &DoctorArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    if arguments.format == Some(DoctorFormat::Json) {
        terminal.speak_json();
    }
    let Some(output) = &arguments.output else { return judge(arguments, terminal) };
    into_file(output, arguments, terminal)
}

/// Writes the report to a file, which appears when the report is complete.
fn into_file(
    output: &Path,
    arguments: &DoctorArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let (unfinished, file) = Unfinished::beside(output)?;
    terminal.write_into(file);
    let status = judge(arguments, terminal)?;
    unfinished.keep()?;
    Ok(status)
}

fn judge(arguments: &DoctorArguments, terminal: &mut Terminal) -> Result<ExitStatus, Failure> {
    let (read, artifacts) = inputs(arguments)?;
    let question = EnvironmentQuestion {
        artifacts,
        strict: arguments.strict,
        verify_files: arguments.verify_files,
    };
    let form = arguments.format.and_then(report_of);
    if form.is_some() && !question.artifacts.is_empty() {
        return Err(Failure::new("artifacts are not in this report of environments")
            .with_hint("`serdes check --format` writes one of artifacts"));
    }
    let mut report = doctor_report::report();
    let mut status = ExitStatus::Success;
    for read in read {
        let environments = match read {
            Ok(environments) => environments,
            // The other inputs are still diagnosed.
            Err(error) => {
                status = status.worst(terminal.fail(&Failure::of(error)));
                continue;
            }
        };
        for diagnosis in question.judge(environments) {
            status = status.worst(status_of(&diagnosis));
            if form.is_some() {
                report.add(doctor_report::artifact(&diagnosis));
                continue;
            }
            show(&diagnosis, terminal)?;
            let artifacts = &question.artifacts;
            status = status.worst(judge_artifacts(&diagnosis.environment, artifacts, terminal)?);
        }
    }
    if let Some(form) = form {
        let mut text = Vec::new();
        report.write(form, &mut text).map_err(Failure::of)?;
        terminal.raw(&text)?;
    }
    Ok(status)
}

/// Returns the format of a report; `None` for text and JSON, which are streamed.
const fn report_of(format: DoctorFormat) -> Option<Format> {
    match format {
        DoctorFormat::Text | DoctorFormat::Json => None,
        DoctorFormat::Github => Some(Format::GitHub),
        DoctorFormat::Gitlab => Some(Format::GitLab),
        DoctorFormat::Sarif => Some(Format::Sarif),
        DoctorFormat::Junit => Some(Format::JUnit),
        DoctorFormat::Markdown => Some(Format::Markdown),
        DoctorFormat::Html => Some(Format::Html),
    }
}

type Read = Result<Vec<Environment>, ReadError>;

/// Returns the environments and artifacts of the arguments.
fn inputs(arguments: &DoctorArguments) -> Result<(Vec<Read>, Vec<PathBuf>), Failure> {
    let mut artifacts = arguments.artifacts.clone();
    let mut read = Vec::new();
    for path in &arguments.paths {
        if Environment::is_at(path) {
            read.push(Environment::read(path));
        } else {
            artifacts.push(path.clone());
        }
    }
    read.extend(arguments.env.iter().chain(&arguments.lock).map(Environment::read));
    read.extend(arguments.python.iter().map(Environment::of_python));
    if read.is_empty() {
        read.push(Environment::read(own()?));
    }
    Ok((read, artifacts))
}

/// Returns the environment of the calling shell.
fn own() -> Result<PathBuf, Failure> {
    let named = ["VIRTUAL_ENV", "CONDA_PREFIX"];
    let active =
        named.into_iter().find_map(|name| env::var_os(name).filter(|path| !path.is_empty()));
    let here = || Some(PathBuf::from(".venv")).filter(|path| path.is_dir());
    active.map(PathBuf::from).or_else(here).ok_or_else(|| {
        Failure::new(
            "no environment is active (VIRTUAL_ENV, CONDA_PREFIX), and there is no .venv here",
        )
        .with_hint("name one: --env DIR, --lock FILE or --python EXE")
    })
}

fn show(diagnosis: &Diagnosis, terminal: &mut Terminal) -> Result<(), Failure> {
    if terminal.json() {
        return terminal.object(&diagnosis.to_json());
    }
    let text = diagnosis.to_string();
    text.lines().try_for_each(|line| terminal.line(coloured(&harmless(line))))
}

fn status_of(diagnosis: &Diagnosis) -> ExitStatus {
    match diagnosis.verdict() {
        Verdict::DoesNotFit => ExitStatus::Negative,
        Verdict::Unknown => ExitStatus::Error,
        Verdict::Fits => ExitStatus::Success,
    }
}

/// Colours a line by its first word, and dims its rule.
fn coloured(line: &str) -> String {
    let words = [("  ok ", GOOD), ("  problem ", BAD), ("  warning ", WARN), ("  unknown ", WARN)];
    let Some((rest, style, word)) = words
        .into_iter()
        .find_map(|(word, style)| line.strip_prefix(word).map(|rest| (rest, style, word.trim())))
    else {
        return line.to_owned();
    };
    let rest = match rest.rsplit_once("   [") {
        Some((message, rule)) => format!("{message}   {FAINT}[{rule}{FAINT:#}"),
        None => rest.to_owned(),
    };
    format!("  {style}{word}{style:#} {rest}")
}

/// Returns the verdicts of `check` on artifacts, for the installed TensorFlow and jaxlib.
fn judge_artifacts(
    environment: &Environment,
    artifacts: &[PathBuf],
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    if artifacts.is_empty() {
        return Ok(ExitStatus::Success);
    }
    let mut status = ExitStatus::Success;
    let mut words: Vec<OsString> = vec!["serdes".into(), "check".into()];
    for (package, option, releases) in [
        ("tensorflow", "--tensorflow", releases_of_tensorflow as fn(&str) -> Result<(), String>),
        ("jaxlib", "--jax", releases_of_jaxlib),
    ] {
        let Some(found) = environment.provider(package) else { continue };
        let release = found.version.only_release().to_string();
        if let Err(error) = releases(&release) {
            let failure = Failure::new(format_args!(
                "artifacts are not judged for {} {}: {error}",
                found.name, found.version
            ));
            status = status.worst(terminal.fail(&failure));
            continue;
        }
        words.extend([option.into(), release.into()]);
    }
    words.push("--".into());
    words.extend(artifacts.iter().map(|path| path.clone().into_os_string()));
    let cli = Cli::try_parse_from(words).map_err(Failure::new)?;
    match &cli.command {
        Command::Check(arguments) => {
            check::run_for(arguments, Loaders::Named, terminal).map(|found| status.worst(found))
        }
        _ => Err(Failure::new("the command `check` was not understood")),
    }
}

fn releases_of_tensorflow(release: &str) -> Result<(), String> {
    Consumer::releases(release).map(drop).map_err(|error| error.to_string())
}

fn releases_of_jaxlib(release: &str) -> Result<(), String> {
    Consumer::jax_releases(release).map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_colours_and_messages_do_not() {
        let line = coloured("  problem  jax 1 [x] breaks   [requirement]");
        assert!(line.contains("problem") && line.contains("jax 1 [x] breaks"));
        assert_eq!(
            anstream::adapter::strip_str(&line).to_string(),
            "  problem  jax 1 [x] breaks   [requirement]"
        );
        assert_eq!(coloured("           pip install x"), "           pip install x");
    }
}
