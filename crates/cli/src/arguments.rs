//! What the command line accepts; every word here is public API (see the contract in the README).
//!
//! This module only describes arguments. It must never open a file or a device.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Move machine-learning state between builds that were not made on the same day.
#[derive(Debug, Parser)]
#[command(
    name = "serdes",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Exit status: 0 acceptable or done; 1 the answer is no; 2 could not tell or could not do it.\n\n\
Examples:\n  \
serdes save --from weights.safetensors -o state.sds\n  \
serdes check state.sds exported/model --tensorflow 2.16\n  \
serdes restore state.sds --to out.safetensors"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    /// Set by the command for the process that works with a plug-in: where it says its status, and
    /// where its orders come from.
    #[arg(long, hide = true, value_name = "PIPES")]
    pub(crate) worker: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Print one JSON object a line on standard output.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// No progress and no notes on standard error; errors are still printed.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say more on standard error; twice for details.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Colours in the text for people.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(crate) color: Color,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List every line of versions: numbers, dates, which is current, four weeks old, minimum.
    #[command(
        after_help = "Examples:\n  serdes versions\n  serdes versions --as-of 2026-03-19 --json\n  \
serdes versions --directory my-crate\n  serdes versions add snapshots --formats Snapshot --summary 'seeds of the shards'\n  \
serdes versions release\n  serdes versions lock --check"
    )]
    Versions(VersionsArguments),
    /// May it be loaded? Graphs, saved models, checkpoints, device states, tensors, plug-ins.
    #[command(
        after_help = "Examples:\n  serdes check exported/model\n  serdes check ckpt-1000 --tensorflow 2.12.0 --verify-data\n  \
serdes check graph.pb --consumer graph_def=1395:21\n  serdes check exported/model --tensorflow 2.12..2.16 --custom-op OurFusedOp\n  \
serdes check models --tensorflow all\n  serdes check models --exclude 'build/' --require-known\n  cat graph.pb | serdes check - --kind graph_def --json"
    )]
    Check(CheckArguments),
    /// What a rule of a verdict means, with an example and the remedy.
    #[command(
        after_help = "Examples:\n  serdes explain min_consumer\n  serdes explain            (lists the rules)"
    )]
    Explain(ExplainArguments),
    /// What is in it: kind, versions, tensors, operations, sizes.
    #[command(
        after_help = "Examples:\n  serdes inspect state.sds\n  serdes inspect exported/model --json"
    )]
    Inspect(InspectArguments),
    /// The operations that a release of TensorFlow has, one of them, or what differs between two
    /// releases.
    #[command(
        after_help = "Examples:\n  serdes ops 2.16\n  serdes ops 2.16 MatMul\n  serdes ops 2.12 2.21 --json\n\n\
With --json an object an operation, names of fields as in OpDef; for two releases an object a difference."
    )]
    Ops(OpsArguments),
    /// Put tensors onto a device and stream the device's buffers into a state file.
    #[command(after_help = "Examples:\n  serdes save --from weights.safetensors -o state.sds\n  \
serdes save --from ckpt-1000 --plugin ./libmy_device.so --serdes-version week-4-old -o state.sds\n  \
serdes save --from weights.npz -o - | ssh host 'cat > state.sds'\n  \
curl -s https://host/a.safetensors | serdes save --from - -o a.sds\n\n\
`-` is standard input as a source and standard output as FILE, which then gets the state and nothing else (results go to standard \
error); a file called `-` is ./-. What comes from a pipe is kept until it is saved: 64 MiB in memory, up to 64 GiB in a temporary \
file without a name.")]
    Save(SaveArguments),
    /// Stream a state's buffers onto a device, verify them, and read them back into a file.
    #[command(after_help = "Examples:\n  serdes restore state.sds --to out.safetensors\n  \
serdes restore state.sds --only 'encoder/*' --to encoder.npz\n  serdes restore broken.sds --salvage --to rest.safetensors\n  \
ssh host cat state.sds | serdes restore - --to out.npz\n  \
serdes restore state.sds --to - --to-kind npy --only bias | my-reader\n\n\
`-` is standard input as FILE, kept until it is restored (64 MiB in memory, up to 64 GiB in a temporary file without a name), and \
standard output as FILE2, which then gets the tensors and nothing else (results go to standard error). With --salvage the status is 1 \
where anything is lost, or may be.")]
    Restore(RestoreArguments),
    /// Which tensors differ, and by how much.
    #[command(after_help = "Examples:\n  serdes diff before.sds after.safetensors\n  \
