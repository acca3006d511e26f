//! Graphs: the scan for versions and the whole check, beside a full decode by prost in the same
//! run; and the cost of checking the operations of releases for each form of graph: the time
//! relative to a check without them, and the peak memory.
//!
//! Prints two ratios: how much faster the scan is than the decode, and which part of the decode's
//! time the check takes.

use std::{
    hint::black_box,
    io::Write,
    time::{Duration, Instant},
};

use criterion::{Criterion, criterion_group, criterion_main};
use peak_alloc::PeakAlloc;
use prost::Message as _;
use serdes_graphs::graph::{self, Form, Message, ReadOptions};
use serdes_operations::Registry;

mod graphs;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The messages and fields that these graphs use. A full schema would only make the decode slower.
mod peer {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct GraphDef {
        #[prost(message, repeated, tag = "1")]
        pub(crate) node: Vec<NodeDef>,
        #[prost(message, optional, tag = "4")]
        pub(crate) versions: Option<VersionDef>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct NodeDef {
        #[prost(string, tag = "1")]
        pub(crate) name: String,
        #[prost(string, tag = "2")]
        pub(crate) op: String,
        #[prost(string, repeated, tag = "3")]
        pub(crate) input: Vec<String>,
        #[prost(string, tag = "4")]
        pub(crate) device: String,
        #[prost(map = "string, message", tag = "5")]
        pub(crate) attr: std::collections::HashMap<String, AttrValue>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct AttrValue {
        #[prost(bytes = "vec", tag = "2")]
        pub(crate) s: Vec<u8>,
        #[prost(int32, tag = "6")]
        pub(crate) data_type: i32,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct VersionDef {
        #[prost(int32, tag = "1")]
        pub(crate) producer: i32,
        #[prost(int32, tag = "2")]
        pub(crate) min_consumer: i32,
        #[prost(int32, repeated, tag = "3")]
        pub(crate) bad_consumers: Vec<i32>,
    }
}

/// Returns a chain of `nodes` nodes, each with a payload of `payload` bytes.
fn graph(nodes: usize, payload: usize) -> Vec<u8> {
    let node = |number: usize| {
        let (op, key) = if number == 0 { ("Placeholder", "dtype") } else { ("Identity", "T") };
        let mut attr = std::collections::HashMap::new();
        attr.insert(key.to_owned(), peer::AttrValue { s: vec![7; payload], data_type: 1 });
        peer::NodeDef {
            name: format!("n{number}"),
            op: op.to_owned(),
            input: number.checked_sub(1).map(|before| format!("n{before}")).into_iter().collect(),
            device: String::new(),
            attr,
        }
    };
    let mut bytes = Vec::new();
    for number in 0..nodes {
        let part = peer::GraphDef { node: vec![node(number)], versions: None };
        part.encode(&mut bytes).expect("memory grows");
    }
    let versions = peer::VersionDef { producer: 2474, ..Default::default() };
    let part = peer::GraphDef { node: Vec::new(), versions: Some(versions) };
    part.encode(&mut bytes).expect("memory grows");
    bytes
}

/// Returns the shortest time of a few runs.
fn best<T>(runs: usize, mut work: impl FnMut() -> T) -> Duration {
    let run = |_| {
        let start = Instant::now();
        black_box(work());
        start.elapsed()
    };
    (0..runs).map(run).min().unwrap_or_default()
}

/// Returns the operations of every release.
fn releases() -> Vec<Registry> {
    Registry::releases()
        .map(|release| Registry::tensorflow(release).expect("a release that is built in"))
        .collect()
}

/// Prints the cost of checking the operations of one release and of ten, for each form of graph.
fn forms(_criterion: &mut Criterion) {
    const NODES: usize = 1_000_000;

    let registries = releases();
    for graph in graphs::forms(NODES) {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(&graph.bytes).expect("room for it");
        drop(graph.bytes);
        let (mut row, mut without) = (String::new(), None);
        for registries in [&[], &registries[..1], &registries] {
            let options = ReadOptions::default().with_registries(registries);
            let check =
                || graph::read(&file, graph.message, Form::Binary, &options).expect("a graph");
            let before = MEMORY.current_usage();
            MEMORY.reset_peak_usage();
            let time = best(3, check).as_secs_f64();
            let memory = MEMORY.peak_usage().saturating_sub(before) as f64 / f64::from(1 << 20);
            let ratio = time / *without.get_or_insert(time);
            let (releases, time) = (registries.len(), time * 1e3);
            row += &format!("; {releases} releases {time:.0} ms ({ratio:.2}), {memory:.1} MiB");
        }
        println!("{}{row}", graph.name);
    }
}

fn graphs(criterion: &mut Criterion) {
    let registries = releases();
    for (name, nodes, payload) in [("1e6 nodes", 1_000_000, 0), ("51 nodes of 4 MiB", 51, 4 << 20)]
    {
        let bytes = graph(nodes, payload);
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(&bytes).expect("room for it");
        let scan = || graph::versions(&file, Message::GraphDef, Form::Binary).expect("a graph");
        let check = || {
            graph::read(&file, Message::GraphDef, Form::Binary, &ReadOptions::default())
                .expect("a graph")
        };
        let decode = || peer::GraphDef::decode(bytes.as_slice()).expect("a graph");
        let (scanned, checked, decoded) = (best(5, scan), best(5, check), best(5, decode));
        println!(
            "{name}, {} bytes: versions {scanned:?} ({:.0} times as fast as prost's decode), check {checked:?} ({:.2} of its time)",
            bytes.len(),
            decoded.as_secs_f64() / scanned.as_secs_f64(),
            checked.as_secs_f64() / decoded.as_secs_f64(),
        );
        let judge = |registries: &[Registry]| {
            let options = ReadOptions::default().with_registries(registries);
            graph::read(&file, Message::GraphDef, Form::Binary, &options).expect("a graph")
        };
        for registries in [&registries[..1], &registries] {
            let judged = best(5, || judge(registries));
            println!(
                "{name}: check for the operations of {} releases {judged:?} ({:.2} times the check without)",
                registries.len(),
                judged.as_secs_f64() / checked.as_secs_f64(),
            );
        }
        let mut group = criterion.benchmark_group(format!("graph of {name}"));
        group.sample_size(10);
        group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
        group.bench_function("versions", |bencher| bencher.iter(scan));
        group.bench_function("check", |bencher| bencher.iter(check));
        group.bench_function("check for one release", |bencher| {
            bencher.iter(|| judge(&registries[..1]));
        });
        group.bench_function("check for ten releases", |bencher| {
            bencher.iter(|| judge(&registries));
        });
        group.bench_function("prost decode", |bencher| bencher.iter(decode));
        group.finish();
    }
}

criterion_group!(benches, forms, graphs);
criterion_main!(benches);
