//! Modules and libraries that frameworks recognize as plug-ins.

use std::path::{Path, PathBuf};

use super::guard::Guard;
use crate::environment::{Environment, PluginFramework, PluginModule};

/// File extensions of shared libraries.
const LIBRARIES: [&str; 3] = [".so", ".dylib", ".dll"];

/// Returns the modules that frameworks recognize as plug-ins: those below `jax_plugins`, and those
/// of entry points.
pub(super) fn modules(
    guard: &Guard,
    site: &Path,
    entry_points: Vec<(PluginFramework, String, String)>,
    environment: &mut Environment,
) {
    let folder = site.join("jax_plugins");
    let mut found: Vec<PluginModule> = Vec::new();
    for name in guard.names(&folder) {
        let path = folder.join(&name);
        let module = match name.strip_suffix(".py") {
            Some("__init__") => continue,
            Some(module) => module.to_owned(),
            None if name == "__pycache__" || !is_module(guard, &path) => continue,
            None => name.clone(),
        };
        let owned = format!("jax_plugins/{module}");
        let owner = environment.packages.values().find(|package| {
            package.files.iter().any(|file| {
                file.path
                    .strip_prefix(&owned)
                    .is_some_and(|rest| rest.starts_with('/') || rest == ".py")
            })
        });
        let by_name = || {
            let rest = module.strip_prefix("xla_")?;
            let name = format!("jax-{rest}-pjrt");
            environment.packages.contains_key(&name).then_some(name)
        };
        found.push(PluginModule {
            framework: PluginFramework::Jax,
            module: format!("jax_plugins.{module}"),
            owner: owner.map(|package| package.name.clone()).or_else(by_name),
            entry_point: false,
            exists: true,
            library: library_below(guard, &path),
            path,
        });
    }
    for (framework, module, package) in entry_points {
        let is_same =
            |known: &&mut PluginModule| known.framework == framework && known.module == module;
        if let Some(known) = found.iter_mut().find(is_same) {
            known.entry_point = true;
            known.owner = Some(package);
            continue;
        }
        let path: PathBuf = site.join(module.replace('.', "/"));
        let exists = is_module(guard, &path) || path.with_extension("py").is_file();
        found.push(PluginModule {
            framework,
            module,
            owner: Some(package),
            entry_point: true,
            exists,
            library: library_below(guard, &path),
            path,
        });
    }
    environment.plugins.extend(found);
}

/// Returns true if a folder is a module: one with only caches is left over from a removal.
fn is_module(guard: &Guard, folder: &Path) -> bool {
    folder.is_dir() && guard.names(folder).iter().any(|inside| inside != "__pycache__")
}

/// Returns the library in a folder or in its folder `lib`.
fn library_below(guard: &Guard, folder: &Path) -> Option<PathBuf> {
    [folder.to_owned(), folder.join("lib")].into_iter().find_map(|folder| {
        let names = guard.names(&folder);
        let is_library = |name: &&String| LIBRARIES.iter().any(|suffix| name.ends_with(suffix));
        let mut libraries = names.iter().filter(is_library);
        let named = libraries.clone().find(|name| name.contains("plugin"));
        named.or_else(|| libraries.next()).and_then(|name| guard.file(&folder.join(name)))
    })
}

/// Finds the libraries that TensorFlow loads on import.
pub(super) fn tensorflow(guard: &Guard, site: &Path, environment: &mut Environment) {
    let folder = site.join("tensorflow-plugins");
    for name in guard.names(&folder) {
        if LIBRARIES.iter().any(|suffix| name.ends_with(suffix)) {
            environment.tensorflow_plugins.extend(guard.file(&folder.join(name)));
        }
    }
}
