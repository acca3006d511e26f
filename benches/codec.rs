//! Encoding and decoding of values, beside peers in the same run: raw prost messages of the same
//! schema (without the checks that this library adds), quick-protobuf and buffa. After each case
//! prints this library's time divided by each peer's.
//!
//! `cargo bench --features unstable-bench --bench codec`

mod peers;

use std::{cell::RefCell, collections::BTreeMap, hint::black_box, time::Instant};

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use peers::{buffa_messages as buffa_peer, quick_messages as quick_peer};
use prost::Message as _;
use quick_protobuf::{BytesReader, MessageRead, MessageWrite, Writer};
use serdes::{
    codec::{DeserializeOptions, FromProto, ToProto, unstable_bench::use_vector_instructions},
    ifrt::{
        AnyDevice, ArraySpec, AttributeMap, AttributeValue, DType, DeviceId, HloSharding, Interval,
        MemoryKind, RemapPlan, Shape, with_devices,
        xla::{OpSharding, TileAssignment},
    },
    proto::xla::ifrt as prost_peer,
    version::SerDesVersion,
};

/// The best time of each subject of a case, in nanoseconds per run.
#[derive(Default)]
struct Case(RefCell<BTreeMap<&'static str, f64>>);

impl Case {
    fn run(
        &self,
        criterion: &mut Criterion,
        case: &str,
        subject: &'static str,
        mut once: impl FnMut(),
    ) {
        criterion.bench_function(&format!("{case}/{subject}"), |bencher| {
            bencher.iter_custom(|iterations| {
                let start = Instant::now();
                for _ in 0..iterations {
                    once();
                }
                let elapsed = start.elapsed();
                let each = elapsed.as_secs_f64() * 1e9 / iterations as f64;
                let mut times = self.0.borrow_mut();
                let best = times.entry(subject).or_insert(f64::INFINITY);
                *best = best.min(each);
                elapsed
            });
        });
    }

    fn print(&self, case: &str) {
        let times = self.0.borrow();
        for (ours, time) in times.iter().filter(|(subject, _)| subject.starts_with("serdes")) {
            for (peer, theirs) in times.iter().filter(|(subject, _)| !subject.starts_with("serdes"))
            {
                println!(
                    "ratio {case}: {ours} / {peer} = {:.2}  ({time:.0} ns / {theirs:.0} ns)",
                    time / theirs
                );
            }
        }
    }
}

fn version() -> SerDesVersion {
    SerDesVersion::current()
}

fn quick_bytes(message: &impl MessageWrite) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(message.get_size());
    message.write_message(&mut Writer::new(&mut bytes)).unwrap();
    bytes
}

fn quick_read<'a, M: MessageRead<'a>>(bytes: &'a [u8]) -> M {
    M::from_reader(&mut BytesReader::from_bytes(bytes), bytes).unwrap()
}

fn spec_over(devices: i32) -> ArraySpec {
    let count = i64::from(devices);
    let tiles = OpSharding::tiled(TileAssignment::iota([count, 1], [count], [0]).unwrap());
    let devices = (0..devices).map(DeviceId).collect();
    let sharding = HloSharding::new(devices, MemoryKind::new("device"), tiles).unwrap();
    ArraySpec::new(DType::F32, Shape::new([count, 128]).unwrap(), sharding)
}

/// Encodes a sharding into the message of an array spec, as a user of raw messages must, and
/// decodes it again.
fn array_specs(criterion: &mut Criterion) {
    let options = with_devices(AnyDevice);
    for devices in [8, 256, 4096] {
        let name = format!("array_spec/{devices}");
        let case = Case::default();
        let spec = spec_over(devices);
        let bytes = spec.to_bytes(version()).unwrap();
        for (subject, vector) in [("serdes scalar", false), ("serdes vector", true)] {
            use_vector_instructions(vector);
            case.run(criterion, &name, subject, || {
                let bytes = black_box(&spec).to_bytes(version()).unwrap();
                black_box(ArraySpec::from_bytes(bytes, &options).unwrap());
            });
        }

        let mut outer = prost_peer::ArraySpecProto::decode(bytes.clone()).unwrap();
        let data =
            outer.sharding.as_ref().unwrap().serialized_sharding.as_ref().unwrap().data.clone();
        let inner = prost_peer::HloShardingProto::decode(data.clone()).unwrap();
        case.run(criterion, &name, "prost", || {
            let serialized = outer.sharding.as_mut().unwrap().serialized_sharding.as_mut().unwrap();
            serialized.data = black_box(&inner).encode_to_vec().into();
            let bytes = Bytes::from(black_box(&outer).encode_to_vec());
            let outer = prost_peer::ArraySpecProto::decode(bytes).unwrap();
            let sharding = outer.sharding.as_ref().unwrap().serialized_sharding.as_ref().unwrap();
            let inner = prost_peer::HloShardingProto::decode(sharding.data.clone()).unwrap();
            black_box((outer, inner));
        });

        let mut outer: quick_peer::ArraySpecProto<'_> = quick_read(&bytes);
        let inner: quick_peer::HloShardingProto<'_> = quick_read(&data);
        case.run(criterion, &name, "quick-protobuf", || {
            let serialized = outer.sharding.as_mut().unwrap().serialized_sharding.as_mut().unwrap();
            serialized.data = quick_bytes(black_box(&inner)).into();
            let bytes = quick_bytes(black_box(&outer));
            let outer: quick_peer::ArraySpecProto<'_> = quick_read(&bytes);
            let sharding = outer.sharding.as_ref().unwrap().serialized_sharding.as_ref().unwrap();
            let inner: quick_peer::HloShardingProto<'_> = quick_read(&sharding.data);
            black_box((&outer, inner));
        });

        use buffa::Message as _;
        let mut outer = buffa_peer::ArraySpecProto::decode_from_slice(&bytes).unwrap();
        let inner = buffa_peer::HloShardingProto::decode_from_slice(&data).unwrap();
        case.run(criterion, &name, "buffa", || {
            let serialized = &mut outer.sharding.get_or_insert_default().serialized_sharding;
            serialized.get_or_insert_default().data = black_box(&inner).encode_to_vec();
            let bytes = black_box(&outer).encode_to_vec();
            let outer = buffa_peer::ArraySpecProto::decode_from_slice(&bytes).unwrap();
            let data = &outer.sharding.serialized_sharding.data;
            let inner = buffa_peer::HloShardingProto::decode_from_slice(data).unwrap();
            black_box((outer, inner));
        });
        case.print(&name);
    }
}

