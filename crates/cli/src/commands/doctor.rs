//! `serdes doctor`: whether the packages of an environment fit one another.

use std::{
    env,
    path::{Path, PathBuf},
};

use clap::Parser as _;
use serdes::{
    pjrt::{self, Framework},
    stream_executor::{TensorFlowRelease, elf},
};
use serdes_doctor::{
    Diagnosis, Environment, Libraries, Misfit, Rule, Verdict, WarningRule, diagnose,
    judge_safetensors,
};

use crate::{
    arguments::{Cli, Command, DoctorArguments, DoctorFormat},
    commands::check,
    failure::Failure,
    status::Status,
    terminal::{NAME, Terminal, harmless, shown_path},
};

/// Judges environments, and the artifacts that they are to load.
pub(crate) fn run(arguments: &DoctorArguments, terminal: &mut Terminal) -> Result<Status, Failure> {
    let json = terminal.json() || arguments.format == Some(DoctorFormat::Json);
    let mut artifacts = arguments.artifacts.clone();
    let mut environments = Vec::new();
    for path in &arguments.paths {
        if Environment::is_at(path) {
            environments.extend(Environment::read(path).map_err(Failure::of)?);
        } else {
            artifacts.push(path.clone());
        }
    }
    for path in arguments.env.iter().chain(&arguments.lock) {
        environments.extend(Environment::read(path).map_err(Failure::of)?);
    }
    for executable in &arguments.python {
        environments.extend(Environment::of_python(executable).map_err(Failure::of)?);
    }
    if environments.is_empty() {
        environments.extend(Environment::read(own()?).map_err(Failure::of)?);
    }
    let mut status = Status::Yes;
    for environment in &environments {
        let mut diagnosis = diagnose(environment, &PluginFiles);
        for artifact in &artifacts {
            diagnosis.problems.extend(judge_safetensors(environment, artifact, &PluginFiles));
        }
        status = status.worst(show(&diagnosis, json, arguments.strict, terminal)?);
        status = status.worst(judge_artifacts(environment, &artifacts, json, terminal)?);
    }
    Ok(status)
}

/// The environment of the caller.
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

fn show(
    diagnosis: &Diagnosis,
    json: bool,
    strict: bool,
    terminal: &mut Terminal,
) -> Result<Status, Failure> {
    if json {
        terminal.object(&diagnosis.to_json())?;
    } else {
        for line in diagnosis.to_string().lines() {
            terminal.line(harmless(line))?;
        }
    }
    Ok(match diagnosis.verdict() {
        Verdict::DoesNotFit => Status::No,
        Verdict::Unknown => Status::Failed,
        Verdict::Fits if strict && !diagnosis.warnings.is_empty() => Status::No,
        Verdict::Fits => Status::Yes,
    })
}

/// The verdicts of `check` on artifacts, for the TensorFlow that was found.
fn judge_artifacts(
    environment: &Environment,
    artifacts: &[PathBuf],
    json: bool,
    terminal: &mut Terminal,
) -> Result<Status, Failure> {
    let tensorflow = environment.provider("tensorflow");
    let Some(tensorflow) = tensorflow.filter(|_| !artifacts.is_empty()) else {
        let others = artifacts.iter().filter(|path| !is_safetensors(path));
        for path in others {
            terminal.warning(format_args!(
                "{} is not judged: no TensorFlow was found in {}",
                shown_path(path),
                environment.label
            ));
        }
        return Ok(Status::Yes);
    };
    let mut words = vec!["serdes".into(), "check".into(), "--tensorflow".into()];
    words.push(tensorflow.version.only_release().to_string().into());
    words.extend(json.then(|| "--json".into()));
    words.push("--".into());
    words.extend(artifacts.iter().map(|path| path.clone().into_os_string()));
    let cli = Cli::try_parse_from(words).map_err(Failure::new)?;
    match &cli.command {
        Command::Check(arguments) => check::run(arguments, terminal),
        _ => Err(Failure::new("the command `check` was not understood")),
    }
}

fn is_safetensors(path: &Path) -> bool {
    path.extension().is_some_and(|suffix| suffix == "safetensors")
}

/// Reads the files of plug-ins; nothing is loaded.
struct PluginFiles;

impl Libraries for PluginFiles {
    fn pjrt_minor(&self, library: &Path) -> Option<u32> {
        Some(pjrt::inspect(library).ok()?.version?.minor.number())
    }

    fn misfits(&self, library: &Path, jaxlib: &pep440_rs::Version) -> Option<Vec<Misfit>> {
        let framework = Framework::named(&format!("jaxlib-{}", jaxlib.only_release()))?;
        let plugin = pjrt::inspect(library).ok()?.plugin_version()?;
        let misfit = |found: &pjrt::Mismatch| {
            Some(Misfit {
                rule: Rule::named(found.rule().as_str())?,
                found: format!("0.{}", plugin.minor().number()),
                expected: format!("what {} takes", framework.name()),
                message: harmless(found.message()),
            })
        };
        Some(framework.fit(&plugin).reasons().iter().filter_map(misfit).collect())
    }

    fn missing_symbols(
        &self,
        library: &Path,
        tensorflow: &pep440_rs::Version,
    ) -> Option<Vec<String>> {
        let release = TensorFlowRelease::named(&tensorflow.only_release().to_string()).ok()?;
        let fit = release.fit(&elf::inspect(library).ok()?);
        Some(fit.not_exported)
    }
}

/// A rule of environments.
pub(super) struct EnvironmentRule {
    id: &'static str,
    verdict: &'static str,
    meaning: &'static str,
    remedy: &'static str,
}

/// The rule of environments with this id.
pub(super) fn rule(id: &str) -> Option<EnvironmentRule> {
    let problem = Rule::ALL.iter().find(|rule| rule.id() == id).map(|rule| EnvironmentRule {
        id: rule.id(),
        verdict: Verdict::DoesNotFit.name(),
        meaning: rule.meaning(),
        remedy: rule.remedy(),
    });
    let warning = || {
        WarningRule::ALL.iter().find(|rule| rule.id() == id).map(|rule| EnvironmentRule {
            id: rule.id(),
            verdict: "warning",
            meaning: rule.meaning(),
            remedy: rule.remedy(),
        })
    };
    problem.or_else(warning)
}

impl EnvironmentRule {
    /// Prints what the rule means.
    pub(super) fn explain(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let Self { id, verdict, meaning, remedy } = self;
        if terminal.json() {
            return terminal.object(&serde_json::json!({
                "rule": id,
                "verdict": verdict,
                "meaning": meaning,
                "remedy": remedy,
            }));
        }
        terminal.line(format_args!("{NAME}{id}{NAME:#} ({verdict})\n"))?;
        terminal.line(meaning)?;
        terminal.line(format_args!("\n{NAME}Remedy{NAME:#}   {remedy}"))
    }
}
