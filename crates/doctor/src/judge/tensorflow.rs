//! TensorFlow: builds that share a folder, extensions, and plug-ins.

use super::{
    declared,
    findings::{Findings, View, of_minor, problem, removal, to_specifiers, told},
};
use crate::{
    diagnosis::Target,
    names::TENSORFLOW,
    package::Package,
    rule::{Rule, WarningRule},
};

/// Extensions that are built for one MAJOR.MINOR, and have its numbers.
const SAME_NUMBERS: [&str; 3] = ["tensorflow-text", "tf-keras", "intel-extension-for-tensorflow"];

pub(super) fn judge(view: &View<'_>, findings: &mut Findings) {
    let builds: Vec<&Package> = TENSORFLOW.iter().filter_map(|name| view.package(name)).collect();
    if let Some(first) = builds.first() {
        let others = builds.iter().copied().filter(|other| other.name != first.name);
        let mut all: Vec<&Package> = others.filter(|other| !is_part(first, other)).collect();
        if !all.is_empty() {
            all.insert(0, first);
            several_builds(view, &all, findings);
        }
    }
    let Some(tensorflow) = builds.first() else { return };
    for name in SAME_NUMBERS.into_iter().chain(["tensorflow-io"]) {
        if let Some(extension) = view.package(name) {
            for build in TENSORFLOW {
                findings.explain(name, build);
            }
            self::extension(view, extension, tensorflow, findings);
        }
    }
    plugins(view, tensorflow, findings);
}

/// Returns true if a build has the files of `tensorflow` on a system: the package of that name has
/// none there and requires the build in its own version.
fn is_part(first: &Package, second: &Package) -> bool {
    first.name == "tensorflow"
        && matches!(&*second.name, "tensorflow-intel" | "tensorflow-macos" | "tensorflow-cpu-aws")
        && first.public() == second.public()
}

fn several_builds(view: &View<'_>, builds: &[&Package], findings: &mut Findings) {
    let names: Vec<&str> = builds.iter().map(|build| build.name.as_str()).collect();
    let versions: Vec<String> = builds.iter().map(|build| told(build)).collect();
    let mut found = problem(
        Rule::SameFiles,
        &names,
        versions.join(", "),
        "one of them".to_owned(),
        format!("{} own the same folder, tensorflow", versions.join(" and ")),
    );
    found.symptom = Some("no GPU is found, or files of two releases are mixed".to_owned());
    // Candidate to keep; the first one is the last choice.
    for kept in builds {
        let others = names.iter().filter(|name| **name != kept.name);
        found.candidates.push(others.map(|name| removal(view.environment, name)).collect());
    }
    findings.problem(found);
}

fn extension(view: &View<'_>, extension: &Package, tensorflow: &Package, findings: &mut Findings) {
    // TensorFlow I/O has its own numbers; it declares its TensorFlow in an extra.
    let wanted = if SAME_NUMBERS.contains(&&*extension.name) {
        of_minor(extension.minor())
    } else {
        let requires = declared::requires(view.known, extension);
        requires
            .iter()
            .find(|one| one.name.as_ref() == "tensorflow")
            .and_then(declared::specifiers)
            .cloned()
    };
    let Some(wanted) = wanted.filter(|wanted| !wanted.contains(&tensorflow.public())) else {
        return;
    };
    // A pre-release of the required MAJOR.MINOR counts as one.
    if SAME_NUMBERS.contains(&&*extension.name) && extension.minor() == tensorflow.minor() {
        return;
    }
    let expected = Target::Specifiers(wanted.clone()).to_string();
    let mut found = problem(
        Rule::TensorflowExtension,
        &[&extension.name, &tensorflow.name],
        tensorflow.version.to_string(),
        expected.clone(),
        format!(
            "{} is for {} {expected}, and it is {}",
            told(extension),
            tensorflow.name,
            tensorflow.version
        ),
    );
    found.symptom =
        Some("NotFoundError: undefined symbol, or a kernel that is registered twice".to_owned());
    let environment = view.environment;
    if SAME_NUMBERS.contains(&&*extension.name)
        && let Some(specifiers) = of_minor(tensorflow.minor())
    {
        found.candidates.push(vec![to_specifiers(environment, &extension.name, specifiers)]);
    }
    found.candidates.push(vec![to_specifiers(environment, &tensorflow.name, wanted)]);
    found.candidates.push(vec![removal(environment, &extension.name)]);
    findings.problem(found);
}

/// Checks the libraries in `tensorflow-plugins`, which TensorFlow loads on import.
fn plugins(view: &View<'_>, tensorflow: &Package, findings: &mut Findings) {
    for library in &view.environment.tensorflow_plugins {
        let name =
            library.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Some(missing) = view.libraries.missing_symbols(library, &tensorflow.version) else {
            let message = format!(
                "the functions that {name} needs were not compared with those of {}",
                told(tensorflow)
            );
            findings.warn(WarningRule::NotJudged, &[&tensorflow.name], message);
            continue;
        };
        let Some(first) = missing.first() else { continue };
        let more = match missing.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        let mut found = problem(
            Rule::SymbolsMissing,
            &[&name, &tensorflow.name],
            format!("{first}{more}"),
            format!("functions that {} exports", told(tensorflow)),
            format!("{name} needs {first}{more}, which {} does not export", told(tensorflow)),
        );
        found.symptom = Some(format!("{name}: undefined symbol: {first}"));
        found.location = Some(library.display().to_string());
        found.words =
            Some(format!("take a TensorFlow that exports {first}, or remove the plug-in"));
        findings.problem(found);
    }
}
