//! Arguments about reports: forms, files, levels, baseline.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use serdes_check::report::Level;

/// Arguments about reports.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReportArguments {
    /// The form of the report: text, json, github, gitlab, sarif, junit, markdown or html; with =FILE
    /// it goes into a file, and may be repeated.
    #[arg(long, value_name = "FORMAT[=FILE]")]
    pub(crate) format: Vec<String>,
    /// Write the report into this file, whole or not at all.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) levels: LevelArguments,
    /// A file of findings that are known: they are shown as known and do not count for the status.
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Write the findings of today into a file for --baseline.
    #[arg(long, value_name = "FILE")]
    pub(crate) write_baseline: Option<PathBuf>,
}

/// The levels of rules, in the order that they were given in: the last one for a rule wins.
#[derive(Clone, Debug, Default)]
pub(crate) struct LevelArguments {
    pub(crate) levels: Vec<(String, Level)>,
}

/// Options of levels, with their help.
const LEVELS: [(&str, Level, &str); 3] = [
    (
        "deny",
        Level::Deny,
        "Count warnings of a rule: the artifact is not acceptable; may be repeated",
    ),
    ("warn", Level::Warn, "Only warn of a rule, also with --strict; may be repeated"),
    ("allow", Level::Allow, "Say nothing about warnings of a rule; may be repeated"),
];

// By hand, since only the matches know the order of options that are not the same.
impl Args for LevelArguments {
    fn augment_args(command: Command) -> Command {
        LEVELS.into_iter().fold(command, |command, (name, _, help)| {
            let argument = Arg::new(name).long(name).value_name("RULE").action(ArgAction::Append);
            command.arg(argument.help(help))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for LevelArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut ordered = Vec::new();
        for (name, level, _) in LEVELS {
            let rules = matches.get_many::<String>(name).into_iter().flatten();
            let places = matches.indices_of(name).into_iter().flatten();
            ordered.extend(places.zip(rules.map(|rule| (rule.clone(), level))));
        }
        ordered.sort_by_key(|(place, _)| *place);
        Ok(Self { levels: ordered.into_iter().map(|(_, level)| level).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
