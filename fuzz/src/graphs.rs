//! Targets over graphs in both forms, and over artifacts of every kind through the common entry.

use serdes_check::{self as check, Kind, Options};
use serdes_graphs::graph::{self, Form, Message, ReadOptions};

/// Reads a graph. The first byte chooses message and form, the rest is the file. The scan must
/// accept all that the whole check accepts, with the same versions.
pub fn graphs(data: &[u8]) {
    let Some((choice, file)) = data.split_first() else { return };
    let message = match choice % 3 {
        0 => Message::GraphDef,
        1 => Message::MetaGraphDef,
        _ => Message::SavedModel,
    };
    let form = if choice & 0x80 == 0 { Form::Binary } else { Form::Text };
    let Ok(whole) = graph::read(file, message, form, &ReadOptions::default()) else { return };
    let scanned = graph::versions(file, message, form).expect("the scan checks less");
    for (whole, scanned) in whole.meta_graphs.iter().zip(&scanned.meta_graphs) {
        assert_eq!(whole.graph.versions, scanned.graph.versions);
        assert_eq!(whole.tags, scanned.tags);
    }
}

/// Checks an artifact. The first byte chooses the kind, or its detection from the content; the rest
/// is the file.
pub fn artifacts(data: &[u8]) {
    let Some((choice, file)) = data.split_first() else { return };
    let options =
        Options::default().with_verify_data(true).with_threads(1).with_strict(choice & 0x80 != 0);
    let kind = Kind::ALL.get(usize::from(choice & 0x7f)).copied();
    let artifact = check::reader(file, kind).expect("memory can be read");
    let verdict = artifact.check(&options).expect("the work is not stopped");
    assert_eq!(verdict.is_acceptable(), verdict.reasons().is_empty());
    let _ = artifact.inspect();
}
