//! Folders of packages: `site-packages` and `dist-packages`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    elf,
    guard::{Guard, METADATA_LIMIT},
    metadata,
};
use crate::{
    environment::{Environment, PluginModule, SystemNeed},
    names::is_judged,
    package::Package,
};

/// The record of a large package, such as TensorFlow's, has some megabytes.
const RECORD_LIMIT: u64 = 32 << 20;
/// Modules that tell a version without metadata, and the package that they are of.
const MODULES: [(&str, &str); 8] = [
    ("jax", "jax"),
    ("jaxlib", "jaxlib"),
    ("torch", "torch"),
    ("numpy", "numpy"),
    ("jax_cuda12_plugin", "jax-cuda12-plugin"),
    ("jax_cuda13_plugin", "jax-cuda13-plugin"),
    ("jax_rocm7_plugin", "jax-rocm7-plugin"),
    ("jax_oneapi_plugin", "jax-oneapi-plugin"),
];
/// Libraries of one package that are looked at.
const LIBRARIES: usize = 16;

/// Reads a folder of packages into an environment.
pub(super) fn read(guard: &Guard, site: &Path, environment: &mut Environment) {
    let names = guard.names(site);
    let mut entry_points = Vec::new();
    for name in &names {
        let file = match name {
            name if name.ends_with(".dist-info") => "METADATA",
            name if name.ends_with(".egg-info") => "PKG-INFO",
            _ => continue,
        };
        let folder = site.join(name);
        let text = guard.text(&folder.join(file), METADATA_LIMIT);
        // Very old tools write a file in place of a folder.
        let text = text.or_else(|| guard.text(&folder, METADATA_LIMIT));
        let Some(package) = text.as_deref().and_then(metadata::package) else { continue };
        environment.count += 1;
        for module in guard
            .text(&folder.join("entry_points.txt"), METADATA_LIMIT)
            .iter()
            .flat_map(|text| metadata::jax_plugins(text))
        {
            entry_points.push((module, package.name.clone()));
        }
        if is_judged(&package.name) {
            add(environment, details(guard, site, &folder, package));
        }
    }
    leftovers(guard, site, &names, environment);
    modules(guard, site, entry_points, environment);
    tensorflow_plugins(guard, site, environment);
    needs(guard, site, environment);
}

fn add(environment: &mut Environment, package: Package) {
    let name = package.name.clone();
    // The folder of packages that comes first on the path is the one that is imported.
    let Some(first) = environment.packages.get(&name) else {
        environment.packages.insert(name, package);
        return;
    };
    if first.path.as_ref().and_then(|path| path.parent())
        == package.path.as_ref().and_then(|path| path.parent())
        && first.metadata_version != package.metadata_version
    {
        let versions =
            [first, &package].into_iter().filter_map(|package| package.metadata_version.clone());
        environment.duplicates.push((name, versions.collect()));
    }
}

/// What the files beside METADATA say.
fn details(guard: &Guard, site: &Path, folder: &Path, mut package: Package) -> Package {
    package.path = Some(folder.to_owned());
    let text = |name: &str, limit| guard.text(&folder.join(name), limit);
    package.tags =
        text("WHEEL", METADATA_LIMIT).map(|text| metadata::tags(&text)).unwrap_or_default();
    package.installer = text("INSTALLER", METADATA_LIMIT).map(|text| text.trim().to_owned());
    package.files =
        text("RECORD", RECORD_LIMIT).map(|text| metadata::record(&text)).unwrap_or_default();
    compare_files(guard, site, &mut package);
    if let Some(text) = version_file(guard, site, &package) {
        if let Some(version) = metadata::version(&text)
            && version.clone().without_local() != package.public()
        {
            package.version = version;
        }
        package.minimum_jaxlib = metadata::assigned(&text, "_minimum_jaxlib_version");
    }
    package
}

/// The version file of a package of which jax or torch reads it.
fn version_file(guard: &Guard, site: &Path, package: &Package) -> Option<String> {
    let module = MODULES
        .iter()
        .find(|(_, name)| *name == package.name)
        .map(|(module, _)| format!("{module}/version.py"));
    let in_plugins = || {
        let rest = package.name.strip_prefix("jax-")?.strip_suffix("-pjrt")?;
        Some(format!("jax_plugins/xla_{rest}/version.py"))
    };
    guard.text(&site.join(module.or_else(in_plugins)?), METADATA_LIMIT)
}

fn compare_files(guard: &Guard, site: &Path, package: &mut Package) {
    for (name, size) in &package.files {
        if name.ends_with(".pyc") || name.contains(".dist-info/") {
            continue;
        }
        if !guard.stays(site, name) {
            package.missing.push(name.clone());
            continue;
        }
        // Scripts lie elsewhere, and images leave them out.
        if name.starts_with("../") {
            continue;
        }
        match fs::symlink_metadata(site.join(name)) {
            Err(_) => package.missing.push(name.clone()),
            Ok(found) => {
                if found.is_file() && size.is_some_and(|size| size != found.len()) {
                    package.changed.push(name.clone());
                }
            }
        }
    }
}

