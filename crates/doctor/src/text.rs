//! The diagnosis as text: a line per compatible group, a block per problem.

use std::fmt;

use crate::{
    data::Releases,
    diagnosis::{Component, Diagnosis, Problem},
    environment::Environment,
    names::TENSORFLOW,
    report::python,
};

/// Maximum number of components in one line.
const IN_A_LINE: usize = 5;

/// Returns the index of a component's group.
fn group(name: &str) -> usize {
    let is_plugin = name.ends_with("-pjrt") || name.ends_with("-plugin");
    match name {
        "jax" | "jaxlib" | "jax-metal" | "jax-mps" | "jax-graft" | "jax-qnn" => 0,
        name if name.starts_with("nvidia-") => 1,
        name if name.starts_with("libtpu") => 2,
        "torch" | "torch-xla" => 3,
        "tensorflow-text" | "tf-keras" | "tensorflow-io" | "tensorflow-metal" | "keras" => 4,
        name if TENSORFLOW.contains(&name) => 4,
        _ if is_plugin => 0,
        _ => 5,
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        head(self, f)?;
        fitting(self, f)?;
        for problem in &self.problems {
            block(problem, f)?;
        }
        let word = if self.strict { "problem" } else { "warning" };
        for warning in &self.warnings {
            writeln!(f, "  {word}  {}   [{}]", warning.message, warning.rule)?;
        }
        for unknown in &self.unknown {
            let version = if unknown.version.is_empty() { "" } else { " " };
            writeln!(
                f,
                "  unknown  {}{version}{}: {}",
                unknown.name, unknown.version, unknown.why
            )?;
        }
        write!(f, "\n{}", summary(self))
    }
}

/// Writes the line about the environment.
fn head(diagnosis: &Diagnosis, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let environment = &diagnosis.environment;
    let mut facts = Vec::new();
    let free = if environment.free_threaded { " (free-threaded)" } else { "" };
    facts.extend(python(environment).map(|python| format!("Python {python}{free}")));
    facts.extend(platform(environment));
    facts.extend(environment.glibc.map(|(major, minor)| format!("glibc {major}.{minor}")));
    let judged = diagnosis.components.len();
    let (count, s) = (environment.count, if environment.count == 1 { "" } else { "s" });
    facts.push(format!("{count} package{s}, {judged} judged"));
    let end = facts.pop().unwrap_or_default();
    let facts = facts.join(", ");
    let between = if facts.is_empty() { "" } else { "; " };
    writeln!(f, "{}   {facts}{between}{end}\n", environment.label)
}

fn platform(environment: &Environment) -> Option<String> {
    let machine = environment.machine.as_ref()?.replace("x86_64", "x86-64");
    let system = match environment.system {
        "darwin" => "macOS",
        "win32" => "Windows",
        _ => "Linux",
    };
    Some(format!("{system} {machine}"))
}

/// Writes one line per compatible group.
fn fitting(diagnosis: &Diagnosis, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let broken: Vec<&String> =
        diagnosis.problems.iter().flat_map(|problem| &problem.packages).collect();
    let mut groups: [Vec<&Component>; 6] = Default::default();
    for component in diagnosis.components.iter().filter(|one| !broken.contains(&&one.name)) {
        if let Some(group) = groups.get_mut(group(&component.name)) {
            group.push(component);
        }
    }
    for group in groups.iter().filter(|group| !group.is_empty()) {
        if group.first().is_some_and(|first| first.name.starts_with("nvidia-")) {
            writeln!(f, "  ok       {}", cuda(diagnosis, group))?;
            continue;
        }
        let told: Vec<String> = group
            .iter()
            .map(|component| format!("{} {}", component.name, component.version))
            .collect();
        for line in told.chunks(IN_A_LINE) {
            writeln!(f, "  ok       {}", line.join(", "))?;
        }
    }
    Ok(())
}

/// Formats CUDA's libraries: `CUDA 12.9 libraries: cuDNN 9.10.2 (9.8 or newer wanted), 11 more`.
fn cuda(diagnosis: &Diagnosis, libraries: &[&Component]) -> String {
    let named = |part: &str| libraries.iter().find(|library| library.name.contains(part));
    let numbers = |component: &Component, count: usize| {
        let release = component.version.release().iter().take(count);
        release.map(ToString::to_string).collect::<Vec<_>>().join(".")
    };
    let number = named("-cuda-runtime")
        .map(|runtime| format!(" {}", numbers(runtime, 2)))
        .unwrap_or_default();
    let Some(cudnn) = named("-cudnn") else {
        return format!("CUDA{number} libraries: {}", libraries.len());
    };
    // The plug-in does not use the cuDNN of another CUDA.
    let of_plugin = |component: &&Component| {
        let cuda = component.name.strip_prefix("jax-cuda").and_then(|rest| rest.split('-').next());
        cuda.is_some_and(|cuda| cudnn.name.ends_with(&format!("-cu{cuda}")))
    };
    let wanted = diagnosis.components.iter().filter(of_plugin).find_map(|component| {
        let (major, minor) =
            crate::package::minor(Releases::known().cudnn_of(&component.name, &component.version)?);
        Some(format!(" ({major}.{minor} or newer wanted)"))
    });
    let more = match libraries.len().saturating_sub(1) {
        0 => String::new(),
        more => format!(", {more} more"),
    };
    format!(
        "CUDA{number} libraries: cuDNN {}{}{more}",
        numbers(cudnn, 3),
        wanted.unwrap_or_default()
    )
}

fn block(problem: &Problem, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(f, "  problem  {}   [{}]", problem.message, problem.rule)?;
    if let Some(symptom) = &problem.symptom {
        writeln!(f, "           seen as: {symptom}")?;
    }
    for (number, remedy) in problem.remedies.iter().enumerate() {
        let or = if number == 0 { "" } else { "or       " };
        writeln!(f, "           {or}{}", remedy.text)?;
    }
    Ok(())
}

fn summary(diagnosis: &Diagnosis) -> String {
    let count = |count: usize, one: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    };
    let (mut problems, mut warnings) = (diagnosis.problems.len(), diagnosis.warnings.len());
    if diagnosis.strict {
        problems += warnings;
        warnings = 0;
    }
    let mut parts = Vec::new();
    if problems > 0 {
        parts.push(count(problems, "problem"));
    }
    if warnings > 0 {
        parts.push(count(warnings, "warning"));
    }
    let parts = parts.join(", ");
    match (problems == 0 && diagnosis.unknown.is_empty(), parts.is_empty()) {
        (true, true) => "everything fits".to_owned(),
        (true, false) => format!("everything fits; {parts}"),
        (false, true) => "not everything could be judged".to_owned(),
        (false, false) if problems == 0 => format!("not everything could be judged; {parts}"),
        (false, false) => parts,
    }
}
