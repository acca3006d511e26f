//! Prints the verdict of every jaxlib on each file, one JSON object per file.
//!
//! `which_jaxlib [--kind stablehlo|jax_export] FILE…`; without a kind, it is detected from the
//! content.

use std::{env, error::Error, fs};

use serde_json::{Map, json};
use serdes_jax_artifacts::{Artifact, Kind, Options, releases};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1).peekable();
    let mut kind = None;
    if arguments.next_if_eq("--kind").is_some() {
        kind = match arguments.next().as_deref() {
            Some("stablehlo") => Some(Kind::StableHlo),
            Some("jax_export") => Some(Kind::JaxExport),
            other => {
                return Err(format!("--kind {other:?}: expected stablehlo or jax_export").into());
            }
        };
    }
    let options = Options::new();
    for path in arguments {
        let bytes = fs::read(&path)?;
        let artifact = match kind {
            Some(kind) => Artifact::with_kind(kind, &bytes),
            None => Artifact::read(&bytes)?,
        };
        let mut verdicts = Map::new();
        for release in releases().iter().filter(|release| release.is_judged()) {
            let judgement = artifact.judge(release, &options);
            let reasons: Vec<_> = judgement.reasons.iter().map(ToString::to_string).collect();
            let warnings: Vec<_> = judgement.warnings.iter().map(ToString::to_string).collect();
            let acceptable = judgement.is_acceptable();
            let verdict =
                json!({ "acceptable": acceptable, "reasons": reasons, "warnings": warnings });
            verdicts.insert(release.version.to_owned(), verdict);
        }
        println!("{}", json!({ "path": path, "kind": artifact.kind().id(), "verdicts": verdicts }));
    }
    Ok(())
}
