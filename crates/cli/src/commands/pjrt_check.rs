//! `serdes plugin check` of a PJRT plug-in: its properties, and the frameworks that it fits.
//!
//! A separate process loads the plug-in and reports each step, so that a crash leaves the results
//! of earlier steps. If the file alone shows that no requested framework fits, nothing is loaded.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use pep440_rs::Version;
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};
use serdes_doctor::InstalledPlugin;
use serdes_pjrt::{
    Examination, Fit, Framework, Inspection, Minor, Mismatch, PjrtError, PluginReport,
    PluginVersion, SizeRule, Value,
};
use serdes_stream_executor::with_time_limit;

use super::{framework_names, plugin_opening, plugin_process};
use crate::{
    arguments::{CheckPluginArguments, PluginArguments},
    failure::Failure,
    status::ExitStatus,
    terminal::{BAD, FAINT, GOOD, NAME, Terminal, WARN, harmless, json_of, shown},
};

/// Result for a plug-in, which is printed and sent between processes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Answer {
    path: String,
    api: String,
    /// `None` if the plug-in was not loaded.
    accepted: Option<bool>,
    pjrt_version: Option<String>,
    struct_size: Option<usize>,
    size_rule: Option<String>,
    extensions: Vec<String>,
    platform: Option<String>,
    platform_version: Option<String>,
    devices: Option<usize>,
    addressable_devices: Option<usize>,
    memories: Vec<String>,
    attributes: Map<String, serde_json::Value>,
    missing_required: Vec<String>,
    missing_optional: Vec<String>,
    unimplemented: Vec<String>,
    reasons: Vec<String>,
    warnings: Vec<String>,
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    fits: Option<Fits>,
}

/// An object for one framework, a list for several.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Fits {
    One(Box<FrameworkFit>),
    Several(Vec<FrameworkFit>),
}

impl Fits {
    fn all(&self) -> &[FrameworkFit] {
        match self {
            Self::One(fit) => std::slice::from_ref(fit),
            Self::Several(fits) => fits,
        }
    }
}

/// Result for one framework.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct FrameworkFit {
    framework: String,
    pjrt_version: String,
    /// `None` if the plug-in's version is unknown.
    fits: Option<bool>,
    rules: Vec<String>,
    reasons: Vec<String>,
    warnings: Vec<String>,
}

/// Message from the process that loads the plug-in.
#[derive(Debug, Serialize, Deserialize)]
enum Message {
    Known(Box<Answer>),
    /// The reason why there is no answer.
    Failed(String),
}

/// Checks the plug-in at `path`.
pub(crate) fn run(
    path: &Path,
    options: Vec<(String, Value)>,
    arguments: &CheckPluginArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    if plugin_opening::is_supervised(&arguments.plugin, terminal) {
        let limit = Duration::from_secs(arguments.plugin.time_limit);
        ask(path, options, limit, |told| terminal.object(&json_of(&told)?))?;
        return Ok(ExitStatus::Success);
    }
    let frameworks = framework_names::frameworks(&arguments.frameworks)?;
    let inspection = serdes_pjrt::inspect(path).map_err(Failure::of)?;
    let version = inspection.plugin_version();
    let fits_none = |version: &PluginVersion| frameworks.iter().all(|one| !one.fit(version).fits());
    let mut answer = match &version {
        Some(version) if !frameworks.is_empty() && fits_none(version) => of_file(
            path,
            &inspection,
            "nothing of it was loaded: its version, read out of its file, decides",
        ),
        version => match asked(path, options, &arguments.plugin) {
            Ok(answer) => answer,
            Err(failure) if !frameworks.is_empty() && version.is_some() => {
                of_file(path, &inspection, &format!("only its file was read: {failure}"))
            }
            Err(failure) => return Err(failure),
        },
    };
    if !frameworks.is_empty() {
        let version = version_of(&answer).or(version);
        let mut fits: Vec<_> =
            frameworks.iter().map(|framework| fit(framework, version.as_ref())).collect();
        if let Some(installed) = InstalledPlugin::of_library(path) {
            fits.iter_mut().for_each(|fit| compare(&installed, fit));
        }
        answer.fits = Some(match (fits.len(), fits.pop()) {
            (1, Some(one)) => Fits::One(Box::new(one)),
            (_, last) => Fits::Several(fits.into_iter().chain(last).collect()),
        });
    }
    if terminal.json() {
        terminal.object(&json_of(&answer)?)?;
    }
    show(&answer, terminal)?;
    let asks_which = arguments.frameworks.iter().any(|name| name == framework_names::ALL);
    Ok(status(&answer, asks_which))
}

