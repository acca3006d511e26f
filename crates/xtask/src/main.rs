//! Development tasks of serdes, by name: `cargo xtask`.
//!
//! A task replaces commands that a documentation page would have to list. `.ci/run` checks the
//! results of all tasks.

#[cfg(feature = "api")]
mod api;
#[cfg(any(feature = "api", test))]
mod api_texts;
mod lint_words;
mod releases;
mod upstream;

use std::{
    env,
    error::Error,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

/// A task: its name, its description, and its command, to which the caller's arguments are added.
struct Task {
    name: &'static str,
    does: &'static str,
    command: &'static [&'static str],
    /// Environment variable that makes the test write instead of compare.
    switch: Option<&'static str>,
}

const TASKS: [Task; 13] = [
    Task {
        name: "golden",
        does: "write the golden bytes that are missing (none is ever overwritten) and the text of all",
        command: &[
            "cargo",
            "test",
            "--quiet",
            "-p",
            "serdes",
            "--test",
            "it",
            "--",
            "ifrt_golden::",
            "device_state_golden::",
        ],
        switch: Some("SERDES_REGENERATE_GOLDEN"),
    },
    Task {
        name: "proto",
        does: "generate src/proto/generated and the descriptors from proto/",
        command: &["cargo", "test", "--quiet", "-p", "serdes", "--test", "it", "proto_generated::"],
        switch: Some("SERDES_REGENERATE_PROTO"),
    },
    Task {
        name: "lock",
        does: "freeze the wire formats in versions.lock",
        command: &["cargo", "test", "--quiet", "-p", "serdes", "--test", "it", "versions_lock::"],
        switch: Some("SERDES_REWRITE_LOCK"),
    },
    Task {
        name: "ops",
        does: "make the table of TensorFlow's operations from tests/data/tensorflow/ops",
        // The other tests use the built-in table, which is still the old one.
        command: &[
            "cargo",
            "test",
            "--quiet",
            "-p",
            "serdes-operations",
            "--test",
            "it",
            "--",
            "--exact",
            "tensorflow_ops::the_table_is_made_of_what_was_read_from_the_releases",
        ],
        switch: Some("SERDES_REGENERATE_OPS"),
    },
    Task {
        name: "schema",
        does: "generate the tables of TensorFlow's messages (with a Python that has TensorFlow: PYTHON=...)",
        command: &["PYTHON", "tests/interop/tensorflow_schema.py", "--write"],
        switch: None,
    },
    Task {
        name: "pjrt",
        does: "make the tables of the PJRT C API from crates/abi/pjrt.json",
        command: &["cargo", "test", "--quiet", "-p", "serdes-abi", "--test", "it", "pjrt_tables::"],
        switch: Some("SERDES_REGENERATE_PJRT"),
    },
    Task {
        name: "peers",
        does: "generate benches/peers/generated, the messages of the libraries that the codec is compared with",
        command: &["cargo", "test", "--quiet", "-p", "xtask", "--test", "peers_generated"],
        switch: Some("SERDES_REGENERATE_PEERS"),
    },
    Task {
        name: "rules",
        does: "make docs/rules.md from the table of rules",
        command: &["cargo", "test", "--quiet", "-p", "serdes-check", "--test", "it", "rules::"],
        switch: Some("SERDES_REGENERATE_RULES"),
    },
    Task {
        name: "scope",
        does: "write the present counts of lines into docs/scope.md",
        command: &["cargo", "test", "--quiet", "-p", "serdes", "--test", "it", "scope::counts"],
        switch: Some("SERDES_REGENERATE_SCOPE"),
    },
    Task {
        name: "help",
        does: "write what each command says to --help into crates/cli/tests/help",
        command: &["cargo", "test", "--quiet", "-p", "serdes-cli", "--test", "command", "help::"],
        switch: Some("SERDES_REGENERATE_HELP"),
    },
    Task {
        name: "api",
        does: "write the public items of each library into docs/api; --check compares them",
        command: &["cargo", "run", "--quiet", "-p", "xtask", "--features", "api", "--", "api"],
        switch: None,
    },
    Task {
        name: "docs",
        does: "make the site from docs/ into target/site",
        command: &["bash", ".ci/site", "build"],
        switch: None,
    },
    Task {
        name: "ci",
        does: "what must pass before a change lands; with names of stages only these",
        command: &["bash", ".ci/run"],
        switch: None,
    },
];

/// Tasks that run in this process.
const LINT_WORDS: (&str, &str) =
    ("lint-words", "find doc comments without a subject, and words that are not the field's");
const RELEASES: (&str, &str) =
    ("releases", "make the Rust tables of jaxlib's releases from crates/releases/data");
const UPSTREAM: (&str, &str) = (
    "upstream",
    "read a release's wheels and write the tables: PACKAGE==VERSION; without one, say what is new",
);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs a task in this process; returns true if it found no problem.
fn here(name: &str, arguments: &[String]) -> Option<Result<bool, Box<dyn Error>>> {
    #[cfg(feature = "api")]
    if name == "api" {
        return Some(api::run(&root(), arguments));
    }
    if name == LINT_WORDS.0 {
        return Some(lint_words::run(&root(), arguments).map_err(Into::into));
    }
    if name == RELEASES.0 {
        let check = arguments.iter().any(|argument| argument == "--check");
        return Some(releases::run(&root(), check).map(|moved| {
            moved.iter().for_each(|name| println!("{name}"));
            !check || moved.is_empty()
        }));
    }
    (name == UPSTREAM.0).then(|| upstream::run(&root(), arguments))
}

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let arguments: Vec<String> = arguments.collect();
    match here(&name, &arguments) {
        Some(Ok(true)) => return ExitCode::SUCCESS,
        Some(Ok(false)) => return ExitCode::FAILURE,
        Some(Err(error)) => {
            eprintln!("{name}: {error}");
            return ExitCode::from(2);
        }
        None => {}
    }
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        eprintln!("usage: cargo xtask TASK [ARGUMENT ...]\n");
        let others = [LINT_WORDS, RELEASES, UPSTREAM];
        for (name, does) in TASKS.iter().map(|task| (task.name, task.does)).chain(others) {
            eprintln!("  {name:10} {does}");
        }
        return ExitCode::from(2);
    };
    let python = env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let mut words = task.command.iter().map(|word| if *word == "PYTHON" { &python } else { *word });
    let mut command = Command::new(words.next().unwrap_or("cargo"));
    command.args(words).args(arguments).envs(task.switch.map(|switch| (switch, "1")));
    command.current_dir(root());
    match command.status() {
        Ok(status) => status.code().map_or(ExitCode::FAILURE, |code| ExitCode::from(code as u8)),
        Err(error) => {
            eprintln!("{command:?} cannot be run: {error}");
            ExitCode::from(2)
        }
    }
}