/// Modules without metadata, as an interrupted removal leaves them.
fn leftovers(guard: &Guard, site: &Path, names: &[String], environment: &mut Environment) {
    for (module, name) in MODULES {
        if environment.packages.contains_key(name)
            || names.binary_search(&module.to_owned()).is_err()
        {
            continue;
        }
        let folder = site.join(module);
        let version = guard
            .text(&folder.join("version.py"), METADATA_LIMIT)
            .and_then(|text| metadata::version(&text));
        if let Some(version) = version {
            let mut package = Package::named(name.to_owned(), version);
            package.path = Some(folder);
            environment.packages.insert(name.to_owned(), package);
        }
    }
}

/// The modules that jax takes for plug-ins: those below `jax_plugins`, and those of entry points.
fn modules(
    guard: &Guard,
    site: &Path,
    entry_points: Vec<(String, String)>,
    environment: &mut Environment,
) {
    let folder = site.join("jax_plugins");
    let mut found: Vec<PluginModule> = Vec::new();
    for name in guard.names(&folder) {
        let path = folder.join(&name);
        let module = match name.strip_suffix(".py") {
            Some("__init__") => continue,
            Some(module) => module.to_owned(),
            None if name == "__pycache__" || !path.is_dir() => continue,
            // A folder with nothing but caches is none.
            None if guard.names(&path).iter().all(|inside| inside == "__pycache__") => continue,
            None => name.clone(),
        };
        let owned = format!("jax_plugins/{module}");
        let owner = environment.packages.values().find(|package| {
            package.files.iter().any(|(file, _)| {
                file.strip_prefix(&owned).is_some_and(|rest| rest.starts_with('/') || rest == ".py")
            })
        });
        let by_name = || {
            let rest = module.strip_prefix("xla_")?;
            let name = format!("jax-{rest}-pjrt");
            environment.packages.contains_key(&name).then_some(name)
        };
        found.push(PluginModule {
            module: format!("jax_plugins.{module}"),
            owner: owner.map(|package| package.name.clone()).or_else(by_name),
            entry_point: false,
            exists: true,
            library: library_below(guard, &path),
        });
    }
    for (module, package) in entry_points {
        if let Some(known) = found.iter_mut().find(|known| known.module == module) {
            known.entry_point = true;
            known.owner = Some(package);
            continue;
        }
        let path: PathBuf = site.join(module.replace('.', "/"));
        let exists = path.is_dir() || path.with_extension("py").is_file();
        found.push(PluginModule {
            module,
            owner: Some(package),
            entry_point: true,
            exists,
            library: library_below(guard, &path),
        });
    }
    environment.plugins.extend(found);
}

/// The library in a folder or in its folder `lib`.
fn library_below(guard: &Guard, folder: &Path) -> Option<PathBuf> {
    [folder.to_owned(), folder.join("lib")].into_iter().find_map(|folder| {
        let names = guard.names(&folder);
        let is_library = |name: &&String| name.ends_with(".so") || name.ends_with(".dylib");
        let mut libraries = names.iter().filter(is_library);
        let named = libraries.clone().find(|name| name.contains("plugin"));
        named.or_else(|| libraries.next()).and_then(|name| guard.inside(&folder.join(name)))
    })
}

fn tensorflow_plugins(guard: &Guard, site: &Path, environment: &mut Environment) {
    let folder = site.join("tensorflow-plugins");
    for name in guard.names(&folder) {
        if name.ends_with(".so") || name.ends_with(".dylib") {
            environment.tensorflow_plugins.extend(guard.inside(&folder.join(name)));
        }
    }
}

/// What the libraries ask of the system that decide whether a framework or a plug-in is loaded.
fn needs(guard: &Guard, site: &Path, environment: &mut Environment) {
    let mut libraries: Vec<(String, PathBuf)> = Vec::new();
    for package in environment.packages.values() {
        let is_core = |name: &str| {
            let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
            name.ends_with(".so")
                && (matches!(folder, "jaxlib" | "libtpu" | "torch/lib" | "")
                    || folder.starts_with("jax_plugins/")
                    || folder.ends_with("_plugin"))
        };
        let core =
            package.files.iter().map(|(name, _)| name).filter(|name| is_core(name)).take(LIBRARIES);
        libraries.extend(core.map(|name| (package.name.clone(), site.join(name))));
    }
    for plugin in &environment.plugins {
        if let (Some(owner), Some(library)) = (&plugin.owner, &plugin.library) {
            libraries.push((owner.clone(), library.clone()));
        }
    }
    libraries.sort();
    libraries.dedup();
    for (package, path) in libraries {
        let Some(facts) = guard.inside(&path).as_deref().and_then(elf::read) else { continue };
        environment.needs.push(SystemNeed {
            package,
            path,
            glibc: facts.needs,
            machine: facts.machine,
        });
    }
}
