//! Reads virtual environments, conda prefixes, folders of packages, and roots of images.

use std::{
    path::{Path, PathBuf},
    str::FromStr as _,
};

use pep440_rs::Version;

use super::{
    conda_meta,
    error::ReadError,
    guard::{Guard, METADATA_LIMIT},
    installed, library,
    python::Python,
};
use crate::{
    environment::{Environment, Kind, Tool},
    rule::WarningRule,
    warning::Warning,
};

/// Folders below a root that contain folders of Pythons.
const PLACES: [&str; 7] =
    ["usr/local/lib", "usr/lib", "usr/lib64", "usr/local/lib64", "local/lib", "lib", "lib64"];
/// Folders of a root without environments.
const SYSTEM: [&str; 15] = [
    "bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "sys",
    "tmp", "usr", "var",
];
/// Names of environments inside of a project.
const INSIDE: [&str; 3] = [".venv", "venv", "env"];
/// Maximum number of folders of a root that are searched, on each of two levels.
const FOLDERS: usize = 512;
/// Folders of the C library and of the driver.
const LIBRARIES: [&str; 8] = [
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "lib64",
    "usr/lib64",
    "usr/local/nvidia/lib64",
    "usr/local/cuda/compat",
];

/// Returns true if a folder has the form of an environment.
pub(super) fn is_environment(folder: &Path) -> bool {
    kind_of(folder).is_some()
}

fn kind_of(folder: &Path) -> Option<Kind> {
    if folder.join("pyvenv.cfg").is_file() {
        return Some(Kind::Venv);
    }
    if folder.join("conda-meta").is_dir() {
        return Some(Kind::Conda);
    }
    if folder.join("etc/os-release").exists() {
        return Some(Kind::Root);
    }
    let entries = std::fs::read_dir(folder).ok()?;
    let has_metadata =
        entries.flatten().any(|entry| entry.file_name().to_string_lossy().ends_with(".dist-info"));
    if has_metadata {
        return Some(Kind::SitePackages);
    }
    let is_prefix = folder.join("usr/lib").is_dir()
        || Guard::new(folder)
            .is_some_and(|guard| !pythons(&guard, folder, &["lib", "lib64"]).is_empty());
    is_prefix.then_some(Kind::Root)
}

/// Reads a folder.
pub(super) fn read(folder: &Path) -> Result<Vec<Environment>, ReadError> {
    let none = || ReadError::NoEnvironment { path: folder.to_owned() };
    let kind = kind_of(folder).ok_or_else(none)?;
    let guard = Guard::new(folder).ok_or_else(none)?;
    let label = folder.display().to_string();
    let found = match kind {
        Kind::SitePackages => vec![(version_in(folder), vec![folder.to_owned()])],
        Kind::Venv | Kind::Conda => {
            let mut found = pythons(&guard, folder, &["lib", "lib64"]);
            found.extend(of_windows(&guard, folder));
            found
        }
        _ => {
            let mut found = pythons(&guard, folder, &PLACES);
            for prefix in prefixes(&guard, folder) {
                found.extend(pythons(&guard, &prefix, &["lib", "lib64"]));
            }
            found
        }
    };
    let mut environments = Vec::new();
    for (python, sites) in found {
        let mut environment = Environment::empty(label.clone(), kind, Tool::Pip);
        environment.free_threaded = python.as_ref().is_some_and(|python| python.free_threaded);
        environment.python = python.map(|python| python.version);
        if has_layout_of_windows(folder) {
            environment.system = "win32";
        }
        for site in &sites {
            installed::read(&guard, site, &mut environment);
        }
        // A system Python without judged packages is of no interest.
        if kind == Kind::Root && environment.packages.is_empty() {
            continue;
        }
        below(folder, kind, &guard, &mut environment);
        environments.push(environment);
    }
    if environments.is_empty() && kind == Kind::Root {
        return Err(none());
    }
    if environments.is_empty() {
        let mut environment = Environment::empty(label, kind, Tool::Pip);
        below(folder, kind, &guard, &mut environment);
        environments.push(environment);
    }
    if let [_, _, ..] = environments[..] {
        for environment in &mut environments {
            if let Some(python) = &environment.python {
                let t = if environment.free_threaded { "t" } else { "" };
                environment.label = format!("{} (Python {python}{t})", environment.label);
            }
        }
    }
    Ok(environments)
}