serdes diff a.npy b.npy --rtol 1e-5 --atol 1e-8\n  \
ssh host cat state.sds | serdes diff - state.sds\n\n\
Without --rtol and --atol elements differ where a byte does. With one of them, numbers A and B are equal where \
|A-B| <= atol + rtol*|B|: the distance of integers is exact, everything else in double precision; complex numbers in the plane; \
NaN equals NaN, an infinity itself, 0 equals -0; strings are compared byte for byte. Tensors are told by their names; two files of one \
tensor, of which one is an .npy, are compared whatever they are called. Status 2 where a tensor cannot be compared.")]
    Diff(DiffArguments),
    /// Inspect, check and verify plug-ins, of StreamExecutor and of PJRT.
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// Compare layouts of the StreamExecutor C API.
    #[command(subcommand)]
    Abi(AbiCommand),
    /// Which versions a proxy server and this build would speak.
    #[command(
        after_help = "Examples:\n  serdes negotiate 127.0.0.1:7171\n  serdes negotiate grpc://host:7171 --serdes 0..2 --json"
    )]
    Negotiate(NegotiateArguments),
    /// Serve arrays on the devices of a plug-in to IFRT proxy clients, such as JAX.
    #[command(
        after_help = "Examples:\n  serdes serve --plugin host:devices=2\n  serdes serve --listen 127.0.0.1:7171 --state arrays.sds\n\n\
Prints `listening on HOST:PORT` once it accepts. SIGINT and SIGTERM stop it, after --drain SECONDS at most for open sessions; \
SIGHUP saves the state and reads tokens and certificates again. -v logs sessions and what fails, -vv each request, -vvv also frames of \
HTTP/2; RUST_LOG, where it is set, decides instead."
    )]
    Serve(ServeArguments),
    /// Print a completion script for a shell.
    #[command(after_help = "Example:\n  serdes completions bash > /etc/bash_completion.d/serdes")]
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
}

/// Arguments of `ops`.
#[derive(Debug, Args)]
pub(crate) struct OpsArguments {
    /// The release, such as 2.16 (patches of a release have the same operations).
    #[arg(value_name = "RELEASE")]
    pub(crate) release: String,
    /// An operation of it, or a newer or older release to compare it with.
    #[arg(value_name = "NAME|RELEASE")]
    pub(crate) other: Option<String>,
}

/// Arguments of `versions`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct VersionsArguments {
    #[command(subcommand)]
    pub(crate) command: Option<VersionsCommand>,
    /// The day for which the selectors are computed (YYYY-MM-DD); the registry's own day by
    /// default.
    #[arg(long, value_name = "DATE")]
    pub(crate) as_of: Option<String>,
    /// The folder with the versions.toml to list, instead of this build's own lines.
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

/// Commands under `versions`.
#[derive(Debug, Subcommand)]
pub(crate) enum VersionsCommand {
    /// Rewrite versions.lock beside versions.toml, or check it.
    Lock {
        /// Only compare; status 1 if a wire format changed without a new entry.
        #[arg(long)]
        check: bool,
        /// The folder with versions.toml and tests/golden.
        #[arg(long, value_name = "DIR", default_value = ".")]
        directory: PathBuf,
    },
    /// Add an entry to a line of versions.toml: the first step of a new format.
    ///
    /// The entry goes to the end of its line, with the next number (the day's, in a line that
    /// counts days); everything else in the file stays as it is, but as_of, which moves forward to
    /// the entry's day. What breaks a rule of the file is refused, and nothing is written.
    #[command(
        after_help = "Examples:\n  serdes versions add snapshots --formats Snapshot --summary 'seeds of the shards'\n  \
serdes versions add snapshots --formats Snapshot,Shard --introduced 2026-12-01 --directory my-crate --dry-run"
    )]
    Add(AddVersionArguments),
    /// Move as_of of versions.toml to the day of a release, and freeze the formats that are new.
    ///
    /// The day decides what week_4_old is in the released build. A frozen format that changed, or a
    /// new one without golden bytes, is refused, and nothing is written.
    #[command(
        after_help = "Examples:\n  serdes versions release\n  serdes versions release --date 2026-12-24 --directory my-crate"
    )]
    Release(ReleaseVersionsArguments),
}

