//! Arguments of `versions` and of the commands under it.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::numbers::whole_number;

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
    /// Make the first versions.toml of a crate, with one line and one format.
    ///
    /// The file is short and says in comments what its keys are. One that is there is not
    /// overwritten. What comes next is said: the build script, the type, its test.
    #[command(
        after_help = "Examples:\n  serdes versions init --line snapshots --format Snapshot\n  serdes versions init --directory my-crate"
    )]
    Init(InitVersionsArguments),
    /// Write the golden bytes that are missing, by the tests of the crate.
    ///
    /// Golden bytes show how a format is written; `versions lock` freezes them. Those of a crate come
    /// out of its own tests: one that calls `serdes::codec::testing::golden` for a type, and has
    /// `golden` in its name. This runs `cargo test golden` with SERDES_GOLDEN=write, which has them
    /// write the files that are missing, and then looks whether every format has some. Nothing that is
    /// there is changed.
    #[command(
        after_help = "Examples:\n  serdes versions golden\n  serdes versions golden --check\n  serdes versions golden --directory my-crate -- --features weights golden"
    )]
    Golden(GoldenArguments),
    /// Add an entry to a line of versions.toml: the first step of a new format.
    ///
    /// The entry goes to the end of its line, with the next number (the day's, in a line that
    /// counts days); everything else in the file stays as it is, but as_of, which moves forward to
    /// the entry's day. What breaks a rule of the file, or is not for the kind of the line's next
    /// release, is refused, and nothing is written.
    #[command(
        after_help = "Examples:\n  serdes versions add snapshots --formats Snapshot --summary 'seeds of the shards'\n  \
serdes versions add snapshots --formats Snapshot,Shard --introduced 2026-12-01 --directory my-crate --dry-run"
    )]
    Add(AddVersionArguments),
    /// Move as_of of versions.toml to the day of a release, and freeze the formats that are new.
    ///
    /// The day decides what week_4_old is in the released build. A frozen format that changed, a new
    /// one without golden bytes, or a change that is not for the kind of a line's release (patch,
    /// minor, major), is refused, and nothing is written.
    #[command(
        after_help = "Examples:\n  serdes versions release\n  serdes versions release --date 2026-12-24 --directory my-crate"
    )]
    Release(ReleaseVersionsArguments),
}

/// Arguments of `versions init`.
#[derive(Debug, Args)]
pub(crate) struct InitVersionsArguments {
    /// The name of the line: lower_snake_case, what is written in the plural.
    #[arg(long, value_name = "NAME", default_value = "records")]
    pub(crate) line: String,
    /// The type that has a format on it, as it calls itself.
    #[arg(long, value_name = "TYPE", default_value = "Record")]
    pub(crate) format: String,
    /// The day from which builds read and write it (YYYY-MM-DD); today by default.
    #[arg(long, value_name = "DATE")]
    pub(crate) introduced: Option<String>,
    /// The release that the line is of (MAJOR.MINOR.PATCH), for a line that is held to the kinds of
    /// its releases.
    #[arg(long, value_name = "RELEASE")]
    pub(crate) release: Option<String>,
    /// The folder of the crate.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) directory: PathBuf,
}

/// Arguments of `versions golden`.
#[derive(Debug, Args)]
pub(crate) struct GoldenArguments {
    /// Only look; status 1 if a format has no golden bytes.
    #[arg(long)]
    pub(crate) check: bool,
    /// The folder with Cargo.toml, versions.toml and tests/golden.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) directory: PathBuf,
    /// Arguments for `cargo test`; `golden` by default, the tests with that in their names.
    #[arg(last = true, value_name = "CARGO_ARGS")]
    pub(crate) cargo: Vec<String>,
}

/// Arguments of `versions add`.
#[derive(Debug, Args)]
pub(crate) struct AddVersionArguments {
    /// The line, by its name in versions.toml.
    pub(crate) line: String,
    /// The formats that change, separated by commas.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) formats: Vec<String>,
    /// Take formats that the line did not have, though their names are nearly those of some that it
    /// has.
    #[arg(long)]
    pub(crate) new_names: bool,
    /// Summary of the change, for people; the formats by default.
    #[arg(long, value_name = "TEXT")]
    pub(crate) summary: Option<String>,
    /// The day from which builds read and write it (YYYY-MM-DD); today by default.
    #[arg(long, value_name = "DATE")]
    pub(crate) introduced: Option<String>,
    /// Another number than the next one, for a line whose numbers are somebody else's.
    #[arg(long, value_name = "N", value_parser = whole_number::<i32>)]
    pub(crate) number: Option<i32>,
    /// The first release that has it.
    #[arg(long, value_name = "RELEASE")]
    pub(crate) released_in: Option<String>,
    /// Source of the day, if it is not the day of the change.
    #[arg(long, value_name = "TEXT")]
    pub(crate) date_source: Option<String>,
    /// The oldest consumer of its data.
    #[arg(long, value_name = "N", value_parser = whole_number::<i32>)]
    pub(crate) min_consumer: Option<i32>,
    /// The release of the line with it (MAJOR.MINOR.PATCH); the line's `release` moves there.
    #[arg(long, value_name = "RELEASE")]
    pub(crate) release: Option<String>,
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
