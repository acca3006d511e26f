//! What is said of files that are recognised and not judged, and of those that hold something else than their name says.

use super::artifact::{Artifact, Place};
use super::detect::{self, is_pointer_of_git_lfs, of_judged, read_up_to};
use super::{Inspection, Kind, Reason, Rule, Verdict};
use crate::artifact::ReadAt;

/// The verdict on an artifact of a kind that is not judged: nobody can tell.
pub(super) fn check(artifact: &Artifact, verdict: &mut Verdict) {
    verdict.refuse(match &artifact.place {
        Place::Source(source) => {
            let named = artifact.path.as_deref().and_then(|path| path.file_name());
            let named = named.and_then(|name| of_judged(&name.to_string_lossy()));
            reason(artifact.kind, named, source)
        }
        Place::Directory(_) | Place::Prefix(_) => {
            Reason::new(Rule::OtherKind, not_judged(artifact.kind), remedy(artifact.kind))
                .with_numbers(artifact.kind, EXPECTED)
        }
    });
}

/// What is in an artifact of a kind that is not judged: its kind, its size, and who wrote it where that stands at its beginning.
pub(super) fn inspect(artifact: &Artifact) -> Inspection {
    let mut inspection = Inspection::new(artifact.label.clone(), artifact.kind);
    if let Place::Source(source) = &artifact.place {
        if let Ok(size) = source.size() {
            inspection.details.insert("bytes".to_owned(), size.to_string());
        }
        if artifact.kind == Kind::StableHlo
            && let Some(producer) = producer(source)
        {
            inspection.details.insert("producer".to_owned(), producer);
        }
    }
    inspection
}

/// The reason for a file that was to be a SavedModel, and is something else; `None` if nothing shows that.
pub(super) fn instead_of(kind: Kind, source: &dyn ReadAt) -> Option<Reason> {
    let found = detect::foreign(source).ok().flatten()?;
    Some(reason(found, Some(kind), source))
}

const EXPECTED: &str = "a kind that is judged";

fn reason(kind: Kind, named: Option<Kind>, source: &dyn ReadAt) -> Reason {
    let mut start = [0; 1024];
    let start = read_up_to(source, &mut start, 0).unwrap_or_default();
    let (found, remedy) = if start.is_empty() {
        let found = format!("the file is empty; by its name it would be {}", kind.words());
        (found, "fetch or write the file again")
    } else if is_pointer_of_git_lfs(start) {
        let found = "the file is a pointer of git-lfs, and what it points to was not fetched";
        (found.to_owned(), "fetch it with `git lfs pull`, and check that")
    } else if kind == Kind::Text && is_graph_in_text(start) && named.is_none() {
        let found = "the file is a text that begins like a graph in text form";
        (found.to_owned(), "name it .pbtxt, or name its kind: graph_def_text")
    } else if let Some(named) = named {
        let found = format!("the file is named as {}, and holds {}", named.words(), kind.words());
        (found, remedy(kind))
    } else {
        (not_judged(kind), remedy(kind))
    };
    Reason::new(Rule::OtherKind, found, remedy).with_numbers(kind, EXPECTED)
}

fn not_judged(kind: Kind) -> String {
    format!("this is {}, which is recognised and not judged", kind.words())
}

const fn remedy(kind: Kind) -> &'static str {
    match kind {
        Kind::Html => "look at the page: it may ask to log in; then fetch the file itself",
        Kind::Gzip | Kind::Zip => "unpack it, and check what is in it",
        Kind::Fingerprint => "check the directory of the SavedModel that it belongs to",
        Kind::Json | Kind::Text => {
            "check that it is the file that was meant; a page or a message may have been saved in its place"
        }
        _ => "check it with the program that it was made for",
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

/// The name that MLIR bytecode records of who wrote it.
fn producer(source: &dyn ReadAt) -> Option<String> {
    let mut start = [0; 128];
    let start = read_up_to(source, &mut start, 0).ok()?;
    let at = start.windows(11).position(|name| name == b"StableHLO_v")?;
    let name = start.get(at..)?.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(name).into_owned())
}
