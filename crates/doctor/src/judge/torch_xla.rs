//! Checks torch_xla against the torch that it links, and the libtpu that it pins.

use super::{
    declared,
    findings::{Findings, View, of_minor, problem, removal, to_version, told},
};
use crate::{
    package::Package,
    rule::{Rule, WarningRule},
};

pub(super) fn judge(view: &View<'_>, findings: &mut Findings) {
    let torch_xla = view.package("torch-xla");
    if let Some(torch_xla) = torch_xla {
        torch(view, torch_xla, findings);
        for other in ["libtpu", "jax", "jaxlib"] {
            findings.explain("torch-xla", other);
        }
    }
    let Some(libtpu) = view.package("libtpu") else { return };
    findings.explain("jax", "libtpu");
    if let Some(torch_xla) = torch_xla
        && pinned_libtpu(view, torch_xla, libtpu, findings)
    {
        return;
    }
    unpinned(view, libtpu, findings);
}

fn torch(view: &View<'_>, torch_xla: &Package, findings: &mut Findings) {
    let Some(torch) = view.package("torch") else { return };
    findings.explain("torch-xla", "torch");
    if torch.minor() == torch_xla.minor() {
        return;
    }
    let ((major, minor), environment) = (torch_xla.minor(), view.environment);
    let mut found = problem(
        Rule::TorchXlaTorch,
        &["torch", "torch-xla"],
        torch.version.to_string(),
        format!("=={major}.{minor}.*"),
        format!("{} links torch {major}.{minor}, and torch is {}", told(torch_xla), torch.version),
    );
    found.symptom = Some("ImportError: _XLAC: undefined symbol".to_owned());
    for (package, of) in [("torch", torch_xla.minor()), ("torch-xla", torch.minor())] {
        let release = of_minor(of).and_then(|specifiers| view.known.newest(package, &specifiers));
        if let Some(release) = release {
            // torch_xla was built with the first release of a MAJOR.MINOR.
            let known =
                view.known.of(package).iter().find(|one| crate::package::minor(&one.version) == of);
            let version = &known.unwrap_or(release).version;
            let change = to_version(environment, package, version);
            found.candidates.push(vec![change.clone()]);
            let pin = view.known.release(package, version).and_then(|release| {
                release
                    .requires
                    .iter()
                    .find(|one| one.name.as_ref() == "libtpu")
                    .and_then(declared::pinned)
            });
            if let Some(pin) = pin.filter(|_| environment.package("libtpu").is_some()) {
                found.candidates.push(vec![change, to_version(environment, "libtpu", &pin)]);
            }
        }
    }
    findings.problem(found);
}

/// Compares the libtpu that a torch_xla pins with the installed one. Returns true if it reported a
/// problem.
fn pinned_libtpu(
    view: &View<'_>,
    torch_xla: &Package,
    libtpu: &Package,
    findings: &mut Findings,
) -> bool {
    let requires = declared::requires(view.known, torch_xla);
    let pin = |name: &str| {
        requires.iter().find(|one| one.name.as_ref() == name).and_then(declared::pinned)
    };
    let Some(pinned) = pin("libtpu") else { return false };
    let release = |version: &pep440_rs::Version| {
        version.release().iter().take(3).copied().collect::<Vec<u64>>()
    };
    if release(&pinned) == release(&libtpu.version) {
        return false;
    }
    let environment = view.environment;
    let mut found = problem(
        Rule::Libtpu,
        &["libtpu", "torch-xla"],
        libtpu.version.to_string(),
        format!("=={pinned}"),
        format!("{} pins libtpu {pinned}, and it is {}", told(torch_xla), libtpu.version),
    );
    found.symptom = Some(if libtpu.version > pinned {
        "Unexpected PJRT_Plugin_Attributes_Args size, and the process aborts".to_owned()
    } else {
        "Unsupported Mosaic version".to_owned()
    });
    found.candidates.push(vec![to_version(environment, "libtpu", &pinned)]);
    if let (Some(jax), Some(_)) = (pin("jax"), environment.package("jax")) {
        let mut changes =
            vec![to_version(environment, "libtpu", &pinned), to_version(environment, "jax", &jax)];
        if environment.package("jaxlib").is_some() {
            changes.push(to_version(environment, "jaxlib", &jax));
        }
        found.candidates.push(changes);
    }
    found.candidates.push(vec![removal(environment, "torch-xla")]);
    findings.problem(found);
    true
}

fn unpinned(view: &View<'_>, libtpu: &Package, findings: &mut Findings) {
    let Some(jax) = view.package("jax") else { return };
    let pin = view.known.release("jax", &jax.version).and_then(|release| release.libtpu.as_ref());
    let Some(pin) = pin.filter(|pin| pin.name.as_ref() == "libtpu") else { return };
    if let Some(specifiers) = declared::specifiers(pin)
        && !specifiers.contains(&libtpu.public())
    {
        let expected = crate::diagnosis::Target::Specifiers(specifiers.clone());
        let message = format!(
            "{} pins libtpu {expected}, and it is {}; nothing is known against it",
            told(jax),
            libtpu.version
        );
        findings.warn(WarningRule::LibtpuUnpinned, &["libtpu", "jax"], message);
    }
}
