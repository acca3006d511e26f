//! Verdicts on files of recognised kinds that are not judged, and on files whose contents
//! contradict their names.

use serdes_files::{ReadAt, read_at::read_up_to};

use super::{
    Findings, Inspection, Kind, Reason, Remedy,
    detect::{self, is_pointer_of_git_lfs, of_judged},
    opened::{Bytes, Located},
    orbax,
    rule::messages,
};

/// Returns the verdict on a file of a kind that is not judged: unreadable.
pub(super) fn check(kind: Kind, file: &Bytes) -> Findings {
    let reason = reason(kind, of_judged(&file.file_name()), &*file.source);
    Findings::default().refused(reason)
}

/// Returns the verdict on a directory of a kind that is not judged: unreadable.
pub(super) fn check_directory(kind: Kind, directory: &Located) -> Findings {
    let reason = match orbax::unfinished(&*directory.tree, &directory.path) {
        Some(why) if kind == Kind::Orbax => {
            Reason::from(messages::checkpoint_is_unfinished(kind.words(), why))
                .with_remedy(Remedy::UseFinishedCheckpoint)
        }
        _ => not_judged(kind),
    };
    Findings::default().refused(reason.with_numbers(kind, EXPECTED))
}

/// Describes a file of a kind that is not judged: its size, and its writer if the beginning records
/// it.
pub(super) fn inspect(kind: Kind, file: &Bytes, mut inspection: Inspection) -> Inspection {
    if let Ok(size) = file.source.size() {
        inspection.details.insert("bytes".to_owned(), size.to_string());
    }
    if kind == Kind::StableHlo
        && let Some(producer) = producer(&*file.source)
    {
        inspection.details.insert("producer".to_owned(), producer);
    }
    inspection
}

/// Returns the reason for a file that should be a SavedModel but is something else; `None` if that
/// is not certain.
pub(super) fn instead_of(kind: Kind, source: &dyn ReadAt) -> Option<Reason> {
    let found = detect::foreign(source).ok().flatten()?;
    Some(reason(found, Some(kind), source))
}

const EXPECTED: &str = "a kind that is judged";

fn reason(kind: Kind, named: Option<Kind>, source: &dyn ReadAt) -> Reason {
    let mut start = [0; 1024];
    let start = read_up_to(source, &mut start, 0).unwrap_or_default();
    let reason = if start.is_empty() {
        Reason::from(messages::file_is_empty(kind.words())).with_remedy(Remedy::FetchOrWriteAgain)
    } else if is_pointer_of_git_lfs(start) {
        Reason::from(messages::pointer_of_git_lfs()).with_remedy(Remedy::FetchFromGitLfs)
    } else if kind == Kind::Text && is_graph_in_text(start) && named.is_none() {
        Reason::from(messages::text_like_a_graph()).with_remedy(Remedy::NameKindOfText)
    } else if let Some(named) = named {
        Reason::from(messages::named_as_another_kind(named.words(), kind.words()))
            .with_remedy(remedy(kind))
    } else {
        not_judged(kind)
    };
    reason.with_numbers(kind, EXPECTED)
}

fn not_judged(kind: Kind) -> Reason {
    Reason::from(messages::kind_is_not_judged(kind.words())).with_remedy(remedy(kind))
}

const fn remedy(kind: Kind) -> Remedy {
    match kind {
        Kind::Html => Remedy::LookAtPage,
        Kind::Gzip | Kind::Zip => Remedy::Unpack,
        Kind::Fingerprint => Remedy::CheckModelOfFingerprint,
        Kind::IfrtMessage => Remedy::NameMessage,
        Kind::Json | Kind::Text => Remedy::CheckThatFileIsMeant,
        _ => Remedy::UseItsOwnProgram,
    }
}

fn is_graph_in_text(start: &[u8]) -> bool {
    let start = start.trim_ascii_start();
    [&b"node"[..], b"versions", b"library"].iter().any(|field| {
        start
            .strip_prefix(*field)
            .is_some_and(|rest| matches!(rest.trim_ascii_start().first(), Some(b'{' | b':' | b'<')))
    })
}

/// Returns the name of the producer in MLIR bytecode.
fn producer(source: &dyn ReadAt) -> Option<String> {
    let mut start = [0; 128];
    let start = read_up_to(source, &mut start, 0).ok()?;
    let at = start.windows(11).position(|name| name == b"StableHLO_v")?;
    let name = start.get(at..)?.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(name).into_owned())
}
