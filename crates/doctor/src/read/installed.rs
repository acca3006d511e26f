//! Reads folders of packages: `site-packages` and `dist-packages`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use pep440_rs::Version;

use super::{
    guard::{Guard, METADATA_LIMIT, stays},
    library, metadata, plugins,
};
use crate::{
    environment::{Environment, PluginFramework, SystemNeed},
    names::is_judged,
    package::Package,
};

/// Maximum size of a record in bytes: those of large packages, such as TensorFlow's, have some
/// megabytes.
const RECORD_LIMIT: u64 = 32 << 20;
/// Modules with a version but no metadata, and their packages.
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
/// Maximum number of libraries that are read of one package.
const LIBRARIES: usize = 16;

/// Reads a folder of packages into an environment.
pub(super) fn read(guard: &Guard, site: &Path, environment: &mut Environment) {
    let names = guard.names(site);
    let depth = guard.depth(site);
    let mut entry_points = Vec::new();
    for name in &names {
        let folder = site.join(name);
        let plugins: Vec<(PluginFramework, String)> = match name {
            // pip gives such names to packages that it is removing.
            name if name.starts_with('~') => continue,
            name if name.ends_with(".dist-info") || name.ends_with(".egg-info") => {
                let text = guard.text(&folder.join("entry_points.txt"), METADATA_LIMIT);
                text.map(|text| metadata::plugins(&text)).unwrap_or_default()
            }
            _ => continue,
        };
        let of_folder = metadata::of_folder(name);
        // Packages that are not judged are counted, but not read.
        if let Some((other, _)) = &of_folder
            && plugins.is_empty()
            && !is_judged(other)
        {
            environment.count += 1;
            continue;
        }
        let Some(package) = described(guard, &folder, of_folder) else { continue };
        environment.count += 1;
        if !plugins.is_empty() || is_judged(&package.name) {
            let of_package = plugins
                .into_iter()
                .map(|(framework, module)| (framework, module, package.name.clone()));
            entry_points.extend(of_package);
            add(environment, details(guard, site, depth, &folder, package));
        }
    }
    leftovers(guard, site, &names, environment);
    plugins::modules(guard, site, entry_points, environment);
    plugins::tensorflow(guard, site, environment);
    needs(guard, site, environment);
}

/// Returns the package of a metadata folder; from the folder's name only if its contents cannot be
/// read, which is then a missing file.
fn described(
    guard: &Guard,
    folder: &Path,
    of_folder: Option<(String, Version)>,
) -> Option<Package> {
    let text = |name: &str| guard.text(&folder.join(name), METADATA_LIMIT);
    // Very old tools write a file instead of a folder.
    let text = text("METADATA")
        .or_else(|| text("PKG-INFO"))
        .or_else(|| guard.text(folder, METADATA_LIMIT));
    if let Some(package) = text.as_deref().and_then(metadata::package) {
        return Some(package);
    }
    let (name, version) = of_folder?;
    let mut package = Package::named(name, version);
    let name = folder.file_name()?.to_string_lossy().into_owned();
    package.missing.push(format!("{name}/METADATA"));
    Some(package)
}

fn add(environment: &mut Environment, package: Package) {
    let name = package.name.clone();
    // The first folder of packages on the path is imported. Python also skips unreadable metadata.
    let Some(first) = environment
        .packages
        .get(&name)
        .filter(|first| first.metadata_version.is_some() || package.metadata_version.is_none())
    else {
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

/// Adds the contents of the files beside METADATA.
fn details(
    guard: &Guard,
    site: &Path,
    depth: usize,
    folder: &Path,
    mut package: Package,
) -> Package {
    package.path = Some(folder.to_owned());
    package.site = Some(site.to_owned());
    let text = |name: &str, limit| guard.text(&folder.join(name), limit);
    package.tags =
        text("WHEEL", METADATA_LIMIT).map(|text| metadata::tags(&text)).unwrap_or_default();
    package.installer = text("INSTALLER", METADATA_LIMIT).map(|text| text.trim().to_owned());
    package.files =
        text("RECORD", RECORD_LIMIT).map(|text| metadata::record(&text)).unwrap_or_default();
    compare_files(site, depth, &mut package);
    let Some(module) = module_of(&package.name).map(|module| site.join(module)) else {
        return package;
    };
    let file = module.join("version.py");
    if let Some(text) = guard.text(&file, METADATA_LIMIT) {
        if let Some(version) = metadata::version(&text)
            && version.clone().without_local() != package.public()
        {
            package.version = version;
        }
        package.minimum_jaxlib = metadata::assigned(&text, "_minimum_jaxlib_version");
        package.version_file = Some(file);
    }
    package.module = Some(module).filter(|module| guard.inside(module).is_some());
    package
}

/// Returns the module of a package from which jax or torch reads the version.
fn module_of(name: &str) -> Option<String> {
    let known = MODULES.iter().find(|(_, known)| *known == name);
    let in_plugins = || {
        let rest = name.strip_prefix("jax-")?.strip_suffix("-pjrt")?;
        Some(format!("jax_plugins/xla_{rest}"))
    };
    known.map(|(module, _)| (*module).to_owned()).or_else(in_plugins)
}

/// Compares the installed files with the record. C and C++ headers are skipped: no running program
/// reads them, and they are 18,642 of TensorFlow's 22,531 files.
fn compare_files(site: &Path, depth: usize, package: &mut Package) {
    for file in &package.files {
        let name = &file.path;
        if name.ends_with(".pyc") || name.contains(".dist-info/") || name.contains("/include/") {
            continue;
        }
        if !stays(depth, name) {
            package.missing.push(name.clone());
            continue;
        }
        // Scripts are in other folders, and images omit them.
        if name.starts_with("../") {
            continue;
        }
        match fs::symlink_metadata(site.join(name)) {
            Err(_) => package.missing.push(name.clone()),
            Ok(found) => {
                if found.is_file() && file.size.is_some_and(|size| size != found.len()) {
                    package.changed.push(name.clone());
                }
            }
        }
    }
}

/// Reports modules without metadata, left over from an interrupted removal.
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
            package.version_file = Some(folder.join("version.py"));
            package.module = Some(folder.clone());
            package.path = Some(folder);
            environment.packages.insert(name.to_owned(), package);
        }
    }
}

/// Reads the system requirements of libraries that decide if a framework or plug-in can be loaded.
fn needs(guard: &Guard, site: &Path, environment: &mut Environment) {
    let mut libraries: Vec<(String, PathBuf)> = Vec::new();
    for package in environment.packages.values() {
        let is_core = |name: &str| {
            let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
            [".so", ".dylib", ".dll", ".pyd"].iter().any(|suffix| name.ends_with(suffix))
                && (matches!(folder, "jaxlib" | "libtpu" | "torch/lib" | "")
                    || folder.starts_with("jax_plugins/")
                    || folder.ends_with("_plugin"))
        };
        let core = package
            .files
            .iter()
            .map(|file| &file.path)
            .filter(|name| is_core(name))
            .take(LIBRARIES);
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
        let Some(facts) = guard.inside(&path).as_deref().and_then(library::read) else { continue };
        environment.needs.push(SystemNeed {
            package,
            path,
            glibc: facts.needs,
            system: facts.system,
            machines: facts.machines.into_iter().map(str::to_owned).collect(),
        });
    }
}
