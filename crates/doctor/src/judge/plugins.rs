//! Checks jaxlib against the plug-ins that jax finds.

use std::collections::BTreeMap;

use pep440_rs::{Operator, Version};

use super::{
    declared,
    findings::{Findings, View, problem, removal, to_version, told},
};
use crate::{
    beside,
    diagnosis::Change,
    environment::{Environment, PluginFramework, PluginModule},
    libraries::Comparison,
    package::Package,
    rule::{Rule, WarningRule},
};

/// The last release that accepts only plug-ins with its own PJRT minor.
const TAKES_ITS_MINOR_UNTIL: [u64; 3] = [0, 4, 31];

pub(super) fn judge(view: &View<'_>, findings: &mut Findings) {
    for name in names(view.environment) {
        halves(view, &name, findings);
        compare(view, &name, findings);
    }
    for plugin in &view.environment.plugins {
        module(view, plugin, findings);
        if plugin.framework == PluginFramework::Jax {
            table(view, plugin, findings);
        }
    }
    if !view.environment.has_files() {
        minors_in_lock(view, findings);
    }
    same_platform(view, findings);
    for name in names(view.environment) {
        bounds_of_jax(view, &name, findings);
    }
}

/// Marks a plug-in's bounds from jax's extras as reported. They add nothing to the other rules:
/// ROCm's plug-in is accepted with other numbers, and since 0.5.3 jaxlib compares the others
/// itself.
fn bounds_of_jax(view: &View<'_>, name: &str, findings: &mut Findings) {
    let halves = [format!("jax-{name}-plugin"), format!("jax-{name}-pjrt")];
    let compares = |jaxlib: &Package| beside::compares(&jaxlib.version);
    let is_said = findings
        .problems
        .iter()
        .any(|known| halves.iter().any(|half| known.packages.contains(half)));
    if is_said || name.starts_with("rocm") || view.package("jaxlib").is_none_or(compares) {
        for half in &halves {
            findings.explain("jax", half);
        }
    }
}