/// Arguments of `versions add`.
#[derive(Debug, Args)]
pub(crate) struct AddVersionArguments {
    /// The line, by its name in versions.toml.
    pub(crate) line: String,
    /// The formats that change, separated by commas.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) formats: Vec<String>,
    /// What is new, for people; the formats by default.
    #[arg(long, value_name = "TEXT")]
    pub(crate) summary: Option<String>,
    /// The day from which builds read and write it (YYYY-MM-DD); today by default.
    #[arg(long, value_name = "DATE")]
    pub(crate) introduced: Option<String>,
    /// Another number than the next one, for a line whose numbers are somebody else's.
    #[arg(long, value_name = "N")]
    pub(crate) number: Option<i32>,
    /// The first release that has it.
    #[arg(long, value_name = "RELEASE")]
    pub(crate) released_in: Option<String>,
    /// Where the day comes from, if it is not the day of the change.
    #[arg(long, value_name = "TEXT")]
    pub(crate) date_source: Option<String>,
    /// The oldest consumer of its data.
    #[arg(long, value_name = "N")]
    pub(crate) min_consumer: Option<i32>,
    /// The folder with versions.toml.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) directory: PathBuf,
    /// Say what would be done, and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Arguments of `versions release`.
#[derive(Debug, Args)]
pub(crate) struct ReleaseVersionsArguments {
    /// The day of the release (YYYY-MM-DD); today by default.
    #[arg(long, value_name = "DATE")]
    pub(crate) date: Option<String>,
    /// The folder with versions.toml, versions.lock and tests/golden.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) directory: PathBuf,
    /// Say what would be done, and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// A loader of saved models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum ModelLoader {
    /// tf.compat.v1.saved_model.load.
    LoadV1,
    /// tf.saved_model.load.
    Load,
    /// TF_LoadSessionFromSavedModel, the C++ loader.
    Cpp,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// Files, folders, checkpoint prefixes, V1 globs, or `-` for standard input.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Another consumer for a line: LINE=N[:MIN_PRODUCER]; may be given for several lines.
    #[arg(long, value_name = "LINE=N[:MIN_PRODUCER]")]
    pub(crate) consumer: Vec<String>,
    /// A TensorFlow release as the consumer (2.21.0 by default): 2.16, latest, or several, each with
    /// a verdict: 2.12..2.16, all (2.12 to 2.21), or the option repeated.
    #[arg(long, value_name = "RELEASE")]
    pub(crate) tensorflow: Vec<String>,
    /// An operation that the consumer has besides those of its release; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) custom_op: Vec<String>,
    /// A file with such operations, as `serdes ops RELEASE --json` lists them, a serialized OpList, or
    /// a name a line; or a SavedModel that lists its own; may be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) ops: Vec<PathBuf>,
    /// Which of TensorFlow's loaders decides about a saved model.
    #[arg(long, value_enum, default_value_t = ModelLoader::LoadV1, value_name = "NAME")]
    pub(crate) loader: ModelLoader,
    /// The tags of a saved model's meta graph, separated by commas.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) tags: Option<Vec<String>>,
    /// What the input is, where its name and content do not say.
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// Read and check every byte of every tensor.
    #[arg(long)]
    pub(crate) verify_data: bool,
    /// Turn warnings into reasons.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Leave out what matches below a folder; patterns as in .gitignore, may be repeated.
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,
    /// Status 2 if a folder has files of no kind that is judged.
    #[arg(long)]
    pub(crate) require_known: bool,
    /// Another list of deprecated operations than TensorFlow's: a JSON file.
    #[arg(long, value_name = "FILE")]
    pub(crate) deprecated: Option<PathBuf>,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// The id of the rule, in letters of any size; without it the rules are listed.
    pub(crate) rule: Option<String>,
}

/// Arguments of `inspect`.
#[derive(Debug, Args)]
pub(crate) struct InspectArguments {
    /// A file, a saved model's folder, a checkpoint prefix, or `-`.
    pub(crate) path: PathBuf,
    /// What the input is, where its name and content do not say.
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
}

/// Where the device is.
#[derive(Debug, Args)]
pub(crate) struct DeviceArguments {
    /// A shared library of a StreamExecutor or a PJRT plug-in, the latter with options of its client
    /// if need be: PATH[:KEY=VALUE,...]; or the embedded reference plug-in:
    /// host[:devices=N,memory=BYTES].
    #[arg(long, value_name = "PLUGIN", default_value = "host")]
    pub(crate) plugin: String,
    /// The ordinal of the device.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) device: i32,
    /// The layout of the library, instead of the detected one.
    #[arg(long, value_name = "NAME")]
    pub(crate) layout: Option<String>,
}

/// How a file is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SyncMode {
    /// The data and the folder are on the disk before the command ends.
    Data,
    /// The system writes when it likes.
    None,
}

