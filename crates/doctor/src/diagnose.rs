//! Diagnoses an environment.

use crate::{
    data::Releases,
    diagnosis::{Component, Diagnosis},
    environment::Environment,
    judge::{self, Findings},
    libraries::Libraries,
    remedy,
};

/// Diagnoses an environment, and searches for remedies.
#[must_use]
pub fn diagnose(environment: &Environment, libraries: &dyn Libraries) -> Diagnosis {
    let Findings { mut problems, warnings, unknown, .. } = judge::judge(environment, libraries);
    remedy::find(environment, &mut problems, libraries);
    let components = components(environment, libraries);
    Diagnosis {
        environment: environment.clone(),
        components,
        problems,
        warnings,
        unknown,
        strict: false,
    }
}

/// Returns the components that were judged.
fn components(environment: &Environment, libraries: &dyn Libraries) -> Vec<Component> {
    let known = Releases::known();
    let mut components = Vec::with_capacity(environment.packages.len());
    for package in environment.packages.values() {
        let module = environment
            .plugins
            .iter()
            .find(|plugin| plugin.owner.as_deref() == Some(&package.name));
        let library = module.and_then(|plugin| plugin.library.as_deref());
        let read = library.and_then(|library| libraries.pjrt_minor(library));
        components.push(Component {
            name: package.name.clone(),
            version: package.version.clone(),
            metadata_version: package.metadata_version.clone(),
            path: module
                .map(|plugin| &plugin.path)
                .or(package.module.as_ref())
                .or(package.path.as_ref())
                .map(|path| path.display().to_string()),
            found_by: match module {
                _ if !environment.has_files() => "lock",
                Some(plugin) if plugin.entry_point => "entry_point",
                Some(_) => "module",
                None => "metadata",
            },
            pjrt_minor: read.or_else(|| known.pjrt_minor(&package.name, &package.version)),
            library: library.map(|library| library.display().to_string()),
        });
    }
    components
}
