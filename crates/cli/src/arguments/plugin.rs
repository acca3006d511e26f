//! Arguments of `plugin` and of the commands under it.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::numbers::whole_number;

/// Commands under `plugin`.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Print the facts that a library's ELF file shows, without loading it.
    #[command(
        after_help = "Examples:\n  serdes plugin inspect ./libmy_device.so\n  serdes plugin inspect ./libmy_device.so --tensorflow 2.18\n  \
serdes plugin inspect xla_cuda_plugin.so --json\n\n\
The version of a PJRT plug-in is recognised by patterns in its code and data: a hint, or null."
    )]
    Inspect {
        /// The shared library.
        library: PathBuf,
        /// Check the library for this release of TensorFlow (2.12 to 2.21, latest): print the
        /// functions that it needs and the release does not export, and the layout under which it
        /// would be registered; status 1 if one is missing.
        #[arg(long, value_name = "RELEASE")]
        tensorflow: Option<String>,
    },
    /// Load a plug-in, report versions, devices, missing functions; say which frameworks it fits.
    #[command(
        after_help = "Examples:\n  serdes plugin check ./libmy_device.so\n  serdes plugin check xla_cuda_plugin.so --for jaxlib-0.9.1\n  \
serdes plugin check xla_cuda_plugin.so --for all --json\n  serdes plugin check xla_cpu_pjrt.so:cpu_device_count=2\n\n\
The kind of a library is told by what it exports (GetPjrtApi alone: PJRT; pjrt:PATH says so of one that exports SE_InitPlugin too). \
It is loaded in a process of its own; where the version in its file says that no framework asked about fits, it is not loaded at all."
    )]
    Check(CheckPluginArguments),
    /// Run the conformance suite, one line a behaviour.
    #[command(
        after_help = "Examples:\n  serdes plugin verify ./libmy_device.so\n  serdes plugin verify --list\n  serdes plugin verify --list pjrt:\n  \
serdes plugin verify ./libmy_device.so --level robust --known-failures known.txt --format junit=verify.xml\n  \
serdes explain memcpy_dtoh\n\n\
Status 1 where a required behaviour fails that is not known to fail, or one passes that is known to fail. \
What hosts rest on is required; what a careful plug-in does with bad input is robust, and counts with --level robust."
    )]
    Verify(VerifyArguments),
}

/// Arguments of `plugin check`.
#[derive(Debug, Args)]
pub(crate) struct CheckPluginArguments {
    #[command(flatten)]
    pub(crate) plugin: PluginArguments,
    /// Check that this framework and the PJRT plug-in fit: jaxlib-0.9.1 or jax==0.9.1, a range
    /// (jaxlib-0.8.., jaxlib-0.8..0.9.1), torch_xla-2.9 or torch_xla-2.8.., pjrt-0.96 (any
    /// framework that was built with it) or all (every release of jaxlib that is known);
    /// repeatable.
    #[arg(long = "for", value_name = "FRAMEWORK")]
    pub(crate) frameworks: Vec<String>,
}

/// Arguments of `plugin verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    #[command(flatten)]
    pub(crate) plugin: PluginArguments,
    /// List the behaviours and what each demands, and try none; those of PJRT for a PJRT library,
    /// or for `pjrt:`.
    #[arg(long)]
    pub(crate) list: bool,
    /// The behaviours whose failures count.
    #[arg(long, value_enum, default_value_t = Level::Required, value_name = "LEVEL")]
    pub(crate) level: Level,
    /// Try only this behaviour; a `*` at the end stands for any letters; may be repeated.
    #[arg(long, value_name = "BEHAVIOUR")]
    pub(crate) only: Vec<String>,
    /// Leave this behaviour out; a `*` at the end stands for any letters; may be repeated.
    #[arg(long, value_name = "BEHAVIOUR")]
    pub(crate) skip: Vec<String>,
    /// A file of behaviours that are known to fail, one a line, with a reason behind `#`: they do not
    /// count, and one that passes does.
    #[arg(long, value_name = "FILE")]
    pub(crate) known_failures: Option<PathBuf>,
    /// Form of the results: text, json, junit, markdown or html; with `=FILE` into a file, so that
    /// one run writes several.
    #[arg(long, value_name = "FORMAT[=FILE]")]
    pub(crate) format: Vec<String>,
    /// File for the form that `--format` names without one (text by default), in place of standard
    /// output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Set by the command for the process of its own: behaviours that are not tried.
    #[arg(long, hide = true, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) without: Vec<String>,
}

/// Classes of behaviours that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    /// Behaviours that the C API demands and hosts rest on.
    Required,
    /// All of them, with those of careful plug-ins.
    Robust,
}

/// A plug-in to load.
#[derive(Debug, Args)]
pub(crate) struct PluginArguments {
    /// A shared library (of a PJRT plug-in with options: PATH[:KEY=VALUE,...]), or
    /// host[:devices=N,memory=BYTES]; for `check` also a folder, whose StreamExecutor plug-ins are
    /// registered beside each other.
    #[arg(default_value = "host")]
    pub(crate) plugin: String,
    /// The layout of the library, instead of the detected one.
    #[arg(long, value_name = "NAME")]
    pub(crate) layout: Option<String>,
    /// Time limit for opening it, and for each behaviour; the call that takes longer is named.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = seconds)]
    pub(crate) time_limit: u64,
    /// Load it in this process instead of in one of its own (for debuggers).
    #[arg(long)]
    pub(crate) in_process: bool,
    /// Set by the command for the process of its own: how many behaviours were tried before.
    #[arg(long, hide = true, value_name = "COUNT")]
    pub(crate) supervised: Option<usize>,
}

/// Returns a time limit in seconds, a day at most.
fn seconds(text: &str) -> Result<u64, String> {
    let number = whole_number(text)?;
    (1..=86_400).contains(&number).then_some(number).ok_or_else(|| "expected 1 to 86400".to_owned())
}