/// Arguments of `save`.
#[derive(Debug, Args)]
pub(crate) struct SaveArguments {
    /// Tensors: .safetensors, a TensorFlow V2 checkpoint prefix, .npy, .npz, a state file, or `-`
    /// for standard input.
    #[arg(long, required = true, value_name = "SOURCE")]
    pub(crate) from: Vec<PathBuf>,
    /// What standard input is, where its first bytes do not say: safetensors, npy, npz or
    /// device_state.
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// The state file; replaced as a whole or not at all. Or `-` for standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) device: DeviceArguments,
    /// The version that the reader understands: current, week-4-old, minimum, or a number.
    #[arg(long, value_name = "VERSION", default_value = "current", allow_hyphen_values = true)]
    pub(crate) serdes_version: String,
    /// When the command counts the file as written.
    #[arg(long, value_enum, default_value_t = SyncMode::Data)]
    pub(crate) sync: SyncMode,
    /// Write past the system's page cache; through it, with a warning, where the file system
    /// refuses.
    #[arg(long)]
    pub(crate) direct: bool,
    /// Leave out tensors whose type has no IFRT name instead of refusing.
    #[arg(long)]
    pub(crate) skip_unsupported: bool,
}

/// Arguments of `restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// The state file, or `-` for standard input.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) device: DeviceArguments,
    /// Read the device back into this file: .safetensors, .npy, .npz, .sds, any other name the
    /// prefix of a V2 checkpoint. Or `-` for standard output.
    #[arg(long, value_name = "FILE2")]
    pub(crate) to: Option<PathBuf>,
    /// What to write to standard output: safetensors (the default), npy or device_state.
    #[arg(long, value_name = "KIND", requires = "to")]
    pub(crate) to_kind: Option<String>,
    /// Only tensors whose name matches; may be repeated.
    #[arg(long, value_name = "GLOB")]
    pub(crate) only: Vec<String>,
    /// Take what is whole from a truncated or damaged state, and say what is not.
    #[arg(long)]
    pub(crate) salvage: bool,
    /// Read FILE past the system's page cache, which spares the cache and is slower; through it,
    /// with a warning, where the file system refuses.
    #[arg(long, conflicts_with = "salvage")]
    pub(crate) direct: bool,
    /// When the command counts FILE2 as written.
    #[arg(long, value_enum, default_value_t = SyncMode::Data)]
    pub(crate) sync: SyncMode,
}

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// One side: any source of tensors, or `-` for standard input.
    pub(crate) a: PathBuf,
    /// The other side.
    pub(crate) b: PathBuf,
    /// How far apart numbers may be, as a share of the size of B's; 0 unless it is given.
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    pub(crate) rtol: Option<f64>,
    /// How far apart numbers may be, besides; 0 unless it is given.
    #[arg(long, value_name = "Y", allow_hyphen_values = true)]
    pub(crate) atol: Option<f64>,
    /// What standard input is, where its first bytes do not say: safetensors, npy, npz or
    /// device_state.
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
}

/// Commands under `plugin`.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// What a library says of itself, read as ELF, without loading it.
    #[command(
        after_help = "Examples:\n  serdes plugin inspect ./libmy_device.so\n  serdes plugin inspect xla_cuda_plugin.so --json\n\n\
The version of a PJRT plug-in is recognised by patterns in its code and data: a hint, or null."
    )]
    Inspect {
        /// The shared library.
        library: PathBuf,
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
serdes explain memcpy_dtoh"
    )]
    Verify(VerifyArguments),
}

/// Arguments of `plugin check`.
#[derive(Debug, Args)]
pub(crate) struct CheckPluginArguments {
    #[command(flatten)]
    pub(crate) plugin: PluginArguments,
    /// Whether this framework and the PJRT plug-in fit: jaxlib-0.9.1, pjrt-0.96 (any framework that
    /// was built with it) or all (every release of jaxlib that is known); repeatable.
    #[arg(long = "for", value_name = "FRAMEWORK")]
    pub(crate) frameworks: Vec<String>,
}

/// Arguments of `plugin verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    #[command(flatten)]
    pub(crate) plugin: PluginArguments,
    /// List the behaviours and what each demands, and try none; those of PJRT for a PJRT library, or
    /// for `pjrt:`.
    #[arg(long)]
    pub(crate) list: bool,
}

