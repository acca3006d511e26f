//! CUDA libraries from packages, and NVIDIA's driver, for the CUDA plug-ins of jax.

use pep440_rs::{Version, VersionSpecifiers};
use pep508_rs::Requirement;

use super::{
    declared,
    findings::{Findings, View, problem, removal, to_specifiers, to_version, told},
};
use crate::{
    diagnosis::{Change, Target},
    environment::Kind,
    package::{Package, minor},
    rule::{Rule, WarningRule},
};

/// The libraries that jax looks for at start, by the middle of their names.
const NEEDED: [&str; 7] =
    ["cublas", "cudnn", "cufft", "cusolver", "cusparse", "cuda-runtime", "cuda-cupti"];

pub(super) fn judge(view: &View<'_>, findings: &mut Findings) {
    for cuda in [12, 13] {
        let pjrt = format!("jax-cuda{cuda}-pjrt");
        let plugin = format!("jax-cuda{cuda}-plugin");
        let Some(package) = view.package(&plugin).or_else(|| view.package(&pjrt)) else { continue };
        for library in NEEDED {
            findings.explain(&plugin, &name_of(library, cuda));
        }
        libraries(view, package, &plugin, cuda, findings);
        driver(view, package, cuda, findings);
    }
}

/// Returns the package of a library for a CUDA major.
fn name_of(library: &str, cuda: u64) -> String {
    match (library, cuda) {
        (library, 12) => format!("nvidia-{library}-cu12"),
        ("cudnn", _) => format!("nvidia-{library}-cu{cuda}"),
        (library, _) => format!("nvidia-{library}"),
    }
}

fn libraries(view: &View<'_>, package: &Package, plugin: &str, cuda: u64, findings: &mut Findings) {
    let environment = view.environment;
    let from_packages = environment.packages.keys().any(|name| name.starts_with("nvidia-"));
    if !from_packages || environment.kind == Kind::Conda {
        let message = format!(
            "the CUDA {cuda} libraries of {} are not installed as packages; the loader's path decides which are taken",
            told(package)
        );
        return findings.warn(WarningRule::LibrariesElsewhere, &[&package.name], message);
    }
    let present = |library: &str| {
        let name = name_of(library, cuda);
        environment
            .package(&name)
            .filter(|found| found.version.release().iter().any(|part| *part > 1))
    };
    let missing: Vec<&str> =
        NEEDED.into_iter().filter(|library| present(library).is_none()).collect();
    if !missing.is_empty() && environment.is_partial {
        return;
    }
    if !missing.is_empty() {
        return missing_libraries(view, package, cuda, &missing, findings);
    }
    let mut old: Vec<Old<'_>> = Vec::new();
    let built = view.known.cudnn_of(plugin, &package.version);
    if let (Some(cudnn), Some(built)) = (present("cudnn"), built) {
        old.extend(old_cudnn(cudnn, built));
    }
    let requires = declared::requires(view.known, package);
    // Until 0.4.30 jaxlib declares the bounds.
    let of_jaxlib = view.package("jaxlib").map(|jaxlib| declared::requires(view.known, jaxlib));
    let of_jaxlib = of_jaxlib.as_deref().unwrap_or_default();
    for library in NEEDED.into_iter().filter(|library| *library != "cudnn" || built.is_none()) {
        let Some(found) = present(library) else { continue };
        let mut bounds = requires.iter().chain(of_jaxlib);
        let of_library = bounds.find(|one| one.name.as_ref() == found.name);
        let wanted = of_library.and_then(declared::specifiers);
        if let Some(wanted) = wanted.filter(|wanted| !wanted.contains(&found.public())) {
            old.push(Old { library: found, wanted: wanted.clone(), built: None });
        }
    }
    too_old(view, package, &old, findings);
}

/// A library that is too old for a plug-in.
struct Old<'a> {
    library: &'a Package,
    wanted: VersionSpecifiers,
    /// The cuDNN version that the plug-in was built with; `None` for other libraries.
    built: Option<&'a Version>,
}