fn remap_plans(criterion: &mut Criterion) {
    let options = with_devices(AnyDevice);
    let specs = || vec![spec_over(8); 4];
    let mut plan = RemapPlan::new(specs(), specs());
    for mapping in 0..1000_i64 {
        let intervals = [
            Interval::new(mapping, mapping + 2, 1),
            Interval::new(mapping + 300, mapping + 304, 2),
        ];
        let (input, output) = ((mapping % 4) as i32, (mapping % 3) as i32);
        plan = plan.with_mapping(input, output, &intervals, &intervals).unwrap();
    }
    // The last version in which plans are mappings.
    let version = serdes::version::SerDesAnyVersionAccessor::get(5).unwrap();
    let bytes = plan.to_bytes(version).unwrap();

    let name = "remap_plan/1000/decode";
    let case = Case::default();
    case.run(criterion, name, "serdes", || {
        black_box(RemapPlan::from_bytes(black_box(bytes.clone()), &options).unwrap());
    });
    case.run(criterion, name, "prost", || {
        black_box(prost_peer::RemapPlanProto::decode(black_box(bytes.clone())).unwrap());
    });
    case.run(criterion, name, "quick-protobuf", || {
        black_box(quick_read::<quick_peer::RemapPlanProto<'_>>(black_box(&bytes)));
    });
    case.run(criterion, name, "buffa", || {
        use buffa::Message as _;
        black_box(buffa_peer::RemapPlanProto::decode_from_slice(black_box(&bytes)).unwrap());
    });
    case.print(name);

    let name = "remap_plan/1000/encode";
    let case = Case::default();
    case.run(criterion, name, "serdes", || {
        black_box(black_box(&plan).to_bytes(version).unwrap());
    });
    let message = prost_peer::RemapPlanProto::decode(bytes.clone()).unwrap();
    case.run(criterion, name, "prost", || {
        black_box(black_box(&message).encode_to_vec());
    });
    let message: quick_peer::RemapPlanProto<'_> = quick_read(&bytes);
    case.run(criterion, name, "quick-protobuf", || {
        black_box(quick_bytes(black_box(&message)));
    });
    use buffa::Message as _;
    let message = buffa_peer::RemapPlanProto::decode_from_slice(&bytes).unwrap();
    case.run(criterion, name, "buffa", || {
        black_box(black_box(&message).encode_to_vec());
    });
    case.print(name);
}

fn attribute_maps(criterion: &mut Criterion) {
    let map: AttributeMap = (0..100_i64)
        .map(|index| {
            let value = match index % 4 {
                0 => AttributeValue::from(index),
                1 => AttributeValue::Bool(index % 8 == 1),
                2 => AttributeValue::from(vec![index, -index, 1]),
                _ => AttributeValue::from(format!("value of {index}").into_bytes()),
            };
            (format!("attribute_{index}"), value)
        })
        .collect();
    let bytes = map.to_bytes(version()).unwrap();
    let options = DeserializeOptions::new();
    let name = "attribute_map/100";
    let case = Case::default();
    case.run(criterion, name, "serdes", || {
        let bytes = black_box(&map).to_bytes(version()).unwrap();
        black_box(AttributeMap::from_bytes(bytes, &options).unwrap());
    });
    let message = prost_peer::AttributeMapProto::decode(bytes.clone()).unwrap();
    case.run(criterion, name, "prost", || {
        let bytes = Bytes::from(black_box(&message).encode_to_vec());
        black_box(prost_peer::AttributeMapProto::decode(bytes).unwrap());
    });
    let message: quick_peer::AttributeMapProto<'_> = quick_read(&bytes);
    case.run(criterion, name, "quick-protobuf", || {
        let bytes = quick_bytes(black_box(&message));
        black_box(quick_read::<quick_peer::AttributeMapProto<'_>>(&bytes));
    });
    use buffa::Message as _;
    let message = buffa_peer::AttributeMapProto::decode_from_slice(&bytes).unwrap();
    case.run(criterion, name, "buffa", || {
        let bytes = black_box(&message).encode_to_vec();
        black_box(buffa_peer::AttributeMapProto::decode_from_slice(&bytes).unwrap());
    });
    case.print(name);
}

criterion_group!(benches, array_specs, remap_plans, attribute_maps);
criterion_main!(benches);
