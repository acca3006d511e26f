//! Verdicts on what jaxlib loads: files of `jax.export` and portable artifacts of StableHLO.
//!
//! Converts the reader's findings to reasons. Does not depend on the rules of a release.

use serdes_jax_artifacts::{self as artifacts, Artifact, Judgement};

use super::{
    Consumer, Findings, Inspection, JaxSummary, Options, Reason, Remedy, Rule, Warning, each::Each,
    opened::Bytes,
};

/// Limit on the length of a file that is read, in bytes: offsets in a flatbuffer have 31 bits.
const LARGEST: u64 = 2 << 30;

const fn rule(rule: artifacts::Rule) -> Rule {
    match rule {
        artifacts::Rule::TooNew => Rule::TooNew,
        artifacts::Rule::TooOld => Rule::TooOld,
        artifacts::Rule::UnknownOp => Rule::UnknownOp,
        artifacts::Rule::MissingType => Rule::MissingType,
        artifacts::Rule::Corrupt => Rule::Corrupt,
        artifacts::Rule::NotCallable => Rule::NotCallable,
        artifacts::Rule::CallCrashes => Rule::CallCrashes,
        artifacts::Rule::DerivativeRefused => Rule::DerivativeRefused,
        artifacts::Rule::CustomCall => Rule::CustomCall,
        artifacts::Rule::Expires => Rule::Expires,
        // `ReleaseRefuses`, and rules that may be added.
        _ => Rule::ReleaseRefuses,
    }
}

/// Returns a reason with the reader's message.
pub(super) fn reason(found: artifacts::Reason) -> Reason {
    let place = Some(found.place.as_str()).filter(|place| !place.is_empty());
    Reason::new(rule(found.rule), found.message)
        .with_remedy(Remedy::Jax(found.remedy))
        .with_numbers(found.found, found.expected)
        .at_any(place)
}

fn findings(judgement: Judgement) -> Findings {
    let mut findings = Findings::default();
    judgement.reasons.into_iter().for_each(|found| findings.refuse(reason(found)));
    for found in judgement.warnings {
        findings.warn(Warning::new(rule(found.rule), found.message));
    }
    findings
}

/// Returns the verdict for each consumer, by its jaxlib; the file is read once.
pub(super) fn check(
    file: &Bytes,
    form: artifacts::Kind,
    consumers: &Each<&Consumer>,
    options: &Options,
) -> Each<Findings> {
    let bytes = match file.whole(LARGEST) {
        Ok(bytes) => bytes,
        Err(reason) => return consumers.map(|_| reason.clone().into()),
    };
    let artifact = Artifact::with_kind(form, &bytes);
    consumers.map(|consumer| findings(artifact.judge(consumer.reader_of_jax(), options.jax())))
}

/// Describes the contents of the file.
pub(super) fn inspect(
    file: &Bytes,
    form: artifacts::Kind,
    mut inspection: Inspection,
) -> Result<Inspection, Box<Reason>> {
    let bytes = file.whole(LARGEST)?;
    let found = Artifact::with_kind(form, &bytes).inspect(&artifacts::Options::new());
    if found.export.is_none() && form == artifacts::Kind::JaxExport {
        let newest = Consumer::newest();
        let each = check(file, form, &Each::one(&newest), &Options::default());
        if let Some(reason) = each.first.reasons().first() {
            return Err(Box::new(reason.clone()));
        }
    }
    inspection.details.insert("bytes".to_owned(), found.bytes.to_string());
    inspection.operations.clone_from(&found.module.operations);
    inspection.jax = Some(JaxSummary::of(found));
    Ok(inspection)
}
