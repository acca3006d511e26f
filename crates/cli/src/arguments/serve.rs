//! Arguments of `serve`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::numbers::whole_number;

use crate::arguments::RangeArguments;

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
    /// Take only clients with one of the tokens in FILE, a line each of at least 16 characters, `#`
    /// before comments; they send `authorization: Bearer TOKEN`. FILE is read again on SIGHUP.
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
    /// Address to listen on: HOST:PORT; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: String,
    /// The plug-in whose devices are served: `host`, `host:devices=2`, or the path of a library of
    /// a StreamExecutor or a PJRT plug-in, the latter with options of its client if need be:
    /// PATH[:KEY=VALUE,...].
    #[arg(long, value_name = "PLUGIN", default_value = "host")]
    pub(crate) plugin: String,
    /// The layout of the plug-in, where it is not to be detected.
    #[arg(long, value_name = "NAME")]
    pub(crate) layout: Option<String>,
    /// Name of the devices' platform for clients, in place of the plug-in's own name for it: JAX
    /// writes programs by that name. Under `tpu` linear algebra is written out, where `cpu` calls
    /// functions that only a jaxlib of the same process has.
    #[arg(long, value_name = "NAME")]
    pub(crate) platform_name: Option<String>,
    #[command(flatten)]
    pub(crate) ranges: RangeArguments,
    /// A device state: its arrays are restored at start; arrays of clients are saved into it on
    /// SIGHUP and at stop, and what is in it stays until a client deletes it or saves another array
    /// under its name.
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// Number of states before the last one to keep, as FILE.1 (the newest), FILE.2 and so on.
    #[arg(
        long,
        visible_alias = "state-keep",
        value_name = "N",
        default_value_t = 1,
        value_parser = whole_number::<u32>,
        requires = "state"
    )]
    pub(crate) keep: u32,
    /// The version that the readers of the state understand: current, week-4-old, minimum, or a
    /// number of the IFRT SerDes line, at which the container is written as builds of that number's
    /// day read it.
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
    /// A Python with jaxlib, as new as the clients': it writes programs for the plug-in that are
    /// too new for it, where that cannot be done here.
    #[arg(long, value_name = "PYTHON")]
    pub(crate) stablehlo_bridge: Option<PathBuf>,
    /// Take this option of XLA's compiler from clients whatever its value: its name, such as
    /// xla_dump_to, or its number in xla.DebugOptions; may be given for several. Without it options
    /// pass that are known to do no harm, and others are refused by their names.
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_compile_option: Vec<String>,
    /// Let programs of clients call this function of the plug-in by its name, in a custom call
    /// (lapack_spotrf_ffi), or all whose names begin so (lapack_*); may be given for several. Without
    /// it a program that calls any is refused: not all of them look at what they are given.
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_custom_call: Vec<String>,
    /// Compile programs in this process alone, for a plug-in whose devices two processes cannot
    /// have: a program that ends the compiler then ends the server.
    #[arg(long)]
    pub(crate) no_compile_worker: bool,
    /// Set by the command for the process that compiles programs for a server.
    #[arg(long, hide = true)]
    pub(crate) compile_worker: bool,
    /// Address for reading the metrics, at /metrics, in the text format of Prometheus: HOST:PORT,
    /// or PORT on this machine alone; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<String>,
    /// Time that open sessions may go on after SIGTERM or SIGINT; no new one is opened meanwhile.
    /// Without sessions the server ends at once.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) drain: Option<String>,
    /// Format of the log on standard error.
    #[arg(long, value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,
}

/// Format of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// An object a line.
    Json,
}
