//! Verdicts on plug-ins, read as ELF files: nothing of them is loaded or run.

use super::artifact::Artifact;
use super::{Inspection, Options, Reason, Rule, Verdict, Warning};
use crate::stream_executor::elf;

fn read(artifact: &Artifact) -> Result<elf::Inspection, Box<Reason>> {
    let Some(path) = &artifact.path else {
        let message = "a shared library can only be looked at in a file";
        return Err(
            Reason::new(Rule::Unsupported, message, "save it to a file and check that").into()
        );
    };
    elf::inspect(path).map_err(|error| Reason::new(Rule::Corrupt, error.to_string(), "").into())
}

/// Whether a file is a plug-in at all.
pub(super) fn is_plugin(artifact: &Artifact) -> bool {
    read(artifact).is_ok_and(|inspection| inspection.is_plugin())
}

/// The verdict on a plug-in.
pub(super) fn check(artifact: &Artifact, _options: &Options, verdict: &mut Verdict) {
    let library = match read(artifact) {
        Ok(library) => library,
        Err(reason) => return verdict.refuse(*reason),
    };
    if !library.is_for_this_machine() {
        return verdict.refuse(
            Reason::new(
                Rule::Unsupported,
                format!(
                    "the library is for {}, and this machine is {}",
                    library.architecture,
                    std::env::consts::ARCH
                ),
                "use a plug-in that is built for this machine",
            )
            .with_numbers(&library.architecture, std::env::consts::ARCH),
        );
    }
    if !library.shared {
        return verdict.refuse(Reason::new(
            Rule::Unsupported,
            "the file is an ELF file but no shared library",
            "build it as a shared library (-shared)",
        ));
    }
    if !library.is_plugin() {
        return verdict.refuse(Reason::new(
            Rule::NotAPlugin,
            "the library does not export SE_InitPlugin",
            "name a StreamExecutor plug-in, or export the function",
        ));
    }
    for symbol in library.unserved.iter().take(100) {
        let message = format!("the library needs {symbol}, which this host does not serve");
        verdict.warn(Warning::new(Rule::Unsupported, message).at(symbol.clone()));
    }
}

/// What a plug-in says of itself.
pub(super) fn inspect(artifact: &Artifact) -> Result<Inspection, Box<Reason>> {
    let library = read(artifact)?;
    let mut inspection = Inspection::new(artifact.label.clone(), artifact.kind);
    let details = [
        ("architecture", library.architecture.clone()),
        ("exports", library.exports.join(" ")),
        ("needed", library.needed.join(" ")),
        ("unserved", library.unserved.join(" ")),
    ];
    inspection.details.extend(details.map(|(name, value)| (name.to_owned(), value)));
    Ok(inspection)
}
