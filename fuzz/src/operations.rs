//! Targets over graphs that are judged by the operations of releases.

use std::sync::OnceLock;

use serdes_graphs::graph::{self, Form, Graphs, Judgement, Loader, Message, ReadOptions};
use serdes_operations::Registry;

use super::protobuf::{Dice, changed};

fn registries() -> &'static [Registry] {
    static REGISTRIES: OnceLock<Vec<Registry>> = OnceLock::new();
    REGISTRIES.get_or_init(|| {
        Registry::releases().filter_map(|release| Registry::tensorflow(release).ok()).collect()
    })
}

fn read(file: &[u8], choice: u8, registries: &[Registry]) -> Option<Graphs> {
    let message = match choice % 3 {
        0 => Message::GraphDef,
        1 => Message::SavedModel,
        _ => Message::MetaGraphDef,
    };
    let form = if choice & 0x80 == 0 { Form::Binary } else { Form::Text };
    let options = ReadOptions::default().with_registries(registries);
    graph::read(file, message, form, &options).ok()
}

/// Returns the parts of a judgement that can be compared.
fn said(judgement: &Judgement) -> String {
    let diagnostics: Vec<_> =
        Loader::ALL.iter().map(|loader| judgement.diagnostic(*loader)).collect();
    format!("{diagnostics:?} {:?}", judgement.ignored)
}

/// Judges operations. The first byte chooses the message, its form and a release; the rest is the
/// file. A judgement for all releases must equal that for each alone, and must not change the rest
/// of the verdict.
pub fn operations(data: &[u8]) {
    let Some((choice, file)) = data.split_first() else { return };
    let Some(all) = read(file, *choice, registries()) else { return };
    let plain = read(file, *choice, &[]).expect("what is asked does not decide what can be read");
    let alone = usize::from(choice / 3) % registries().len();
    let one = read(file, *choice, &registries()[alone..=alone]).expect("as above");
    for ((all, plain), one) in all.meta_graphs.iter().zip(&plain.meta_graphs).zip(&one.meta_graphs)
    {
        assert_eq!(all.graph.versions, plain.graph.versions);
        assert_eq!(all.graph.structure, plain.graph.structure);
        assert_eq!(all.graph.deprecated_nodes, plain.graph.deprecated_nodes);
        assert!(plain.graph.judgements.is_empty());
        assert_eq!(all.graph.judgements.len(), registries().len());
        assert_eq!(one.graph.judgements.len(), 1);
        assert_eq!(said(&all.graph.judgements[alone]), said(&one.graph.judgements[0]));
    }
}

/// Returns a changed input that is still a message, if it was one. The first byte is kept.
pub fn changed_operations(data: &[u8], seed: u64) -> Vec<u8> {
    let Some((choice, file)) = data.split_first() else { return Vec::new() };
    let mut out = vec![*choice];
    out.extend(changed(file, &mut Dice(seed)));
    out
}
