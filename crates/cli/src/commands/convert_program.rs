//! `serdes convert --to-stablehlo`: a portable artifact of StableHLO for older readers.

use std::path::{Path, PathBuf};

use serde_json::json;
use serdes::{
    files::Watch,
    stablehlo::{Program, StableHloError, StableHloVersion},
};
use serdes_check::{self as check, Kind};

use crate::{
    arguments::ConvertArguments,
    commands::{convert_output, places, streams},
    failure::Failure,
    status::Status,
    terminal::{GOOD, NAME, Terminal, json_of_path, shown_path},
};

/// The longest program in bytes that is read.
const LONGEST: u64 = 2 << 30;

/// Writes the program at a path for readers of this version.
pub(super) fn run(
    arguments: &ConvertArguments,
    target: &str,
    from: &[PathBuf],
    to: &Path,
    terminal: &mut Terminal,
) -> Result<Status, Failure> {
    let target = version(target)?;
    let [from] = from else {
        return Err(Failure::new("--to-stablehlo: expected one program, and what is written"));
    };
    let storage = places::storage(&Watch::new());
    let bytes = streams::whole(&storage, from, LONGEST, "a program")?;
    let refused = |error: StableHloError| refusal(&bytes, &error).about(shown_path(from));
    let program = Program::read(&bytes).map_err(refused)?;
    let written = program.written_for(target).map_err(refused)?;
    convert_output::write(arguments, &storage, to, &written, terminal)?;
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
        }))?;
        return Ok(Status::Yes);
    }
    terminal.line(format_args!(
        "{GOOD}converted{GOOD:#} StableHLO {} to {} in {NAME}{}{NAME:#}; {read_by}",
        program.version(),
        target.min(program.version()),
        shown_path(to),
    ))?;
    Ok(Status::Yes)
}

/// Three numbers, or two and a patch of 0.
fn version(text: &str) -> Result<StableHloVersion, Failure> {
    let whole = if text.split('.').count() == 2 { format!("{text}.0") } else { text.to_owned() };
    whole.parse().map_err(|_| {
        Failure::new(format_args!(
            "--to-stablehlo: `{text}` is no version of StableHLO; expected numbers such as 1.16 or 1.13.7"
        ))
    })
}

/// Failure for a program that is not written, with status 1 where the target version cannot express
/// it.
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

/// The releases of jaxlib that read a program.
fn readers(program: &[u8]) -> Result<Vec<String>, Failure> {
    let artifact = check::reader(program, Some(Kind::StableHlo)).map_err(Failure::of)?;
    let found = artifact.inspect().map_err(|reason| Failure::new(&reason.message))?;
    Ok(found.jax.map(|found| found.read_by).unwrap_or_default())
}