/// A plug-in to load.
#[derive(Debug, Args)]
pub(crate) struct PluginArguments {
    /// A shared library (of a PJRT plug-in with options: PATH[:KEY=VALUE,...]), or
    /// host[:devices=N,memory=BYTES].
    #[arg(default_value = "host")]
    pub(crate) plugin: String,
    /// The layout of the library, instead of the detected one.
    #[arg(long, value_name = "NAME")]
    pub(crate) layout: Option<String>,
    /// How long opening it, or one behaviour, may take; the call that takes longer is named.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) time_limit: u64,
    /// Load it in this process instead of in one of its own (for debuggers).
    #[arg(long)]
    pub(crate) in_process: bool,
    /// Set by the command for the process of its own: how many behaviours were tried before.
    #[arg(long, hide = true, value_name = "COUNT")]
    pub(crate) supervised: Option<usize>,
}

/// Commands under `abi`.
#[derive(Debug, Subcommand)]
pub(crate) enum AbiCommand {
    /// Which of MAJOR, MINOR, PATCH must move from OLD to NEW, by the StreamExecutor versioning
    /// strategy.
    #[command(after_help = ABI_DIFF_HELP)]
    Diff {
        /// A layout: one that is built in (tensorflow-2.14, pjrt-0.54), a C header (FILE.h), or JSON
        /// (FILE or FILE#SECTION).
        old: String,
        /// A layout, as OLD.
        new: String,
        /// The largest bump that is fine; above it the status is 1.
        #[arg(long, value_enum, value_name = "BUMP")]
        allow: Option<AllowedBump>,
        /// Status 1 unless the version moved as it must: far enough, not back, with the lower
        /// numbers at 0.
        #[arg(long)]
        require_moved: bool,
    },
}

