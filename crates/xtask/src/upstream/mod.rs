//! Adds an upstream release: `cargo xtask upstream [PACKAGE==VERSION] [--check] [--remove]`.
//!
//! It downloads the release's wheel, reads and measures the data for the tables of releases, writes
//! them, and prints a report in Markdown: the changes, and the decisions left to a person. Without
//! a release it lists those that are newer than the tables. Writing does not use the built-in
//! tables; afterwards they are rebuilt and tested. `--check` prints these commands and those of the
//! interop suite instead of running them, `--remove` removes a release. Python runs in environments
//! outside the tree; nothing of a wheel is imported here.

mod pins;
mod report;
mod tables;
mod task_result;
mod tools;

use std::path::Path;

use self::{report::Report, tables::Tables, task_result::TaskResult, tools::Tools};

/// Packages that are checked for newer releases.
const WATCHED: [&str; 6] =
    ["jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda13-plugin", "libtpu", "tensorflow"];

/// Builds of TensorFlow, which share one entry in the tables.
const TENSORFLOW: [&str; 2] = ["tensorflow", "tensorflow-cpu"];

/// A release to add.
#[derive(Clone, Copy, Debug)]
struct Wanted<'a> {
    package: &'a str,
    version: &'a str,
}

impl Wanted<'_> {
    /// Returns the package's name in the tables.
    fn row(&self) -> &str {
        if TENSORFLOW.contains(&self.package) { "tensorflow" } else { self.package }
    }
}

/// Executes the task for the arguments.
pub(crate) fn run(root: &Path, arguments: &[String]) -> TaskResult<bool> {
    let (options, releases): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|argument| argument.starts_with("--"));
    let has = |name: &str| options.iter().any(|option| *option == name);
    if let Some(unknown) =
        options.iter().find(|one| !["--check", "--remove"].contains(&one.as_str()))
    {
        return Err(format!("unknown option {unknown}; expected --check or --remove").into());
    }
    let tools = Tools::new(root)?;
    let mut tables = Tables::read(root)?;
    let Some(release) = releases.first() else { return newer(&tools, &tables) };
    let (package, version) = release
        .split_once("==")
        .ok_or_else(|| format!("{release}: expected PACKAGE==VERSION, as in jaxlib==0.12.0.1"))?;
    let wanted = Wanted { package, version };
    if has("--remove") {
        tables.remove(wanted.row(), version)?;
        tables.write(root)?;
        if wanted.row() == "tensorflow" {
            tools.remove_tensorflow(&environment(&tools, wanted)?, version)?;
        }
        return crate::releases::run(root, false).map(|_| true);
    }
    let mut report = Report::new(package, version);
    declared(&tools, &mut tables, wanted, &mut report)?;
    match wanted.row() {
        "jaxlib" => jaxlib(&tools, &mut tables, wanted, &mut report)?,
        "tensorflow" => tensorflow(&tools, wanted, &mut report)?,
        name if name.ends_with("-pjrt") || name == "libtpu" => {
            plugin(&tools, &mut tables, wanted, &mut report)?;
        }
        name if name.starts_with("jax-cuda") => report.decide(
            "the CUDA libraries that it was built with (`_versions` of its wheel)",
            "crates/releases/data/plugins.json",
        ),
        _ => {}
    }
    tables.write(root)?;
    for name in crate::releases::run(root, false)? {
        report.file(name);
    }
    report.moved(tables.moved()?);
    interop(&tools, wanted, has("--check"), &mut report)?;
    print!("{}", report.text());
    Ok(report.is_good())
}

/// Lists the releases on PyPI that the tables lack.
fn newer(tools: &Tools, tables: &Tables) -> TaskResult<bool> {
    let mut found = false;
    for package in WATCHED {
        let known = tables.newest(package);
        for version in tools.versions(package)? {
            if known.as_ref().is_some_and(|known| version > *known) {
                println!("cargo xtask upstream {package}=={version}");
                found = true;
            }
        }
    }
    if !found {
        println!("the tables have the newest release of {}", WATCHED.join(", "));
    }
    Ok(true)
}