/// Returns the folders of a root that may be environments: of projects, such as `/app/.venv`, of
/// users, and of conda.
fn prefixes(guard: &Guard, root: &Path) -> Vec<PathBuf> {
    let below = |folder: &Path| -> Vec<PathBuf> {
        let names = guard.names(folder).into_iter().take(FOLDERS);
        names.map(|name| folder.join(name)).filter(|path| path.is_dir()).collect()
    };
    let mut found = Vec::new();
    for top in below(root) {
        if top.file_name().is_some_and(|name| SYSTEM.iter().any(|system| name == *system)) {
            continue;
        }
        for project in below(&top) {
            found.extend(INSIDE.iter().map(|name| project.join(name)));
            found.extend(below(&project.join("envs")));
            found.push(project);
        }
        found.push(top);
    }
    found
}

type Sites = Vec<(Option<Python>, Vec<PathBuf>)>;

/// Returns the folder of packages of a Python on Windows, whose version is in `pyvenv.cfg` and
/// conda's records.
fn of_windows(guard: &Guard, prefix: &Path) -> Option<(Option<Python>, Vec<PathBuf>)> {
    let site = prefix.join("Lib/site-packages");
    // On a case-insensitive file system, this is the folder of another system.
    let is_own = guard.names(prefix).iter().any(|name| name == "Lib");
    guard.inside(&site).filter(|site| is_own && site.is_dir())?;
    let executables = ["Scripts", ""].map(|folder| guard.names(&prefix.join(folder)));
    let python = executables.iter().flatten().find_map(|name| {
        Python::named(name.strip_suffix(".exe")?).filter(|python| python.free_threaded)
    });
    Some((python, vec![site]))
}

fn has_layout_of_windows(prefix: &Path) -> bool {
    ["Scripts/python.exe", "Scripts/activate.bat", "python.exe"]
        .iter()
        .any(|name| prefix.join(name).is_file())
}

/// Returns the Pythons below a prefix, with their folders of packages.
fn pythons(guard: &Guard, prefix: &Path, places: &[&str]) -> Sites {
    let mut found: Sites = Vec::new();
    for place in places {
        for name in guard.names(&prefix.join(place)) {
            if !name.starts_with("python") {
                continue;
            }
            let folder = prefix.join(place).join(&name);
            let sites = ["site-packages", "dist-packages"].map(|site| folder.join(site));
            let sites: Vec<PathBuf> = sites
                .into_iter()
                .filter(|site| guard.inside(site).is_some_and(|site| site.is_dir()))
                .collect();
            if sites.is_empty() {
                continue;
            }
            // Debian shares `python3` between all 3.x versions.
            let python = Python::named(&name);
            match found.iter_mut().find(|(known, _)| *known == python) {
                Some((_, known)) => add(guard, known, sites),
                None => found.push((python, sites)),
            }
        }
    }
    shared(guard, found)
}

/// Adds folders of packages that are not known by another path: `lib64` is usually a link to `lib`.
fn add(guard: &Guard, known: &mut Vec<PathBuf>, sites: Vec<PathBuf>) {
    for site in sites {
        let same = |known: &PathBuf| guard.inside(known) == guard.inside(&site);
        if !known.iter().any(same) {
            known.push(site);
        }
    }
}

/// Adds the folder that Debian's Pythons share to each of them.
fn shared(guard: &Guard, mut found: Sites) -> Sites {
    let is_debian = |(python, sites): &(Option<Python>, Vec<PathBuf>)| {
        python.is_some() && sites.iter().any(|site| site.ends_with("dist-packages"))
    };
    let at = found.iter().position(|(python, _)| python.is_none());
    if let Some(at) = at
        && found.iter().any(is_debian)
    {
        let (_, sites) = found.remove(at);
        for one in found.iter_mut().filter(|one| is_debian(one)) {
            add(guard, &mut one.1, sites.clone());
        }
    }
    found
}

/// Returns the Python of a folder of packages, by the folder above it.
fn version_in(site: &Path) -> Option<Python> {
    let absolute = std::fs::canonicalize(site).ok()?;
    Python::named(absolute.parent()?.file_name()?.to_str()?)
}

