//! `serdes completions`: completion scripts of shells.

use clap::{Arg, Command, CommandFactory, builder::PossibleValuesParser};
use serdes_check::{Consumer, Kind, Rule, report::Format};
use serdes_pjrt::Framework;
use serdes_tensors::Form;

use crate::{
    arguments::Cli,
    commands::{environment_rules, plugin_behaviours},
    failure::Failure,
    status::ExitStatus,
    terminal::Terminal,
};

/// Prints the completions for a shell.
pub(crate) fn run(
    shell: clap_complete::Shell,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let mut script = Vec::new();
    let mut command = with_words(Cli::command());
    clap_complete::generate(shell, &mut command, "serdes", &mut script);
    terminal.raw(&script)?;
    Ok(ExitStatus::Success)
}

/// Adds the possible values of options and arguments, which the parser does not check itself: the
/// commands report invalid ones in more detail.
fn with_words(mut command: Command) -> Command {
    let rules: Vec<&str> = Rule::ALL.iter().map(|rule| rule.id()).collect();
    let behaviours: Vec<&str> = plugin_behaviours::demands().map(|(name, _)| name).collect();
    let of_environments = environment_rules::all().map(|rule| rule.id());
    let explained: Vec<&str> =
        rules.iter().chain(&behaviours).copied().chain(of_environments).collect();
    let kinds: Vec<&str> = Kind::ALL.iter().map(|kind| kind.id()).collect();
    let forms: Vec<&str> = Form::ALL.iter().map(|form| form.as_str()).collect();
    let reports: Vec<&str> = Format::ALL.iter().map(|format| format.id()).chain(["json"]).collect();
    let tensorflow = releases(Consumer::releases("all"), |consumer| consumer.release());
    let jax = releases(Consumer::jax_releases("all"), |consumer| consumer.jaxlib());
    let single: Vec<&str> = tensorflow.iter().copied().filter(|name| name.contains('.')).collect();
    let frameworks = frameworks();
    for subcommand in ["check", "config"] {
        for (argument, words) in [
            ("tensorflow", &tensorflow),
            ("jax", &jax),
            ("kind", &kinds),
            ("deny", &rules),
            ("warn", &rules),
            ("allow", &rules),
            ("format", &reports),
        ] {
            command = completed(command, &[subcommand], argument, words);
        }
    }
    for (path, argument, words) in [
        (&["explain"][..], "rule", &explained),
        (&["inspect"], "kind", &kinds),
        (&["ops"], "release", &single),
        (&["ops"], "other", &single),
        (&["plugin", "inspect"], "tensorflow", &tensorflow),
        (&["plugin", "check"], "frameworks", &frameworks),
        (&["plugin", "verify"], "only", &behaviours),
        (&["plugin", "verify"], "skip", &behaviours),
        (&["convert"], "kind", &forms),
        (&["convert"], "to_kind", &forms),
        (&["diff"], "kind", &forms),
        (&["restore"], "to_kind", &forms),
        (&["save"], "kind", &forms),
    ] {
        command = completed(command, path, argument, words);
    }
    let versions = vec!["current", "week-4-old", "minimum"];
    for subcommand in ["convert", "restore", "save", "serve"] {
        command = completed(command, &[subcommand], "serdes_version", &versions);
    }
    command
}

/// Returns the frameworks for `plugin check --for`.
fn frameworks() -> Vec<&'static str> {
    let names = Framework::names().chain(Framework::torch_xla_names());
    // Leaked once: a process prints one script.
    names.map(|name| &*name.leak()).chain(["all"]).collect()
}

/// Returns the releases of a framework, and the names for several of them.
fn releases<E>(
    all: Result<Vec<Consumer>, E>,
    name: impl Fn(&Consumer) -> Option<&str>,
) -> Vec<&'static str> {
    let consumers = all.unwrap_or_default();
    // Leaked once: a process prints one script.
    let names = consumers.iter().filter_map(name).map(|name| &*name.to_owned().leak());
    names.chain(["all", "latest"]).collect()
}

/// Adds the values to an option of a subcommand, or to its only argument; a changed subcommand
/// moves to the end. Returns the command unchanged if there is no such subcommand.
fn completed(command: Command, path: &[&str], argument: &str, words: &[&'static str]) -> Command {
    let Some((first, rest)) = path.split_first() else {
        let has = command.get_arguments().any(|one| one.get_id() == argument);
        let with = |one: Arg| one.value_parser(PossibleValuesParser::new(words.to_vec()));
        return if has { command.mut_arg(argument, with) } else { command };
    };
    command.mut_subcommand(first, |inner| completed(inner, rest, argument, words))
}
