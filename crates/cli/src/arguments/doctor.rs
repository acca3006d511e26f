//! Arguments of `doctor`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Environments, lock files and artifacts, told apart by what they are.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// A virtual environment, a conda prefix, a folder of packages, or the root of an image.
    #[arg(long, value_name = "DIR")]
    pub(crate) env: Vec<PathBuf>,
    /// A lock file: requirements.txt, uv.lock, poetry.lock, pylock.toml, environment.yml.
    #[arg(long, value_name = "FILE")]
    pub(crate) lock: Vec<PathBuf>,
    /// The environment that this interpreter would have. It is not run.
    #[arg(long, value_name = "EXE")]
    pub(crate) python: Vec<PathBuf>,
    /// Artifacts that the environment is to load.
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub(crate) artifacts: Vec<PathBuf>,
    /// Warnings are problems.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Compare the contents of files with the checksums in the records of their packages.
    #[arg(long)]
    pub(crate) verify_files: bool,
    /// Write the report into this file, whole or not at all.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// The form of the report; json is that of `--json`, the others are those of `check`.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<DoctorFormat>,
}

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DoctorFormat {
    /// For people.
    Text,
    /// One object a line.
    Json,
    /// Workflow commands.
    Github,
    /// Code Quality.
    Gitlab,
    /// SARIF 2.1.0.
    Sarif,
    /// JUnit XML.
    Junit,
    /// For a comment.
    Markdown,
    /// One file for a browser.
    Html,
}
