//! The contents of an environment: packages, plug-ins, and the system.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use pep440_rs::Version;
use pep508_rs::{MarkerEnvironment, MarkerEnvironmentBuilder};

use crate::{
    names::TENSORFLOW,
    package::Package,
    warning::{Unknown, Warning},
};

/// The kind of an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A virtual environment (`pyvenv.cfg`).
    Venv,
    /// A conda prefix (`conda-meta`).
    Conda,
    /// A folder of packages.
    SitePackages,
    /// The root of an image.
    Root,
    /// A lock file.
    Lock,
}

impl Kind {
    /// Returns the kind's name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Venv => "venv",
            Self::Conda => "conda",
            Self::SitePackages => "site_packages",
            Self::Root => "root",
            Self::Lock => "lock",
        }
    }
}

/// The tool that manages the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tool {
    /// pip.
    Pip,
    /// `uv pip`, for environments created by uv.
    UvPip,
    /// uv, for projects with their own lock.
    Uv,
    /// Poetry.
    Poetry,
    /// conda and its relatives.
    Conda,
}

/// A framework that discovers plug-ins in packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PluginFramework {
    /// jax, by the folder `jax_plugins` and the entry points of that group.
    Jax,
    /// torch_xla, by the entry points of the group `torch_xla.plugins`.
    TorchXla,
}

/// A module that jax or torch_xla recognizes as a plug-in.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PluginModule {
    /// The framework that recognizes it.
    pub framework: PluginFramework,
    /// The name of the module, such as `jax_plugins.xla_cuda12`.
    pub module: String,
    /// The folder or the file of the module.
    pub path: PathBuf,
    /// The package that owns it, from the record or the entry point.
    pub owner: Option<String>,
    /// True if it has an entry point.
    pub entry_point: bool,
    /// True if the module exists.
    pub exists: bool,
    /// The library of the plug-in, if one was found below the module.
    pub library: Option<PathBuf>,
}

impl PluginModule {
    /// Returns the name of the platform that the module registers, if the module's name determines
    /// it.
    #[must_use]
    pub fn platform(&self) -> Option<&'static str> {
        let last = self.module.rsplit('.').next().unwrap_or_default();
        match last {
            "xla_cuda12" | "xla_cuda13" | "xla_cuda11" => Some("cuda"),
            name if name.starts_with("xla_rocm") => Some("rocm"),
            "xla_oneapi" => Some("oneapi"),
            "metal_plugin" => Some("METAL"),
            _ => None,
        }
    }
}

/// A library of a judged package, with its requirements on the system.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SystemNeed {
    /// The package that has the library.
    pub package: String,
    /// The library.
    pub path: PathBuf,
    /// The newest version of the C library that it requires.
    pub glibc: Option<(u64, u64)>,
    /// The system that it is for: `linux`, `darwin` or `win32`.
    pub system: &'static str,
    /// The machines that it is for, such as `x86_64`; several for a universal library.
    pub machines: Vec<String>,
}

/// The packages of an environment and the system below them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Environment {
    /// Display path of the environment.
    pub label: String,
    /// Kind of the environment.
    pub kind: Kind,
    /// The tool that manages it.
    pub tool: Tool,
    /// The version of Python, at least MAJOR.MINOR.
    pub python: Option<Version>,
    /// True if Python is a build without the global interpreter lock, such as `python3.13t`.
    pub free_threaded: bool,
    /// The Python for which markers are evaluated, if a lock is for several.
    pub assumed_python: Option<Version>,
    /// `linux`, `darwin` or `win32`.
    pub system: &'static str,
    /// The machine, such as `x86_64`.
    pub machine: Option<String>,
    /// MAJOR and MINOR of the C library.
    pub glibc: Option<(u64, u64)>,
    /// The version of NVIDIA's driver, from its library's name.
    pub driver: Option<String>,
    /// Number of all packages, judged or not.
    pub count: usize,
    /// The judged packages, by name.
    pub packages: BTreeMap<String, Package>,
    /// Packages with metadata for several versions.
    pub duplicates: Vec<(String, Vec<Version>)>,
    /// True if an installer adds packages to the listed ones: a requirements file lists the
    /// author's requirements, or all installed packages.
    pub is_partial: bool,
    /// True if jaxlib contains the CUDA plug-in, as in conda's builds for CUDA.
    pub jaxlib_holds_plugin: bool,
    /// The plug-ins that jax would find.
    pub plugins: Vec<PluginModule>,
    /// The libraries that were read.
    pub needs: Vec<SystemNeed>,
    /// The libraries in `tensorflow-plugins`.
    pub tensorflow_plugins: Vec<PathBuf>,
    /// Parts that were not read.
    pub read_warnings: Vec<Warning>,
    /// Packages whose version could not be read.
    pub unread: Vec<Unknown>,
}

impl Environment {
    /// Creates an environment without packages.
    pub(crate) fn empty(label: String, kind: Kind, tool: Tool) -> Self {
        Self {
            label,
            kind,
            tool,
            python: None,
            free_threaded: false,
            assumed_python: None,
            system: "linux",
            machine: None,
            glibc: None,
            driver: None,
            count: 0,
            packages: BTreeMap::new(),
            duplicates: Vec::new(),
            is_partial: false,
            jaxlib_holds_plugin: false,
            plugins: Vec::new(),
            needs: Vec::new(),
            tensorflow_plugins: Vec::new(),
            read_warnings: Vec::new(),
            unread: Vec::new(),
        }
    }

    /// Returns a package by its normal name.
    #[must_use]
    pub fn package(&self, name: &str) -> Option<&Package> {
        self.packages.get(name)
    }

    /// Returns the package of this name, or for `tensorflow` any of its builds.
    #[must_use]
    pub fn provider(&self, name: &str) -> Option<&Package> {
        if name == "tensorflow" {
            return TENSORFLOW.iter().find_map(|name| self.packages.get(*name));
        }
        self.packages.get(name)
    }

    /// Returns true if there are files, and not only names and versions.
    #[must_use]
    pub fn has_files(&self) -> bool {
        self.kind != Kind::Lock
    }

    /// Returns the values for markers; Python 3.12 on Linux by default.
    pub(crate) fn markers(&self) -> Option<MarkerEnvironment> {
        let python = self.python.as_ref().or(self.assumed_python.as_ref());
        let (major, minor) = python.map_or((3, 12), crate::package::minor);
        let python = python.map_or_else(|| "3.12".to_owned(), ToString::to_string);
        let short = format!("{major}.{minor}");
        let (os_name, platform_system) = match self.system {
            "win32" => ("nt", "Windows"),
            "linux" => ("posix", "Linux"),
            _ => ("posix", "Darwin"),
        };
        MarkerEnvironment::try_from(MarkerEnvironmentBuilder {
            implementation_name: "cpython",
            implementation_version: &python,
            os_name,
            platform_machine: self.machine.as_deref().unwrap_or("x86_64"),
            platform_python_implementation: "CPython",
            platform_release: "",
            platform_system,
            platform_version: "",
            python_full_version: &python,
            python_version: &short,
            sys_platform: self.system,
        })
        .ok()
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.label)
    }
}