/// Returns the names of plug-ins with two packages: `cuda12` for `jax-cuda12-plugin` and
/// `jax-cuda12-pjrt`.
fn names(environment: &Environment) -> Vec<String> {
    let name = |package: &String| {
        let rest = package.strip_prefix("jax-")?;
        let name = rest.strip_suffix("-plugin").or_else(|| rest.strip_suffix("-pjrt"))?;
        let has_halves = ["cuda", "rocm", "oneapi"].iter().any(|kind| name.starts_with(kind));
        has_halves.then(|| name.to_owned())
    };
    let mut names: Vec<String> = environment.packages.keys().filter_map(name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the packages of plug-ins that fit one jaxlib only.
pub(super) fn compared(environment: &Environment) -> Vec<&str> {
    let is_compared = |name: &&String| {
        (name.starts_with("jax-cuda") || name.starts_with("jax-oneapi"))
            && (name.ends_with("-plugin") || name.ends_with("-pjrt"))
    };
    environment.packages.keys().filter(is_compared).map(String::as_str).collect()
}

fn halves(view: &View<'_>, name: &str, findings: &mut Findings) {
    let (kernels, pjrt) = (format!("jax-{name}-plugin"), format!("jax-{name}-pjrt"));
    findings.explain(&kernels, &pjrt);
    match (view.package(&kernels), view.package(&pjrt)) {
        (Some(kernels), Some(pjrt)) if kernels.public() != pjrt.public() => {
            let mut found = problem(
                Rule::PluginHalvesDiffer,
                &[&kernels.name, &pjrt.name],
                pjrt.version.to_string(),
                format!("=={}", kernels.version),
                format!(
                    "{} and {} are halves of one plug-in, and of two versions",
                    told(kernels),
                    told(pjrt)
                ),
            );
            let environment = view.environment;
            found.candidates.push(vec![to_version(environment, &pjrt.name, &kernels.version)]);
            found.candidates.push(vec![to_version(environment, &kernels.name, &pjrt.version)]);
            if let Some(jaxlib) = view.package("jaxlib") {
                found.candidates.push(pair(environment, name, &jaxlib.version));
            }
            findings.problem(found);
        }
        (Some(one), None) => half(view, one, &pjrt, findings),
        (None, Some(one)) => half(view, one, &kernels, findings),
        _ => {}
    }
}

fn half(view: &View<'_>, one: &Package, other: &str, findings: &mut Findings) {
    // For a plug-in inside of jaxlib, conda has the metadata of the package with the entry points.
    if view.environment.jaxlib_holds_plugin || view.environment.is_partial {
        return;
    }
    let mut found = problem(
        Rule::PluginHalfInstalled,
        &[&one.name, other],
        "none".to_owned(),
        format!("=={}", one.version),
        format!("{} is half of a plug-in, and {other} is not installed", told(one)),
    );
    let environment = view.environment;
    found.candidates.push(vec![to_version(environment, other, &one.version)]);
    if let Some(jaxlib) = view.package("jaxlib").filter(|jaxlib| jaxlib.public() != one.public()) {
        found.candidates.push(vec![
            to_version(environment, &one.name, &jaxlib.version),
            to_version(environment, other, &jaxlib.version),
        ]);
    }
    found.candidates.push(vec![removal(environment, &one.name)]);
    findings.problem(found);
}

fn pair(environment: &Environment, name: &str, version: &Version) -> Vec<Change> {
    vec![
        to_version(environment, &format!("jax-{name}-plugin"), version),
        to_version(environment, &format!("jax-{name}-pjrt"), version),
    ]
}

/// Compares the version of the kernels with jaxlib's, like jaxlib.
fn compare(view: &View<'_>, name: &str, findings: &mut Findings) {
    let kernels = format!("jax-{name}-plugin");
    let (Some(kernels), Some(jaxlib)) = (view.package(&kernels), view.package("jaxlib")) else {
        return;
    };
    if !beside::is_dropped(name, &kernels.version, &jaxlib.version) {
        return;
    }
    let mut found = problem(
        Rule::PluginJaxlibDiffer,
        &[&kernels.name, "jaxlib"],
        kernels.version.to_string(),
        format!("=={}", jaxlib.version),
        format!(
            "{} goes with jaxlib {} alone, and jaxlib is {}",
            told(kernels),
            kernels.version,
            jaxlib.version
        ),
    );
    let kernel = if name.starts_with("cuda") { "cusolver_potrf_ffi" } else { "its kernels" };
    found.symptom = Some(format!("No FFI handler registered for {kernel}"));
    let location = kernels.version_file.as_ref().or(kernels.path.as_ref());
    found.location = location.map(|path| path.display().to_string());
    let environment = view.environment;
    found.candidates.push(pair(environment, name, &jaxlib.version));
    let mut all = vec![
        to_version(environment, "jax", &kernels.version),
        to_version(environment, "jaxlib", &kernels.version),
    ];
    if environment.package("jax").is_none() {
        all.remove(0);
    }
    found.candidates.push(all);
    findings.problem(found);
}

fn module(view: &View<'_>, plugin: &PluginModule, findings: &mut Findings) {
    let owner = plugin.owner.as_deref().unwrap_or(&plugin.module);
    let again = |found: &mut crate::diagnosis::Problem| {
        if let Some(package) = view.package(owner) {
            found.candidates.push(vec![to_version(view.environment, owner, &package.version)]);
            found.candidates.push(vec![removal(view.environment, owner)]);
        }
    };
    if !plugin.exists {
        let mut found = problem(
            Rule::PluginModuleMissing,
            &[owner],
            "none".to_owned(),
            plugin.module.clone(),
            format!("{owner} names the module {}, which is not there", plugin.module),
        );
        found.symptom = Some(match plugin.framework {
            PluginFramework::Jax => format!(
                "Jax plugin configuration error: Plugin module {} does not exist",
                plugin.module
            ),
            PluginFramework::TorchXla => {
                format!("ModuleNotFoundError: No module named '{}'", plugin.module)
            }
        });
        again(&mut found);
        findings.problem(found);
    } else if plugin.library.is_none() && matches!(plugin.platform(), Some("cuda" | "rocm")) {
        let mut found = problem(
            Rule::PluginLibraryMissing,
            &[owner],
            "none".to_owned(),
            "a library".to_owned(),
            format!("the module {} of {owner} has no library", plugin.module),
        );
        again(&mut found);
        findings.problem(found);
    }
}

/// Checks a plug-in's function table against jaxlib: with the library itself, or else with the
/// releases.
fn table(view: &View<'_>, plugin: &PluginModule, findings: &mut Findings) {
    let Some(jaxlib) = view.package("jaxlib").filter(|_| plugin.exists) else { return };
    let owner = plugin.owner.as_deref().unwrap_or(&plugin.module);
    let package = view.package(owner);
    let minor = || {
        let read = plugin.library.as_deref().and_then(|library| view.libraries.pjrt_minor(library));
        read.or_else(|| view.known.pjrt_minor(owner, &package?.version))
    };
    let compared = plugin
        .library
        .as_deref()
        .and_then(|library| view.libraries.compare(library, &jaxlib.version));
    if let Some(Comparison { misfits, unknown_minor }) = compared {
        for misfit in misfits {
            let mut found = problem(
                misfit.rule,
                &[owner, "jaxlib"],
                misfit.found,
                misfit.expected,
                misfit.message,
            );
            found.location = plugin.library.as_ref().map(|library| library.display().to_string());
            found.candidates = candidates_of_table(view, owner, jaxlib);
            findings.problem(found);
        }
        if let Some(message) = unknown_minor {
            findings.warn(WarningRule::UnknownMinor, &[owner, "jaxlib"], message);
        }
    } else if let Some(minor) = minor() {
        minors(view, owner, minor, jaxlib, findings);
    }
    if let Some(package) = package
        && bounds_nothing(view, package)
        && let Some(minor) = minor()
    {
        old(view, package, minor, jaxlib, findings);
    }
}

/// Returns true if a plug-in's jax has no upper bound in the metadata or the table. The packages of
/// a plug-in with jaxlib's numbers are bounded by them.
fn bounds_nothing(view: &View<'_>, package: &Package) -> bool {
    let is_jax = |name: &str| matches!(name, "jax" | "jaxlib");
    let is_listed =
        package.requires.is_some() || view.known.release(&package.name, &package.version).is_some();
    let requires = declared::requires(view.known, package);
    let mut bounds = requires
        .iter()
        .filter(|one| is_jax(one.name.as_ref()))
        .filter_map(declared::specifiers)
        .flat_map(|specifiers| specifiers.iter());
    let is_upper = |operator: &Operator| {
        !matches!(
            operator,
            Operator::GreaterThan
                | Operator::GreaterThanEqual
                | Operator::NotEqual
                | Operator::NotEqualStar
        )
    };
    let mut needs = view.known.needs_of(&package.name, &package.version);
    is_listed
        && names(view.environment).iter().all(|name| package.name != format!("jax-{name}-pjrt"))
        && !bounds.any(|one| is_upper(one.operator()))
        && !needs.any(|need| is_jax(need.needs.name.as_ref()))
}

/// Reports a plug-in without an upper bound that was built before jaxlib: only the jaxlib that it
/// was built with was tested.
fn old(view: &View<'_>, package: &Package, minor: u32, jaxlib: &Package, findings: &mut Findings) {
    let has_problem = findings.problems.iter().any(|known| known.packages.contains(&package.name));
    let own = view.known.pjrt_minor("jaxlib", &jaxlib.version).filter(|own| *own > minor);
    if let Some(own) = own.filter(|_| !has_problem) {
        let message = format!(
            "{} was built with PJRT 0.{minor} and declares no newest jax; {} has PJRT 0.{own}, and nothing is known of the two together",
            told(package),
            told(jaxlib)
        );
        findings.warn(WarningRule::OldPlugin, &[&package.name, "jaxlib"], message);
    }
}

/// Checks the minors for old releases of jaxlib, which accept only plug-ins with their own.
fn minors(view: &View<'_>, owner: &str, minor: u32, jaxlib: &Package, findings: &mut Findings) {
    if jaxlib.public() > Version::new(TAKES_ITS_MINOR_UNTIL) {
        return;
    }
    let Some(own) = view.known.pjrt_minor("jaxlib", &jaxlib.version).filter(|own| *own != minor)
    else {
        return;
    };
    let mut found = problem(
        Rule::MinorsDiffer,
        &[owner, "jaxlib"],
        format!("0.{minor}"),
        format!("0.{own}"),
        format!("{owner} is of PJRT 0.{minor}, and {} takes 0.{own} alone", told(jaxlib)),
    );
    found.symptom = Some(format!(
        "INVALID_ARGUMENT: Mismatched PJRT plugin PJRT API version (0.{minor}) and framework PJRT API version 0.{own})"
    ));
    found.candidates = candidates_of_table(view, owner, jaxlib);
    findings.problem(found);
}

fn minors_in_lock(view: &View<'_>, findings: &mut Findings) {
    let Some(jaxlib) = view.package("jaxlib") else { return };
    for package in view.environment.packages.values() {
        let is_plugin = (package.name.starts_with("jax-") && package.name.ends_with("-pjrt"))
            || matches!(
                &*package.name,
                "jax-metal" | "jax-tt-plugin" | "intel-extension-for-openxla"
            );
        let Some(minor) =
            view.known.pjrt_minor(&package.name, &package.version).filter(|_| is_plugin)
        else {
            continue;
        };
        minors(view, &package.name, minor, jaxlib, findings);
    }
}

fn candidates_of_table(view: &View<'_>, owner: &str, jaxlib: &Package) -> Vec<Vec<Change>> {
    let environment = view.environment;
    let halves = owner.strip_prefix("jax-").and_then(|rest| rest.strip_suffix("-pjrt"));
    let mut candidates = Vec::new();
    if let Some(name) =
        halves.filter(|name| environment.package(&format!("jax-{name}-plugin")).is_some())
    {
        candidates.push(pair(environment, name, &jaxlib.version));
    }
    let jax = environment.package("jax");
    if let Some(package) = environment.package(owner) {
        let mut both = vec![to_version(environment, "jaxlib", &package.version)];
        if jax.is_some() {
            both.insert(0, to_version(environment, "jax", &package.version));
        }
        candidates.push(both);
        candidates.push(vec![removal(environment, owner)]);
    }
    candidates
}

/// Reports two plug-ins that register the same platform.
fn same_platform(view: &View<'_>, findings: &mut Findings) {
    let environment = view.environment;
    let mut by_platform: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    if environment.has_files() {
        for plugin in environment.plugins.iter().filter(|plugin| plugin.exists) {
            let Some(platform) = plugin.platform() else { continue };
            let owner = plugin.owner.clone().unwrap_or_else(|| plugin.module.clone());
            by_platform.entry(platform).or_default().push(owner);
        }
    } else {
        for name in environment.packages.keys() {
            let Some(rest) = name.strip_prefix("jax-").and_then(|rest| rest.strip_suffix("-pjrt"))
            else {
                continue;
            };
            let platform =
                ["cuda", "rocm", "oneapi"].into_iter().find(|kind| rest.starts_with(kind));
            if let Some(platform) = platform {
                by_platform.entry(platform).or_default().push(name.clone());
            }
        }
    }
    for (platform, owners) in by_platform {
        if owners.len() < 2 {
            continue;
        }
        let names: Vec<&str> = owners.iter().map(String::as_str).collect();
        let every = if names.len() == 2 { "both" } else { "all" };
        let mut found = problem(
            Rule::PluginsSamePlatform,
            &names,
            names.join(", "),
            "one of them".to_owned(),
            format!("{} {every} register the platform `{platform}`", names.join(" and ")),
        );
        found.symptom = Some(format!(
            "ALREADY_EXISTS: PJRT_Api already exists for device type {platform} (which of them is taken changes from run to run)"
        ));
        for kept in names.iter().rev() {
            let others = owners.iter().filter(|owner| owner != kept);
            let packages =
                others.flat_map(|owner| [owner.replace("-pjrt", "-plugin"), owner.clone()]);
            let installed = packages.filter(|name| environment.package(name).is_some());
            found.candidates.push(installed.map(|name| removal(environment, &name)).collect());
        }
        findings.problem(found);
    }
}
