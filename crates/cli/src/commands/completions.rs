//! `serdes completions`: what shells complete.

use clap::{Arg, Command, CommandFactory, builder::PossibleValuesParser};
use serdes_check::{Consumer, Kind, Rule};

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

/// The command with the words that its values are made of, which the parser itself does not insist
/// on: it says more about one that is wrong.
fn with_words(mut command: Command) -> Command {
    let rules: Vec<&str> = Rule::ALL.iter().map(|rule| rule.id()).collect();
    let behaviours: Vec<&str> = plugin_behaviours::demands().map(|(name, _)| name).collect();
    let of_environments = environment_rules::all().map(|rule| rule.id());
    let explained: Vec<&str> =
        rules.iter().chain(&behaviours).copied().chain(of_environments).collect();
    let kinds: Vec<&str> = Kind::ALL.iter().map(|kind| kind.id()).collect();
    let tensorflow = releases(Consumer::releases("all"), |consumer| consumer.release());
    let jax = releases(Consumer::jax_releases("all"), |consumer| consumer.jaxlib());
    for (path, argument, words) in [
        (&["explain"][..], "rule", &explained),
        (&["check"], "tensorflow", &tensorflow),
        (&["check"], "jax", &jax),
        (&["check"], "kind", &kinds),
        (&["check"], "deny", &rules),
        (&["check"], "warn", &rules),
        (&["check"], "allow", &rules),
        (&["inspect"], "kind", &kinds),
        (&["plugin", "inspect"], "tensorflow", &tensorflow),
        (&["plugin", "verify"], "only", &behaviours),
        (&["plugin", "verify"], "skip", &behaviours),
    ] {
        command = completed(command, path, argument, words);
    }
    command
}

/// The releases of a framework, and the words for several of them.
fn releases<E>(
    all: Result<Vec<Consumer>, E>,
    name: impl Fn(&Consumer) -> Option<&str>,
) -> Vec<&'static str> {
    let consumers = all.unwrap_or_default();
    // Leaked once: a process prints one script.
    let names = consumers.iter().filter_map(name).map(|name| &*name.to_owned().leak());
    names.chain(["all", "latest"]).collect()
}

/// The command, where the option of a subcommand has these words, or its only argument: one that is
/// changed comes behind the others. As it was, if there is none.
fn completed(command: Command, path: &[&str], argument: &str, words: &[&'static str]) -> Command {
    let Some((first, rest)) = path.split_first() else {
        let has = command.get_arguments().any(|one| one.get_id() == argument);
        let with = |one: Arg| one.value_parser(PossibleValuesParser::new(words.to_vec()));
        return if has { command.mut_arg(argument, with) } else { command };
    };
    command.mut_subcommand(first, |inner| completed(inner, rest, argument, words))
}
