//! `serdes convert --to-stablehlo`: writes a portable StableHLO artifact for older readers.

use std::path::{Path, PathBuf};

use serde_json::json;
use serdes::stablehlo::{Program, StableHloError, StableHloVersion};
use serdes_check::{self as check, Kind};
use serdes_device_state::files::ProgressMonitor;

use crate::{
    arguments::ConvertArguments,
    commands::{convert_output, locations, streams},
    failure::Failure,
    status::ExitStatus,
    terminal::{GOOD, NAME, Terminal, json_of_path, shown_path},
};

/// Maximum size of a program in bytes.
const LONGEST: u64 = 2 << 30;

/// Writes the program at a path for readers of this version.
pub(super) fn run(
    arguments: &ConvertArguments,
    target: &str,
    from: &[PathBuf],
    to: &Path,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let target = version(target)?;
    let [from] = from else {
        return Err(Failure::new("--to-stablehlo: expected one program, and what is written"));
    };
    let storage = locations::storage(&ProgressMonitor::new());
    let bytes = streams::read_whole(&storage, from, LONGEST, "a program")?;
    let refused = |error: StableHloError| refusal(&bytes, &error).about(shown_path(from));
    let program = Program::read(&bytes).map_err(refused)?;
    let written = program.written_for(target).map_err(refused)?;
    convert_output::write(arguments, &storage, to, &written, terminal)?;
    let warnings = warnings(&program);
    warnings.iter().for_each(|warning| terminal.warning(warning));
    let readers = readers(&written)?;
    let read_by = match (readers.first(), readers.last()) {
        (Some(first), Some(last)) => format!("jaxlib {first} to {last} read it"),
        _ => "no known jaxlib reads it".to_owned(),
    };
    if terminal.json() {
        terminal.object(&json!({
            "target": json_of_path(to),
            "bytes": written.len(),
            "from_stablehlo": program.version().to_string(),
            "to_stablehlo": target.min(program.version()).to_string(),
            "read_by": readers,
            "warnings": warnings,
        }))?;
        return Ok(ExitStatus::Success);
    }
    terminal.line(format_args!(
        "{GOOD}converted{GOOD:#} StableHLO {} to {} in {NAME}{}{NAME:#}; {read_by}",
        program.version(),
        target.min(program.version()),
        shown_path(to),
    ))?;
    Ok(ExitStatus::Success)
}

/// Custom calls that the compilers of all releases implement.
const OF_THE_COMPILER: [&str; 4] =
    ["Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement"];

/// Prefixes of further such calls.
const PREFIXES_OF_THE_COMPILER: [&str; 3] = ["chlo.", "mhlo.", "xla."];

/// Maximum number of function names that are listed.
const MOST_LISTED: usize = 8;

/// Returns warnings for parts of a program that a reader may accept but not run: support does not
/// depend on the version.
fn warnings(program: &Program<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let is_of_the_compiler = |target: &str| {
        OF_THE_COMPILER.contains(&target)
            || PREFIXES_OF_THE_COMPILER.iter().any(|prefix| target.starts_with(prefix))
    };
    let targets = program.custom_calls().map(|target| target.unwrap_or("one without a name"));
    let targets: Vec<&str> = targets.filter(|target| !is_of_the_compiler(target)).collect();
    if let Some(first) = targets.get(..targets.len().min(MOST_LISTED)).filter(|it| !it.is_empty()) {
        let more = match targets.len().saturating_sub(first.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let first = first.join(", ");
        warnings.push(format!(
            "the program calls {first}{more}, which the process that runs it must have registered with the same parameters; another jaxlib may read the \
             program and refuse to run it"
        ));
    }
    if program.operation_dialects().any(|dialect| dialect == "sdy") {
        warnings.push(
            "the program has operations of the dialect sdy, which has no versions; jaxlib before 0.7.0 may read the program and refuse to run it"
                .to_owned(),
        );
    }
    warnings
}

/// Parses three numbers, or two with a patch of 0.
fn version(text: &str) -> Result<StableHloVersion, Failure> {
    let whole = if text.split('.').count() == 2 { format!("{text}.0") } else { text.to_owned() };
    whole.parse().map_err(|_| {
        Failure::new(format_args!(
            "--to-stablehlo: `{text}` is no version of StableHLO; expected numbers such as 1.16 or 1.13.7"
        ))
    })
}

/// Returns the failure for a program that cannot be written, with status 1 if the target version
/// cannot express it.
fn refusal(bytes: &[u8], error: &StableHloError) -> Failure {
    match error {
        StableHloError::Inexpressible { .. } | StableHloError::TargetTooOld { .. } => {
            Failure::no(error)
        }
        StableHloError::NoArtifact { .. }
            if check::bytes(bytes.to_vec()).kind() == Kind::JaxExport =>
        {
            Failure::new("this is a file of jax.export, and --to-stablehlo writes portable artifacts")
                .with_hint(
                    "convert `exported.mlir_module_serialized`, or export the function with the older jax",
                )
        }
        error => Failure::new(error),
    }
}

/// Returns the releases of jaxlib that read a program.
fn readers(program: &[u8]) -> Result<Vec<String>, Failure> {
    let artifact = check::reader(program, Some(Kind::StableHlo)).map_err(Failure::of)?;
    let found = artifact.inspect().map_err(|reason| Failure::new(&reason.message))?;
    Ok(found.jax.map(|found| found.read_by).unwrap_or_default())
}
