//! Reads a file of graphs for several consumers: once if it is well-formed, otherwise once for each
//! group that reads it in the same way.
//!
//! Decides which consumers can share a reading. Does not depend on the verdicts on the graphs.

use std::rc::Rc;

use serdes_graph_format::schema::ReleaseDialect;
use serdes_graphs::graph::{DeprecatedOperation, Form, Graph, Graphs, Judgement, ReadOptions};
use serdes_operations::Registry;

use super::{
    Consumer, Options, Reason, Remedy, Rule, consumer::ArtifactLine, each::Each, rule::messages,
};

/// The contents of a file for one consumer.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) graphs: Rc<Graphs>,
    /// The index of the consumer's judgement among those of a graph, if its operations are known.
    judgement: Option<usize>,
}

impl Reading {
    /// Returns the judgement of a graph of the file by the consumer's operations.
    pub(super) fn judgement<'g>(&self, graph: &'g Graph) -> Option<&'g Judgement> {
        graph.judgements.get(self.judgement?)
    }
}

/// A file as read by a group of consumers.
struct Shared<'c> {
    form: Form,
    banned: &'c [DeprecatedOperation],
    /// The dialects for which this reading is valid.
    dialects: Vec<ReleaseDialect>,
    registries: Vec<Registry>,
    graphs: Result<Rc<Graphs>, Box<Reason>>,
}

impl<'c> Shared<'c> {
    /// Reads the file for consumers with the same bans; the dialect of `reader` decides.
    fn read(
        form: Form,
        group: &[&'c Consumer],
        reader: &'c Consumer,
        options: &Options,
        read: impl Fn(&ReadOptions<'_>) -> Result<Graphs, Box<Reason>>,
    ) -> Self {
        let mut registries: Vec<Registry> = Vec::new();
        for registry in group.iter().filter_map(|consumer| consumer.registry()) {
            if !registries.contains(registry) {
                registries.push(registry.clone());
            }
        }
        let banned = options.banned(reader);
        let read_options = ReadOptions::default()
            .with_deprecated(&banned)
            .with_release(version_of(reader))
            .with_registries(&registries);
        let graphs = read(&read_options).and_then(whole).map(Rc::new);
        let dialects = match &graphs {
            // Another dialect may accept the file.
            Err(reason) if reason.rule == Rule::Corrupt => vec![dialect_of(form, reader)],
            _ => group.iter().map(|consumer| dialect_of(form, consumer)).collect(),
        };
        Self { form, banned: reader.banned(), dialects, registries, graphs }
    }

    fn is_of(&self, consumer: &Consumer) -> bool {
        self.banned == consumer.banned() && self.dialects.contains(&dialect_of(self.form, consumer))
    }

    fn reading(&self, consumer: &Consumer) -> Result<Reading, Box<Reason>> {
        let graphs = self.graphs.clone()?;
        let own = consumer.registry();
        let judgement = self.registries.iter().position(|registry| Some(registry) == own);
        Ok(Reading { graphs, judgement })
    }
}

/// Refuses a file with more graphs than are kept.
fn whole(graphs: Graphs) -> Result<Graphs, Box<Reason>> {
    if graphs.overflow {
        let reason = Reason::from(messages::too_many_meta_graphs());
        return Err(reason.with_remedy(Remedy::CheckOrigin).into());
    }
    Ok(graphs)
}

fn version_of(consumer: &Consumer) -> i32 {
    consumer.line(ArtifactLine::GraphDef).version
}

fn dialect_of(form: Form, consumer: &Consumer) -> ReleaseDialect {
    match form {
        Form::Binary => ReleaseDialect::binary(version_of(consumer)),
        Form::Text => ReleaseDialect::text(version_of(consumer)),
    }
}

/// Returns true if one reading serves both consumers, if the file is well-formed.
fn may_share(form: Form, one: &Consumer, other: &Consumer) -> bool {
    one.banned() == other.banned() && dialect_of(form, one).has_parser_of(dialect_of(form, other))
}

/// Reads a file for each consumer.
///
/// A parser of the binary form skips unknown fields, so older releases accept whatever a newer one
/// accepts. A parser of the text form refuses them, so newer releases accept whatever an older one
/// with the same parser accepts. So the strictest consumer reads for all, and a file that it
/// refuses is read again for the others.
pub(super) fn read_each(
    consumers: &Each<&Consumer>,
    options: &Options,
    form: Form,
    read: impl Fn(&ReadOptions<'_>) -> Result<Graphs, Box<Reason>>,
) -> Each<Result<Reading, Box<Reason>>> {
    let mut known: Vec<Shared<'_>> = Vec::new();
    let all: Vec<&Consumer> = consumers.iter().copied().collect();
    consumers.map(|consumer| {
        if let Some(shared) = known.iter().find(|shared| shared.is_of(consumer)) {
            return shared.reading(consumer);
        }
        let group: Vec<&Consumer> =
            all.iter().copied().filter(|other| may_share(form, consumer, other)).collect();
        let strictest = match form {
            Form::Binary => group.iter().copied().max_by_key(|one| version_of(one)),
            Form::Text => group.iter().copied().min_by_key(|one| version_of(one)),
        };
        let strictest = strictest.unwrap_or(consumer);
        let was_tried = known.iter().any(|shared| shared.is_of(strictest));
        if !was_tried {
            let shared = Shared::read(form, &group, strictest, options, &read);
            let found = shared.is_of(consumer).then(|| shared.reading(consumer));
            known.push(shared);
            if let Some(reading) = found {
                return reading;
            }
        }
        let alike = |other: &&Consumer| dialect_of(form, other) == dialect_of(form, consumer);
        let group: Vec<&Consumer> = group.into_iter().filter(alike).collect();
        let shared = Shared::read(form, &group, consumer, options, &read);
        let reading = shared.reading(consumer);
        known.push(shared);
        reading
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serdes_graphs::graph::{self, Message};

    use super::*;
    use crate::graph::reason;

    /// Returns the number of times that a file is read for all releases, and for each release
    /// whether it accepts the file.
    fn readings(form: Form, bytes: &[u8]) -> (usize, Vec<bool>) {
        let consumers = Consumer::releases("all").unwrap();
        let each = Each::of(&consumers).unwrap();
        let count = Cell::new(0);
        let readings = read_each(&each, &Options::default(), form, |options| {
            count.set(count.get() + 1);
            graph::read(bytes, Message::GraphDef, form, options)
                .map_err(|error| Box::new(reason(&error)))
        });
        (count.get(), readings.iter().map(Result::is_ok).collect())
    }

    #[test]
    fn file_is_read_once_in_binary_and_once_per_text_parser() {
        assert_eq!(readings(Form::Binary, &[0x22, 2, 0x08, 7]), (1, vec![true; 10]));
        assert_eq!(readings(Form::Text, b"versions { producer: 7 }"), (2, vec![true; 10]));
    }

    #[test]
    fn file_refused_by_the_strictest_is_read_once_per_dialect() {
        assert_eq!(readings(Form::Binary, &[0x07]), (3, vec![false; 10]));
        // debug_info, which 2.12 skips and all other releases read.
        let (count, taken) = readings(Form::Binary, &[0x2a, 1, 0x07]);
        assert_eq!((count, taken), (3, [&[true][..], &[false; 9]].concat()));
        // A type by its name, which exists since 2.15.
        let int4 = br#"node { name: "a" op: "Placeholder" attr { key: "dtype" value { type: DT_INT4 } } }"#;
        let (count, taken) = readings(Form::Text, int4);
        assert_eq!((count, taken), (5, [&[false; 3][..], &[true; 7]].concat()));
    }
}