/// What `serdes abi diff --help` says of layouts, examples last.
const ABI_DIFF_HELP: &str = "Layouts:
  {\"SP_TimerFns\": {\"struct_size\": 24, \"fields\": [
     {\"name\": \"ext\", \"kind\": \"void*\", \"offset\": 8, \"size\": 8, \"zero\": \"no-op\"}]},
   \"version\": {\"SE_MAJOR\": 1, \"SE_MINOR\": 0, \"SE_PATCH\": 0}}

  Of a field:
    name, kind     its name and its type in C (`fn` for a function pointer)
    offset, size   in bytes
    signature      of a function, compared as text
    zero           \"no-op\": 0 or NULL is a no-op, so that it can be deprecated at MINOR;
                   \"meaningful\": it is a value, or says \"not provided\". Unmarked counts as
                   meaningful. What OLD says counts
    required       true: one side cannot do without it; adding it needs MAJOR
    deprecated     true
    replaced_by    beside deprecated: a member of the struct, or STRUCT.MEMBER
  Of a struct:     struct_size, alignof (bytes); fields; values (an enumeration: names and
                   numbers); same_as (a section of the file); deprecated; replaced_by (a struct)
  Of a file:       sections, nested as deep as one likes (FILE#history/1.2.0); the version of a
                   section is its `version`, or SECTION_version beside it

C headers: structs, enumerations, STRUCT_SIZE macros and SE_MAJOR, SE_MINOR, SE_PATCH are read; what zero
means stands in a member's comment: `NULL is no-op`, `0 is no-op`, `[no-op]`, `[optional]`, `[value]`,
`[required]`; `Deprecated. Use `name`.` deprecates. FILE.h#NAME=NUMBER sets a macro first.

Examples:
  serdes abi diff tensorflow-2.8 tensorflow-2.14
  serdes abi diff released/api.h include/api.h --allow minor
  serdes abi diff api.json#released api.json#next --allow minor --require-moved";

/// The largest accepted bump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum AllowedBump {
    /// Backwards compatible bug fixes.
    Patch,
    /// Backwards compatible changes.
    Minor,
    /// Everything.
    Major,
}

/// The versions that a side of the proxy speaks.
#[derive(Debug, Args)]
pub(crate) struct RangeArguments {
    /// The IFRT SerDes versions to speak, both ends included; all by default.
    #[arg(long, value_name = "MIN..MAX")]
    pub(crate) serdes: Option<String>,
    /// The proxy protocol versions to speak, both ends included; all by default.
    #[arg(long, value_name = "MIN..MAX")]
    pub(crate) protocol: Option<String>,
}

/// Arguments of `negotiate`.
#[derive(Debug, Args)]
pub(crate) struct NegotiateArguments {
    /// The server: HOST:PORT, with grpc://, http:// or, encrypted, https:// before it or nothing.
    #[arg(value_name = "ADDRESS")]
    pub(crate) address: String,
    #[command(flatten)]
    pub(crate) ranges: RangeArguments,
    /// The certificates to trust, in PEM, for an https:// address.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// The name in the server's certificate, where it is not that of the address.
    #[arg(long, value_name = "NAME")]
    pub(crate) tls_name: Option<String>,
    /// The certificate to show to the server, in PEM, for an https:// address.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// The token to send: the first one in FILE, as for `serve`.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Ask only whether the server takes new sessions, which needs no token: status 0 if it does, 1
    /// if it does not.
    #[arg(long, conflicts_with_all = ["serdes", "protocol", "token_file"])]
    pub(crate) health: bool,
}

/// Who may connect to a server, and how much.
#[derive(Clone, Debug, Args)]
pub(crate) struct AccessArguments {
    /// The certificate chain, in PEM, for encrypted connections.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Take only clients with a certificate that one of these authorities (PEM) has signed.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_client_ca: Option<PathBuf>,
    /// Take only clients with one of the tokens in FILE, a line each, `#` before comments; they
    /// send `authorization: Bearer TOKEN`. FILE is read again on SIGHUP.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Also take the token from a session's initialization data (`serdes.token`), for clients of
    /// jaxlib, which cannot send metadata.
    #[arg(long, requires = "token_file")]
    pub(crate) allow_session_token: bool,
    /// Listen beyond this machine for anyone who can reach it: without client certificates or
    /// tokens, encrypted or not.
    #[arg(long)]
    pub(crate) allow_anyone: bool,
    /// Listen beyond this machine without encryption: everyone on the way can read and change what
    /// goes over the network, tokens too. Without tokens it is for anyone.
    #[arg(long)]
    pub(crate) allow_plain: bool,
    /// A limit on what clients may hold: KEY=VALUE, may be given for several; `--limit help` lists
    /// them with their values.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) limit: Vec<String>,
}

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Where to listen: HOST:PORT; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: String,
    /// The plug-in whose devices are served: `host`, `host:devices=2`, or the path of a library of a
    /// StreamExecutor or a PJRT plug-in, the latter with options of its client if need be:
    /// PATH[:KEY=VALUE,...].
    #[arg(long, value_name = "PLUGIN", default_value = "host")]
    pub(crate) plugin: String,
    /// The layout of the plug-in, where it is not to be detected.
    #[arg(long, value_name = "NAME")]
    pub(crate) layout: Option<String>,
    #[command(flatten)]
    pub(crate) ranges: RangeArguments,
    /// A device state: its arrays are restored at start; arrays of clients are saved into it on
    /// SIGHUP and at stop, and what is in it stays until a client deletes it or saves another array
    /// under its name.
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// How many states before the last one are kept, as FILE.1 (the newest), FILE.2 and so on.
    #[arg(
        long,
        visible_alias = "state-keep",
        value_name = "N",
        default_value_t = 1,
        requires = "state"
    )]
    pub(crate) keep: u32,
    /// The version that the readers of the state understand: current, week-4-old, minimum, or a
    /// number.
    #[arg(
        long,
        value_name = "VERSION",
        default_value = "current",
        requires = "state",
        allow_hyphen_values = true
    )]
    pub(crate) serdes_version: String,
    #[command(flatten)]
    pub(crate) access: AccessArguments,
    /// A directory that clients see too, where they may leave large arrays.
    #[arg(long, value_name = "DIR")]
    pub(crate) transfer_directory: Option<PathBuf>,
    /// A Python with jaxlib, as new as the clients': it writes programs for the plug-in that are too
    /// new for it, where that cannot be done here.
    #[arg(long, value_name = "PYTHON")]
    pub(crate) stablehlo_bridge: Option<PathBuf>,
    /// Where the metrics can be read, at /metrics, in the text format of Prometheus: HOST:PORT, or
    /// PORT on this machine alone; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<String>,
    /// How long open sessions may go on after SIGTERM or SIGINT; no new one is opened meanwhile.
    /// Without sessions the server ends at once.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) drain: Option<String>,
    /// How the log on standard error is written.
    #[arg(long, value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,
}

/// How a log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// An object a line.
    Json,
}