fn missing_libraries(
    view: &View<'_>,
    package: &Package,
    cuda: u64,
    missing: &[&str],
    findings: &mut Findings,
) {
    let names: Vec<String> = missing.iter().map(|library| name_of(library, cuda)).collect();
    let mut packages = vec![package.name.as_str()];
    packages.extend(names.iter().map(String::as_str));
    let mut found = problem(
        Rule::CudaLibraryMissing,
        &packages,
        "none".to_owned(),
        names.join(", "),
        format!(
            "{} needs {}, which {} not installed",
            told(package),
            names.join(", "),
            if names.len() == 1 { "is" } else { "are" }
        ),
    );
    found.symptom = Some("Unable to load a CUDA library. Is it installed?".to_owned());
    let plugin = format!("jax-cuda{cuda}-plugin");
    let requires = view.package(&plugin).map(|plugin| declared::requires(view.known, plugin));
    let change = |name: &String| {
        let requires = requires.as_ref()?;
        let wanted = requires.iter().find(|one| one.name.as_ref() == name)?;
        let any: VersionSpecifiers =
            declared::specifiers(wanted).cloned().unwrap_or_else(VersionSpecifiers::empty);
        Some(to_specifiers(view.environment, name, any))
    };
    if let Some(changes) = names.iter().map(change).collect() {
        found.candidates.push(changes);
    }
    findings.problem(found);
}

/// Checks cuDNN: it must have the major that the plug-in was built with, and at least its minor;
/// patches do not matter.
fn old_cudnn<'a>(cudnn: &'a Package, built: &'a Version) -> Option<Old<'a>> {
    let ((has_major, has_minor), (major, least)) = (cudnn.minor(), minor(built));
    if has_major == major && has_minor >= least {
        return None;
    }
    let wanted = format!(">={major}.{least},<{}", major.saturating_add(1)).parse().ok()?;
    Some(Old { library: cudnn, wanted, built: Some(built) })
}

/// Reports all libraries that are too old as one problem, since they come from one installation.
fn too_old(view: &View<'_>, package: &Package, old: &[Old<'_>], findings: &mut Findings) {
    let Some(first) = old.first() else { return };
    let mut packages: Vec<&str> = old.iter().map(|one| one.library.name.as_str()).collect();
    packages.push(&package.name);
    let wanted = |one: &Old<'_>| Target::Specifiers(one.wanted.clone()).to_string();
    let parts = |of: &dyn Fn(&Old<'_>) -> String| match old {
        [one] => of(one),
        _ => {
            let parts = old.iter().map(|one| format!("{} {}", one.library.name, of(one)));
            parts.collect::<Vec<_>>().join(", ")
        }
    };
    let sentences: Vec<String> = old.iter().map(|one| sentence(package, one)).collect();
    let mut found = problem(
        Rule::CudaLibraryTooOld,
        &packages,
        parts(&|one| one.library.version.to_string()),
        parts(&wanted),
        sentences.join("; "),
    );
    found.symptom = Some(first.built.map_or_else(
        || "Outdated CUDA installation found.".to_owned(),
        |built| {
            format!(
                "Loaded runtime CuDNN library: {} but source was compiled with: {built}; FAILED_PRECONDITION: DNN library initialization failed",
                first.library.version
            )
        },
    ));
    let change =
        |one: &Old<'_>| to_specifiers(view.environment, &one.library.name, one.wanted.clone());
    found.candidates.push(old.iter().map(change).collect());
    found.candidates.extend(movers(view, old));
    if first.built.is_some() {
        older_plugins(view, package, first.library, &mut found.candidates);
    }
    findings.problem(found);
}

fn sentence(package: &Package, old: &Old<'_>) -> String {
    let (package, library) = (told(package), old.library);
    let Some(built) = old.built else {
        let wanted = Target::Specifiers(old.wanted.clone());
        return format!("{package} wants {} {wanted}, and it is {}", library.name, library.version);
    };
    let age = if library.minor().0 == minor(built).0 { "older" } else { "of another major" };
    format!("{} is {age} than cuDNN {built}, with which {package} was built", told(library))
}