/// Returns the worst status. If all releases are requested, it is a refusal only if none fits.
fn status(answer: &Answer, asks_which: bool) -> ExitStatus {
    let fits = answer.fits.as_ref().map(Fits::all).unwrap_or_default();
    let accepted =
        if answer.accepted == Some(false) { ExitStatus::Negative } else { ExitStatus::Success };
    if asks_which && fits.iter().any(|fit| fit.fits == Some(true)) {
        return accepted;
    }
    let worst = fits.iter().map(|fit| match fit.fits {
        Some(true) => ExitStatus::Success,
        Some(false) => ExitStatus::Negative,
        None => ExitStatus::Error,
    });
    worst.fold(accepted, ExitStatus::worst)
}

fn fit(framework: &Framework, version: Option<&PluginVersion>) -> FrameworkFit {
    let found = version.map(|version| framework.fit(version));
    let words = |found: &[Mismatch]| found.iter().map(ToString::to_string).collect::<Vec<_>>();
    let of_fit = |of: fn(&Fit) -> &[Mismatch]| found.as_ref().map(of).unwrap_or_default();
    let (mut reasons, warnings) = (words(of_fit(Fit::reasons)), words(of_fit(Fit::warnings)));
    if found.is_none() {
        reasons.push("the version of the plug-in is not known".to_owned());
    }
    FrameworkFit {
        framework: framework.name().to_owned(),
        pjrt_version: framework.minor().to_string(),
        fits: found.as_ref().map(Fit::fits),
        rules: of_fit(Fit::reasons).iter().map(|found| found.rule().as_str().to_owned()).collect(),
        reasons,
        warnings,
    }
}

/// Compares the version of an installed plug-in with that of jaxlib, as jaxlib does on import.
fn compare(installed: &InstalledPlugin, fit: &mut FrameworkFit) {
    let number: Option<Version> =
        fit.framework.strip_prefix("jaxlib-").and_then(|number| number.parse().ok());
    let Some(number) = number.filter(|number| installed.is_dropped_by(number)) else { return };
    let InstalledPlugin { name, version, .. } = installed;
    fit.fits = Some(false);
    fit.rules.push(serdes_doctor::Rule::PluginJaxlibDiffer.id().to_owned());
    fit.reasons.push(format!(
        "jaxlib {number} leaves the kernels of a plug-in of another number out, and jax-{name}-plugin is {version}; \
         install both in one version"
    ));
}

/// Returns the answer from the file without loading it.
fn of_file(path: &Path, inspection: &Inspection, warning: &str) -> Answer {
    Answer {
        path: path.to_string_lossy().into_owned(),
        api: "pjrt".to_owned(),
        pjrt_version: inspection.version.map(|found| found.minor.to_string()),
        struct_size: inspection.version.map(|found| found.struct_size),
        size_rule: inspection.plugin_version().as_ref().map(size_rule),
        warnings: vec![warning.to_owned()],
        ..Answer::default()
    }
}

/// Returns the plug-in's answer, loaded in a separate process, or in this one if requested.
fn asked(
    path: &Path,
    options: Vec<(String, Value)>,
    arguments: &PluginArguments,
) -> Result<Answer, Failure> {
    let mut last = None;
    let end = if arguments.in_process {
        let limit = Duration::from_secs(arguments.time_limit);
        ask(path, options, limit, |told| {
            last = Some(told);
            Ok(())
        })?;
        Ok(ExitStatus::Success)
    } else {
        let ended = plugin_process::run("check", arguments, 0, &["--json"], |line| {
            last = Some(serde_json::from_slice(line).map_err(Failure::of)?);
            Ok(())
        })?;
        ended.end
    };
    match (last, end) {
        (Some(Message::Failed(why)), _) => Err(Failure::new(why)),
        (Some(Message::Known(answer)), Ok(_)) => Ok(*answer),
        (known, end) => {
            let how = end.err().unwrap_or_else(|| "it told nothing".to_owned());
            let (mut answer, when) = match known {
                Some(Message::Known(answer)) => (*answer, "a client of it was created and asked"),
                _ => (refused(path), "it was loaded"),
            };
            answer.accepted = Some(false);
            answer
                .reasons
                .push(format!("{how} while {when}; run it with --in-process in a debugger"));
            Ok(answer)
        }
    }
}

