//! Options of every command, and the list of the commands.

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::arguments::{
    AbiCommand, CheckArguments, ConfigArguments, ConvertArguments, DiffArguments, DoctorArguments,
    ExplainArguments, InspectArguments, MatrixArguments, MergeArguments, NegotiateArguments,
    OpsArguments, PluginCommand, RestoreArguments, SaveArguments, ServeArguments,
    VersionsArguments,
};

/// Save, check and convert checkpoints, models and device state across framework versions.
#[derive(Debug, Parser)]
#[command(
    name = "serdes",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Exit status: 0 acceptable, or done; 1 refused, or different; 2 error.\n\n\
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
serdes check models --tensorflow all\n  serdes check f.jaxexport --jax 0.9.0..0.12.0\n  serdes check models --exclude 'build/' --require-known\n  \
serdes check models --tensorflow all --format html=report.html --format sarif=report.sarif\n  \
serdes check models --deny attribute_dropped --baseline serdes.baseline\n  cat graph.pb | serdes check - --kind graph_def --json"
    )]
    Check(Box<CheckArguments>),
    /// Print the configuration that `check` has, and where each value comes from.
    #[command(
        after_help = "Examples:\n  serdes config\n  serdes config --tensorflow 2.16 --json\n  serdes config --schema > serdes.schema.json\n\n\
The file serdes.toml is looked for in the working directory and above; options of `check` stand before what it says."
    )]
    Config(Box<ConfigArguments>),
    /// Check whether the packages of a Python environment fit one another.
    ///
    /// jax, jaxlib, their plug-ins, CUDA's libraries, torch_xla, libtpu, TensorFlow and what is built
    /// for them: by tables of measured releases, by what the packages declare, and by their files.
    /// Nothing of the environment is run, imported or loaded. Each remedy is checked: with it the
    /// problem is gone, and no other one is there.
    #[command(
        after_help = "Examples:\n  serdes doctor                                   (VIRTUAL_ENV, CONDA_PREFIX or .venv)\n  \
serdes doctor --env /srv/venv\n  serdes doctor --lock uv.lock --artifacts export/model\n  \
serdes doctor --python /usr/bin/python3 --json\n\n\
Exit status: 0 everything fits (warnings included); 1 something does not; 2 could not tell."
    )]
    Doctor(DoctorArguments),
    /// Explain a rule of a verdict: its meaning, an example and the remedy.
    #[command(
        after_help = "Examples:\n  serdes explain min_consumer\n  serdes explain            (lists the rules)"
    )]
    Explain(ExplainArguments),
    /// Print the contents of an artifact: kind, versions, tensors, operations, sizes.
    #[command(
        after_help = "Examples:\n  serdes inspect state.sds\n  serdes inspect exported/model --json"
    )]
    Inspect(InspectArguments),
    /// Print the tables of releases by which the command judges, as a page.
    ///
    /// jaxlib with its PJRT version, the plug-ins that it takes and the StableHLO that it reads;
    /// TensorFlow with its operations.
    #[command(
        after_help = "Examples:\n  serdes matrix\n  serdes matrix --format markdown > releases.md"
    )]
    Matrix(MatrixArguments),
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
serdes restore state.sds --only 'encoder/*' --to encoder.npz\n  \
serdes restore state.sds --dry-run --plugin ./libplugin.so\n  serdes restore broken.sds --salvage --to rest.safetensors\n  \
ssh host cat state.sds | serdes restore - --to out.npz\n  \
serdes restore state.sds --to - --to-kind npy --only bias | my-reader\n\n\
`-` is standard input as FILE, kept until it is restored (64 MiB in memory, up to 64 GiB in a temporary file without a name), and \
standard output as FILE2, which then gets the tensors and nothing else (results go to standard error). With --salvage the status is 1 \
where anything is lost, or may be.")]
    Restore(RestoreArguments),
    /// Make a state of the parts that several processes saved together.
    #[command(after_help = "Examples:\n  \
serdes save --from shard-0.safetensors --part 0/2 --id step-10 -o run/step-10.sds\n  \
serdes save --from shard-1.safetensors --part 1/2 --id step-10 -o run/step-10.sds\n  \
serdes merge run/step-10.sds --id step-10\n\n\
The state appears in one step, once all parts are there; no data is copied. Parts of an attempt that was never merged are removed by \
the next one.")]
    Merge(MergeArguments),
    /// Compare the tensors of two files: names, types, shapes and numbers.
    #[command(after_help = "Examples:\n  serdes diff before.sds after.safetensors\n  \
serdes diff a.npy b.npy --rtol 1e-5 --atol 1e-8\n  \
ssh host cat state.sds | serdes diff - state.sds\n\n\
Without --rtol and --atol elements differ where a byte does. With one of them, numbers A and B are equal where \
|A-B| <= atol + rtol*|B|: the distance of integers is exact, everything else in double precision; complex numbers in the plane; \
NaN equals NaN, an infinity itself, 0 equals -0; strings are compared byte for byte. Tensors are told by their names; two files of one \
tensor, of which one is an .npy, are compared whatever they are called. Status 2 where a tensor cannot be compared.")]
    Diff(DiffArguments),
    /// Read tensors that others wrote, PyTorch's among them, into a state or another file, without
    /// a device.
    #[command(
        override_usage = "serdes convert [OPTIONS] <SOURCE>... <TARGET>",
        after_help = "Examples:\n  serdes convert model.pt model.sds\n  \
serdes convert model.safetensors.index.json model.sds\n  \
serdes convert checkpoint.pth weights.safetensors --only 'model/*' --shard-bytes 5GB\n  \
serdes convert ckpt-1000 weights.npz\n\n\
Nothing in a file of PyTorch's is run: what describes tensors is read, everything else refused by its name, or left out with \
--skip-unsupported. Nested state dicts become names such as model/layer.weight and optimizer/state/0/exp_avg; numbers and texts between \
the tensors go into the metadata. Names of one tensor are one tensor in a state, and a tensor each elsewhere. Checkpoints of Orbax are \
read from Python: serdes_ml.convert(FOLDER, TARGET)."
    )]
    Convert(ConvertArguments),
    /// Inspect, check and verify plug-ins, of StreamExecutor and of PJRT.
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// Compare layouts of the StreamExecutor C API.
    #[command(subcommand)]
    Abi(AbiCommand),
    /// Negotiate versions with a proxy server, and print those that both would speak.
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
    Serve(Box<ServeArguments>),
    /// Print a completion script for a shell.
    #[command(after_help = "Example:\n  serdes completions bash > /etc/bash_completion.d/serdes")]
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one for every command into a directory.
    #[command(
        after_help = "Examples:\n  serdes man | man -l -\n  serdes man --directory /usr/local/share/man/man1"
    )]
    Man {
        /// The directory; it is made where it is not there.
        #[arg(long, value_name = "DIR")]
        directory: Option<std::path::PathBuf>,
    },
}