/// Adds the wheel's declared requirements to the table of packages.
fn declared(
    tools: &Tools,
    tables: &mut Tables,
    wanted: Wanted<'_>,
    report: &mut Report,
) -> TaskResult<()> {
    // The package `tensorflow` also declares its CUDA libraries.
    let package = wanted.row();
    // The package with a plug-in's library requires nothing; another table has it.
    if package.ends_with("-pjrt") && !tables.has_package(package) {
        return Ok(());
    }
    let python = tables.python_of(package, wanted.version).unwrap_or_else(|| "3.12".to_owned());
    let wheel = tools.wheel(package, wanted.version, &python)?;
    let row = pins::row(&tools.declared(&wheel)?)?;
    tables.put_package(package, row)?;
    if package == "jax" {
        report.decide("what jax refuses and warns of", "crates/doctor/src/judge/jax.rs");
    }
    Ok(())
}

/// Measures a jaxlib, and adds its row to the table.
fn jaxlib(
    tools: &Tools,
    tables: &mut Tables,
    wanted: Wanted<'_>,
    report: &mut Report,
) -> TaskResult<()> {
    let packages = ["jax", "jaxlib"].map(|name| format!("{name}=={}", wanted.version));
    let python = tools.environment(
        &format!("jaxlib-{}", wanted.version),
        &[&packages[0], &packages[1], "flatbuffers"],
    )?;
    let row = tools.measured_jaxlib(&python)?;
    let before = tables.put_jaxlib(row.clone());
    report.compare(before.as_ref(), &row, tools.newest_layout()?);
    Ok(())
}

/// Returns the PJRT version of a plug-in's library.
fn plugin(
    tools: &Tools,
    tables: &mut Tables,
    wanted: Wanted<'_>,
    report: &mut Report,
) -> TaskResult<()> {
    let python = tables.python_of(wanted.package, wanted.version);
    let python = python.unwrap_or_else(|| "3.12".to_owned());
    let wheel = tools.wheel(wanted.package, wanted.version, &python)?;
    let minor = tools.plugin_minor(&wheel)?;
    tables.put_pjrt(wanted.package, wanted.version, minor)?;
    if minor > tools.newest_layout()? {
        report.decide(
            &format!("PJRT 0.{minor} is newer than the layouts: read its header"),
            "crates/abi/pjrt.json, by crates/abi/measure/read_pjrt_header.py and a wheel of tf-nightly",
        );
    }
    Ok(())
}

/// Returns the Python of an environment with a TensorFlow.
fn environment(tools: &Tools, wanted: Wanted<'_>) -> TaskResult<String> {
    let package = format!("{}=={}", wanted.package, wanted.version);
    tools.environment(&format!("tensorflow-{}", wanted.version), &[&package])
}

/// Writes the operations and exported functions of a TensorFlow, with the generators of the interop
/// tests.
fn tensorflow(tools: &Tools, wanted: Wanted<'_>, report: &mut Report) -> TaskResult<()> {
    let python = environment(tools, wanted)?;
    for name in tools.tensorflow_tables(&python, wanted.version)? {
        report.file(name);
    }
    let numbers = tools.graph_versions(&python)?;
    report.propose(&format!(
        "[[product.release]]\nversion = \"{}\"\ndate = {}\nnumbers = {{ graph_def = {}, checkpoint = 1, tensor_bundle = 1 }}\n",
        wanted.version, numbers.day, numbers.graph_def
    ));
    report.decide(
        "new operations without a shape function or a kernel for the CPU, which the C API does not say",
        "tests/data/tensorflow/ops/deltas.json",
    );
    Ok(())
}

/// Runs or prints the checks of the written tables: their tests, and those against the real
/// release.
fn interop(
    tools: &Tools,
    wanted: Wanted<'_>,
    only_print: bool,
    report: &mut Report,
) -> TaskResult<()> {
    let mut commands = tools.build_and_test(wanted.row());
    match wanted.row() {
        "jaxlib" | "jax" => {
            commands.extend(tools.interop_commands(&format!("jaxlib-{}", wanted.version)));
        }
        "tensorflow" => {
            commands.extend(tools.interop_commands(&format!("tensorflow-{}", wanted.version)));
        }
        _ => {}
    }
    for command in commands {
        let ended = if only_print { None } else { Some(tools.shell(&command)?) };
        report.interop(&command, ended);
    }
    Ok(())
}