/// Returns an answer that only says that the plug-in is refused.
fn refused(path: &Path) -> Answer {
    Answer {
        path: path.to_string_lossy().into_owned(),
        api: "pjrt".to_owned(),
        accepted: Some(false),
        ..Answer::default()
    }
}

/// Examines the plug-in in this process, and sends the results after each step.
fn ask(
    path: &Path,
    options: Vec<(String, Value)>,
    limit: Duration,
    mut send: impl FnMut(Message) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let known = |report: &PluginReport| Message::Known(Box::new(answer(path, report)));
    let library: PathBuf = path.to_owned();
    let mut examination = match with_time_limit(limit, move || Examination::load(library)) {
        Ok(Ok(examination)) => examination,
        Ok(Err(error @ PjrtError::NotAPlugin { .. })) => {
            let reasons = vec![error.to_string()];
            return send(Message::Known(Box::new(Answer { reasons, ..refused(path) })));
        }
        Ok(Err(error)) => return send(Message::Failed(error.to_string())),
        Err(error) => return send(Message::Failed(error.to_string())),
    };
    let before = examination.report().clone();
    send(known(&before))?;
    let asked = with_time_limit(limit, move || {
        examination.ask_client(&options).map(|()| examination.report().clone())
    });
    match asked {
        Ok(Ok(report)) => send(known(&report)),
        Ok(Err(error)) => send(Message::Failed(error.to_string())),
        Err(error) => send(known(&Examination::given_up(&before, error))),
    }
}

/// Prefix of the oldest minor whose sizes a plug-in accepts.
const SINCE: &str = "since ";

/// Returns the plug-in's size rule, in the form of the answer.
fn size_rule(version: &PluginVersion) -> String {
    match version.size_rule() {
        SizeRule::AtLeast => "at_least".to_owned(),
        SizeRule::Equal => "equal".to_owned(),
        SizeRule::Since(oldest) => format!("{SINCE}{oldest}"),
    }
}