/// Reads the tool, Python's full version, and the system.
fn below(folder: &Path, kind: Kind, guard: &Guard, environment: &mut Environment) {
    let by_uv =
        environment.packages.values().any(|package| package.installer.as_deref() == Some("uv"));
    environment.tool = match kind {
        Kind::Conda => Tool::Conda,
        _ if by_uv => Tool::UvPip,
        _ => Tool::Pip,
    };
    if let Some(config) = guard.text(&folder.join("pyvenv.cfg"), METADATA_LIMIT) {
        configured(folder, &config, environment);
    }
    if kind == Kind::Conda {
        conda_meta::read(guard, folder, environment);
    }
    system(kind, environment);
    // Kinds other than roots use this machine's system.
    let (root, own) = match kind {
        Kind::Root => (folder.to_owned(), Some(guard.clone())),
        _ => (PathBuf::from("/"), Guard::new(Path::new("/"))),
    };
    if let Some(own) = own.filter(|_| environment.system == "linux") {
        libraries(&root, &own, environment);
    }
    if environment.machine.is_none() && kind != Kind::Root && environment.system == HERE {
        environment.machine = Some(machine_here().to_owned());
    }
}

/// The system of this machine, with Python's name.
const HERE: &str = if cfg!(target_os = "macos") { "darwin" } else { "linux" };

/// Returns this machine, with the name of wheel platforms.
fn machine_here() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" if cfg!(target_os = "macos") => "arm64",
        machine => machine,
    }
}

/// Sets the system from the layout of Windows or the tags of the wheels: an environment may have
/// been copied from another system.
fn system(kind: Kind, environment: &mut Environment) {
    let tags = environment.packages.values().flat_map(|package| &package.tags);
    if environment.system == "win32" {
        return;
    }
    let (mut apple, mut linux) = (0, 0);
    for tag in tags {
        apple += usize::from(tag.contains("-macosx_"));
        linux += usize::from(tag.contains("linux"));
    }
    environment.system = match apple.cmp(&linux) {
        std::cmp::Ordering::Greater => "darwin",
        std::cmp::Ordering::Less => "linux",
        std::cmp::Ordering::Equal if kind == Kind::Root => "linux",
        std::cmp::Ordering::Equal => HERE,
    };
}

/// Reads `pyvenv.cfg`: the tool, the version, and packages of the base Python.
fn configured(folder: &Path, config: &str, environment: &mut Environment) {
    let value = |key: &str| {
        config.lines().find_map(|line| {
            let (name, value) = line.split_once('=')?;
            (name.trim() == key).then(|| value.trim().to_owned())
        })
    };
    if value("uv").is_some() {
        environment.tool = Tool::UvPip;
    }
    // A locked project is managed by the tool that locks it.
    let beside = |name: &str| folder.parent().is_some_and(|parent| parent.join(name).is_file());
    if folder.file_name().is_some_and(|name| name == ".venv") {
        match (beside("uv.lock"), beside("poetry.lock")) {
            (true, false) => environment.tool = Tool::Uv,
            (false, true) => environment.tool = Tool::Poetry,
            _ => {}
        }
    }
    if value("include-system-site-packages").is_some_and(|value| value.eq_ignore_ascii_case("true"))
    {
        environment.read_warnings.push(Warning {
            rule: WarningRule::NotJudged,
            message: format!(
                "packages of the Python in {} are seen from here as well, and were not read",
                value("home").unwrap_or_default()
            ),
            packages: Vec::new(),
        });
    }
    let said = value("version").or_else(|| value("version_info"));
    let numbers = said.map(|text| text.split('.').take(3).collect::<Vec<_>>().join("."));
    let version = numbers.and_then(|text| Version::from_str(&text).ok());
    // If the two disagree, packages are imported from the folder.
    if let Some(version) = version
        && environment
            .python
            .as_ref()
            .is_none_or(|folder| crate::package::minor(folder) == crate::package::minor(&version))
    {
        environment.python = Some(version);
    }
}

/// Reads the versions of the C library and the driver.
fn libraries(root: &Path, guard: &Guard, environment: &mut Environment) {
    for place in LIBRARIES {
        let place = root.join(place);
        let library = place.join("libc.so.6");
        if environment.glibc.is_none()
            && let Some(facts) = guard.inside(&library).as_deref().and_then(library::read)
        {
            environment.glibc = facts.defines;
            let machine = facts.machines.first().map(|machine| (*machine).to_owned());
            environment.machine = environment.machine.take().or(machine);
        }
        for name in guard.names(&place) {
            let number = name.strip_prefix("libcuda.so.").filter(|number| number.contains('.'));
            let Some(number) = number.filter(|number| Version::from_str(number).is_ok()) else {
                continue;
            };
            let newer =
                |known: &String| Version::from_str(known).ok() < Version::from_str(number).ok();
            if environment.driver.as_ref().is_none_or(newer) {
                environment.driver = Some(number.to_owned());
            }
        }
    }
}
