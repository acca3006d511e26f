//! Arguments of `check`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{ConfigurationArguments, ReportArguments};

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
#[derive(Clone, Debug, Args)]
pub(crate) struct CheckArguments {
    /// Files, folders, checkpoint prefixes, V1 globs, or `-` for standard input; those that
    /// serdes.toml names, if none is given.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Another consumer for a line: LINE=N[:MIN_PRODUCER]; may be given for several lines.
    #[arg(long, value_name = "LINE=N[:MIN_PRODUCER]")]
    pub(crate) consumer: Vec<String>,
    /// A TensorFlow release as the consumer (2.21.0 by default): 2.16, latest, or several, each
    /// with a verdict: 2.12..2.16, 2.17.. (and newer), all (2.12 to 2.21), or the option repeated.
    #[arg(long, value_name = "RELEASE")]
    pub(crate) tensorflow: Vec<String>,
    /// A jaxlib release that loads files of jax.export and portable artifacts of StableHLO (the
    /// newest by default): 0.10.2, 0.10, latest, or several, each with a verdict: 0.9.0..0.10.2, all
    /// (0.8.0 and later), or the option repeated.
    #[arg(long, value_name = "RELEASE")]
    pub(crate) jax: Vec<String>,
    /// A type of pytree nodes that is registered before a file of jax.export is loaded, by the name
    /// under which it is serialized; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) custom_node: Vec<String>,
    /// Warn of functions of jax.export that may not be called on this platform: cpu, cuda, rocm or
    /// tpu.
    #[arg(long, value_name = "NAME")]
    pub(crate) platform: Option<String>,
    /// An operation that the consumer has besides those of its release; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) custom_op: Vec<String>,
    /// A file with such operations, as `serdes ops RELEASE --json` lists them, a serialized OpList,
    /// or a name a line; or a SavedModel that lists its own; may be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) ops: Vec<PathBuf>,
    /// TensorFlow's loader that decides about a saved model.
    #[arg(long, value_enum, default_value_t = ModelLoader::LoadV1, value_name = "NAME")]
    pub(crate) loader: ModelLoader,
    /// The tags of a saved model's meta graph, separated by commas.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) tags: Option<Vec<String>>,
    /// Kind of the input, where its name and content do not say; of a bare message of IFRT its
    /// type: ArraySpec, Shape, DType, HloSharding and the like.
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// Read and check every byte of every tensor.
    #[arg(long)]
    pub(crate) verify_data: bool,
    /// Turn warnings into reasons, but for rules that --warn or --allow names.
    #[arg(long, overrides_with = "no_strict")]
    pub(crate) strict: bool,
    /// Leave out what matches below a folder; patterns as in .gitignore, may be repeated.
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,
    /// Status 2 if a folder has files of no kind that is judged.
    #[arg(long, overrides_with = "no_require_known")]
    pub(crate) require_known: bool,
    /// Another list of deprecated operations than TensorFlow's: a JSON file.
    #[arg(long, value_name = "FILE")]
    pub(crate) deprecated: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reports: ReportArguments,
    /// Compare with a revision of git or a folder: which releases load each artifact before and now
    /// (all releases, unless --tensorflow or --jax says which). Status 1 where one loads it no longer.
    #[arg(long, value_name = "REF")]
    pub(crate) against: Option<String>,
    #[command(flatten)]
    pub(crate) configuration: ConfigurationArguments,
}