fn answer(path: &Path, report: &PluginReport) -> Answer {
    let names = |names: &[&'static str]| names.iter().map(|&name| name.to_owned()).collect();
    let attributes = report.attributes.iter();
    Answer {
        accepted: Some(report.accepted()),
        pjrt_version: report.version.as_ref().map(|version| version.minor().to_string()),
        struct_size: report.struct_size,
        size_rule: report.version.as_ref().map(size_rule),
        extensions: report.extensions.clone(),
        platform: report.platform.clone(),
        platform_version: report.platform_version.clone(),
        devices: report.devices,
        addressable_devices: report.addressable_devices,
        memories: report.memories.clone(),
        attributes: attributes.map(|(name, value)| (name.clone(), of_value(value))).collect(),
        missing_required: names(&report.missing_required),
        missing_optional: names(&report.missing_optional),
        unimplemented: names(&report.unimplemented),
        reasons: report.reasons.clone(),
        warnings: report.warnings.clone(),
        ..refused(path)
    }
}

fn of_value(value: &Value) -> serde_json::Value {
    match value {
        Value::Text(text) => json!(text),
        Value::Integer(number) => json!(number),
        Value::Integers(numbers) => json!(numbers),
        Value::Float(number) => json!(number),
        Value::Bool(flag) => json!(flag),
        _ => serde_json::Value::Null,
    }
}

/// Extracts the version facts that decide if a framework fits.
fn version_of(answer: &Answer) -> Option<PluginVersion> {
    let minor = Minor::parse(answer.pjrt_version.as_deref()?)?;
    let rule = match answer.size_rule.as_deref().unwrap_or_default() {
        "equal" => SizeRule::Equal,
        rule => rule
            .strip_prefix(SINCE)
            .and_then(Minor::parse)
            .map_or(SizeRule::AtLeast, SizeRule::Since),
    };
    let absent =
        [&answer.missing_required, &answer.missing_optional, &answer.unimplemented].into_iter();
    let version = PluginVersion::new(minor).with_size_rule(rule).without(absent.flatten());
    let numbers = |name: &str| {
        let numbers = answer.attributes.get(name)?.as_array()?.iter();
        let numbers = numbers.map(|number| number.as_u64()?.try_into().ok());
        numbers.collect::<Option<Vec<u32>>>()?.try_into().ok()
    };
    match (numbers("stablehlo_minimum_version"), numbers("stablehlo_current_version")) {
        (Some(minimum), Some(current)) => Some(version.with_stablehlo(minimum, current)),
        _ => Some(version),
    }
}

/// Prints an answer as text.
fn show(answer: &Answer, terminal: &mut Terminal) -> Result<(), Failure> {
    let verdict = match answer.accepted {
        Some(true) => format!("{GOOD}accepted{GOOD:#}"),
        Some(false) => format!("{BAD}refused{BAD:#}"),
        None => format!("{WARN}not loaded{WARN:#}"),
    };
    terminal.line(format_args!("{NAME}{}{NAME:#}: {verdict}", shown(&answer.path)))?;
    let unknown = || "unknown".to_owned();
    let version =
        answer.pjrt_version.as_ref().map_or_else(unknown, |version| format!("PJRT {version}"));
    terminal.fact("interface", version)?;
    if let Some(size) = answer.struct_size {
        terminal.fact("table", format_args!("{size} bytes"))?;
    }
    if let Some(platform) = &answer.platform {
        let version = answer.platform_version.clone().unwrap_or_default();
        terminal.fact("platform", format_args!("{} ({})", shown(platform), harmless(&version)))?;
    }
    if let (Some(all), Some(ours)) = (answer.devices, answer.addressable_devices) {
        terminal.fact("devices", format_args!("{all}, {ours} of them of this process"))?;
    }
    for (label, names) in [("memories", &answer.memories), ("extensions", &answer.extensions)] {
        if !names.is_empty() {
            terminal.fact(label, shown(&names.join(", ")))?;
        }
    }
    for (name, value) in &answer.attributes {
        terminal.line(format_args!("  {FAINT}{}: {value}{FAINT:#}", shown(name)))?;
    }
    for function in &answer.missing_optional {
        terminal.line(format_args!("  {FAINT}without {function}{FAINT:#}"))?;
    }
    remarks(&answer.warnings, &answer.reasons, terminal)?;
    let fits = answer.fits.as_ref().map(Fits::all).unwrap_or_default();
    if let [fit] = fits {
        return show_fit(std::slice::from_ref(fit), true, terminal);
    }
    let are_alike = |one: &FrameworkFit, other: &FrameworkFit| {
        one.fits == other.fits && one.rules.first() == other.rules.first()
    };
    fits.chunk_by(are_alike).try_for_each(|group| show_fit(group, false, terminal))
}

fn remarks(
    warnings: &[String],
    reasons: &[String],
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    for warning in warnings {
        terminal.line(format_args!("  {WARN}warning{WARN:#}: {}", harmless(warning)))?;
    }
    for reason in reasons {
        terminal.line(format_args!("  {BAD}reason{BAD:#}: {}", harmless(reason)))?;
    }
    Ok(())
}

/// Prints consecutive frameworks with the same answer: all reasons, or the first one, which is what
/// a user meets.
fn show_fit(group: &[FrameworkFit], in_full: bool, terminal: &mut Terminal) -> Result<(), Failure> {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return Ok(()) };
    let verdict = match first.fits {
        Some(true) => format!("{GOOD}fits{GOOD:#}"),
        Some(false) => format!("{BAD}does not fit{BAD:#}"),
        None => format!("{WARN}not known{WARN:#}"),
    };
    let (mut names, mut versions) = (first.framework.clone(), first.pjrt_version.clone());
    let mut count = String::new();
    if group.len() > 1 {
        let number = last.framework.rsplit('-').next().unwrap_or(&last.framework);
        names = format!("{names} to {number}");
        count = format!(" ({} releases)", group.len());
        if last.pjrt_version != versions {
            versions = format!("{versions} to {}", last.pjrt_version);
        }
    }
    terminal
        .line(format_args!("{NAME}{names:<26}{NAME:#} PJRT {versions:<14} {verdict}{count}"))?;
    let with_rule = |(reason, rule): (&String, Option<&String>)| match rule {
        Some(rule) => format!("{reason}   [{rule}]"),
        None => reason.clone(),
    };
    let rules = first.rules.iter().map(Some).chain(std::iter::repeat(None));
    let reasons: Vec<String> = first.reasons.iter().zip(rules).map(with_rule).collect();
    if in_full {
        return remarks(&first.warnings, &reasons, terminal);
    }
    remarks(&[], reasons.get(..1).unwrap_or_default(), terminal)
}