/// Returns changes of packages that pin the libraries, to the oldest known release with fitting
/// pins.
fn movers(view: &View<'_>, old: &[Old<'_>]) -> Vec<Vec<Change>> {
    let mut candidates = Vec::new();
    for package in view.environment.packages.values() {
        let pins = |requires: &[Requirement], library: &Package| {
            requires.iter().find(|one| one.name.as_ref() == library.name).and_then(declared::pinned)
        };
        let requires = declared::requires(view.known, package);
        if old.iter().all(|one| pins(&requires, one.library).is_none()) {
            continue;
        }
        let fits = |release: &&crate::data::Release| {
            release.version > package.public()
                && old.iter().all(|one| {
                    pins(&release.requires, one.library)
                        .is_some_and(|version| one.wanted.contains(&version))
                })
        };
        if let Some(release) = view.known.of(&package.name).iter().find(fits) {
            candidates.push(vec![to_version(view.environment, &package.name, &release.version)]);
        }
    }
    candidates
}

/// Returns changes of jax and its plug-in to a release built with an older cuDNN.
fn older_plugins(
    view: &View<'_>,
    package: &Package,
    cudnn: &Package,
    candidates: &mut Vec<Vec<Change>>,
) {
    let (major, minor_of_cudnn) = cudnn.minor();
    let name = package.name.replace("-pjrt", "-plugin");
    let fits = |release: &&crate::data::Release| {
        let built = view.known.cudnn_of(&name, &release.version).map(minor);
        release.version < package.public()
            && built.is_some_and(|(of, least)| of == major && least <= minor_of_cudnn)
    };
    let Some(release) = view.known.of(&name).iter().rev().find(fits) else { return };
    let names = ["jax", "jaxlib", &name, &name.replace("-plugin", "-pjrt")].map(str::to_owned);
    let there = names.iter().filter(|name| view.package(name).is_some());
    candidates
        .push(there.map(|name| to_version(view.environment, name, &release.version)).collect());
}

/// Compares drivers by their numbers; the texts have leading zeros, as in `525.60.13`.
fn is_driver_at_least(driver: &str, wanted: &str) -> bool {
    let number = |text: &str| text.parse::<Version>().ok();
    number(driver) >= number(wanted)
}

fn driver(view: &View<'_>, package: &Package, cuda: u64, findings: &mut Findings) {
    let environment = view.environment;
    let Some(wanted) = view.known.driver_for(cuda).filter(|_| environment.has_files()) else {
        return;
    };
    let Some(driver) = &environment.driver else {
        let message = format!(
            "the NVIDIA driver is not visible from here; CUDA {cuda} wants {wanted} or newer"
        );
        return findings.warn(WarningRule::DriverUnknown, &[&package.name], message);
    };
    if is_driver_at_least(driver, wanted) {
        return;
    }
    let pjrt = format!("jax-cuda{cuda}-pjrt");
    let mut found = problem(
        Rule::DriverTooOld,
        &[&pjrt],
        driver.to_string(),
        format!(">={wanted}"),
        format!("the NVIDIA driver is {driver}, and CUDA {cuda} wants {wanted} or newer"),
    );
    found.symptom = Some("CUDA driver version is insufficient for CUDA runtime version".to_owned());
    found.words = Some(format!("update the NVIDIA driver to {wanted} or newer"));
    let older = cuda.saturating_sub(1);
    if view.known.driver_for(older).is_some_and(|wanted| is_driver_at_least(driver, wanted)) {
        let mut changes = Vec::new();
        for half in ["plugin", "pjrt"] {
            changes.push(removal(environment, &format!("jax-cuda{cuda}-{half}")));
            changes.push(to_version(
                environment,
                &format!("jax-cuda{older}-{half}"),
                &package.version,
            ));
        }
        found.candidates.push(changes);
    }
    findings.problem(found);
}
