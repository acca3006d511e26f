//! Verdicts on plug-ins, read as ELF files: they are not loaded or run.

use serdes_stream_executor::elf;

use super::{Findings, Inspection, Reason, Remedy, Rule, Warning, opened::Bytes, rule::messages};

/// Limit on the symbols that are listed.
const LISTED: usize = 100;

fn read(file: &Bytes) -> Result<elf::Inspection, Box<Reason>> {
    let Some(path) = &file.path else {
        let reason = Reason::from(messages::library_is_no_file());
        return Err(reason.with_remedy(Remedy::SaveToFile).into());
    };
    elf::inspect(path).map_err(|error| Reason::new(Rule::Corrupt, error.to_string()).into())
}

/// Returns true if a file is a plug-in.
pub(super) fn is_plugin(file: &Bytes) -> bool {
    read(file).is_ok_and(|library| library.api().is_some())
}

/// Returns the reason why a library is not a plug-in for this machine.
fn refusal(library: &elf::Inspection) -> Option<Reason> {
    if !library.is_for_this_machine() {
        let (found, expected) = (&library.architecture, std::env::consts::ARCH);
        let reason = Reason::from(messages::other_architecture(found, expected));
        let reason = reason.with_remedy(Remedy::UseLibraryForThisMachine);
        return Some(reason.with_numbers(found, expected));
    }
    if !library.shared {
        let reason = Reason::from(messages::no_shared_library());
        return Some(reason.with_remedy(Remedy::BuildShared));
    }
    if library.api().is_none() {
        let reason = Reason::from(messages::no_plugin_function());
        return Some(reason.with_remedy(Remedy::NamePlugin));
    }
    None
}

/// Returns the verdict on a plug-in.
pub(super) fn check(file: &Bytes) -> Findings {
    let library = match read(file) {
        Ok(library) => library,
        Err(reason) => return reason.into(),
    };
    let mut findings = Findings::default();
    if let Some(reason) = refusal(&library) {
        return findings.refused(reason);
    }
    for symbol in library.unserved.iter().take(LISTED) {
        findings.warn(Warning::from(messages::symbol_is_not_served(symbol)).at(symbol.clone()));
    }
    findings
}

/// Describes a plug-in by its own data.
pub(super) fn inspect(file: &Bytes, mut inspection: Inspection) -> Result<Inspection, Box<Reason>> {
    let library = read(file)?;
    let details = [
        ("architecture", library.architecture.clone()),
        ("exports", library.exports.join(" ")),
        ("needed", library.needed.join(" ")),
        ("unserved", library.unserved.join(" ")),
    ];
    inspection.details.extend(details.map(|(name, value)| (name.to_owned(), value)));
    Ok(inspection)
}
