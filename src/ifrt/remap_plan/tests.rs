use proptest::prelude::*;
use prost::Message as _;

use super::*;
use crate::{
    codec::{DeserializeOptions, ErrorKind, FromProto, StatusCode, ToProto, Validation},
    ifrt::{
        AnyDevice, ConcreteEvenSharding, DType, DeviceId, HloSharding, MemoryKind, OpaqueSharding,
        PjRtLayout, Shape,
        testing::{version, versions},
        with_devices,
        xla::{OpSharding, TileAssignment},
    },
    proto::xla::ifrt::{RemapPlanProto, remap_plan_proto::MappingProto},
    version::SerDesVersion,
};

fn options() -> DeserializeOptions {
    with_devices(AnyDevice)
}

fn strict() -> DeserializeOptions {
    options().with_validation(Validation::Strict)
}

/// Returns an array with two elements per device.
fn array(dtype: DType, memory_kind: &str, devices: &[i32]) -> ArraySpec {
    let count = devices.len() as i64;
    let tiles = OpSharding::tiled(TileAssignment::iota([count], [count], [0]).unwrap());
    let devices = devices.iter().copied().map(DeviceId).collect();
    let sharding = HloSharding::new(devices, MemoryKind::new(memory_kind), tiles).unwrap();
    ArraySpec::new(dtype, Shape::new([2 * count]).unwrap(), sharding)
}

fn spec(devices: &[i32]) -> ArraySpec {
    array(DType::F32, "device", devices)
}

fn interval(start: i64, end: i64, step: i64) -> Interval {
    Interval::new(start, end, step)
}

fn plan(
    inputs: &[&[i32]],
    outputs: &[&[i32]],
    mappings: &[(i32, i32, &[Interval], &[Interval])],
) -> RemapPlan {
    let specs = |lists: &[&[i32]]| lists.iter().map(|devices| spec(devices)).collect::<Vec<_>>();
    let plan = RemapPlan::new(specs(inputs), specs(outputs));
    mappings.iter().fold(plan, |plan, (input, output, from, to)| {
        plan.with_mapping(*input, *output, from, to).unwrap()
    })
}

/// Returns a plan that turns two arrays on devices 0..2 and 2..4 into one on 0..4.
fn two_to_one() -> RemapPlan {
    plan(
        &[&[0, 1], &[2, 3]],
        &[&[0, 1, 2, 3]],
        &[
            (0, 0, &[interval(0, 2, 1)], &[interval(0, 2, 1)]),
            (1, 0, &[interval(0, 2, 1)], &[interval(2, 4, 1)]),
        ],
    )
}

/// Returns a plan that splits an array into one on its even and one on its odd devices.
fn one_to_two() -> RemapPlan {
    plan(
        &[&[0, 1, 2, 3]],
        &[&[0, 2], &[1, 3]],
        &[
            (0, 0, &[interval(0, 4, 2)], &[interval(0, 2, 1)]),
            (0, 1, &[interval(1, 5, 2)], &[interval(0, 2, 1)]),
        ],
    )
}

fn refused(plan: &RemapPlan, parts: &[&str]) {
    let error = plan.validate().unwrap_err();
    assert_eq!(error.code(), StatusCode::InvalidArgument);
    let text = error.to_string();
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
}

#[test]
fn a_plan_without_arrays_or_without_shards_is_refused() {
    refused(&RemapPlan::new([], [spec(&[0])]), &["no input"]);
    refused(&RemapPlan::new([spec(&[0])], []), &["no output"]);
    refused(&plan(&[&[0]], &[&[0]], &[]), &["neither mappings nor input devices"]);
}

#[test]
fn an_array_that_is_not_there_is_named_with_the_limit() {
    let whole: &[Interval] = &[interval(0, 1, 1)];
    refused(
        &plan(&[&[0]], &[&[0]], &[(1, 0, whole, whole)]),
        &["mappings[0]", "in_array is 1", "0 to 0"],
    );
    refused(&plan(&[&[0]], &[&[0]], &[(0, -1, whole, whole)]), &["out_array is -1"]);
    let error = RemapPlan::default().with_mapping(0, 0, whole, &[]).unwrap_err();
    assert!(error.to_string().contains("found 1 intervals of the input; expected 0"), "{error}");
}

#[test]
fn arrays_that_differ_in_kind_are_refused_naming_both_sides() {
    let whole = [interval(0, 2, 1)];
    let pair = |output: ArraySpec| {
        RemapPlan::new([spec(&[0, 1])], [output]).with_mapping(0, 0, &whole, &whole).unwrap()
    };
    refused(&pair(array(DType::S32, "device", &[0, 1])), &["element type", "F32", "S32"]);
    refused(&pair(array(DType::F32, "host", &[0, 1])), &["memory kind", "device", "host"]);
    let layout: PjRtLayout = "{0:T(8)}".parse().unwrap();
    refused(&pair(spec(&[0, 1]).with_layout(layout.clone())), &["layout", "(default)", "{0:T(8)}"]);
    let larger =
        ArraySpec::new(DType::F32, Shape::new([8]).unwrap(), spec(&[0, 1]).sharding().clone());
    refused(&pair(larger), &["shard 0 of input 0", "[2]", "[4]"]);
    let same = RemapPlan::new(
        [spec(&[0, 1]).with_layout(layout.clone())],
        [spec(&[0, 1]).with_layout(layout)],
    );
    assert_eq!(same.with_mapping(0, 0, &whole, &whole).unwrap().validate(), Ok(()));
    let opaque = OpaqueSharding::new(DeviceList::from([0, 1]), MemoryKind::new("device"));
    assert!(pair(ArraySpec::new(DType::F32, Shape::new([4]).unwrap(), opaque)).validate().is_err());
}

#[test]
fn an_interval_outside_of_the_array_is_refused() {
    let whole = interval(0, 2, 1);
    for (from, part) in [
        (interval(-1, 2, 1), "start of [-1:2:1] is -1"),
        (interval(3, 3, 1), "start of [3:3:1] is 3"),
        (interval(0, 2, 0), "step of [0:2:0] is 0"),
        (interval(0, 2, -1), "step of"),
        (interval(0, 3, 1), "end of [0:3:1] is 3"),
        (interval(0, -1, 1), "end of"),
        (interval(0, i64::MAX, 1), "end of"),
        (interval(2, 3, 2), "last shard of [2:3:2] is 2"),
        (interval(0, 1, 1), "takes 1 shards by [0:1:1] and fills 2"),
    ] {
        refused(&plan(&[&[0, 1]], &[&[0, 1]], &[(0, 0, &[from], &[whole])]), &[part]);
    }
}

#[test]
fn intervals_are_read_as_they_are_printed() {
    for interval in [interval(0, 0, 0), interval(1, 5, 2), interval(i64::MIN, i64::MAX, -1)] {
        assert_eq!(interval.to_string().parse(), Ok(interval));
    }
    assert_eq!(" [ 0 : 4 :2] ".parse(), Ok(interval(0, 4, 2)));
    for (wrong, at) in [
        ("", 0),
        ("0:4:2", 0),
        ("[0:4:2", 6),
        ("[0:4]", 4),
        ("[0:4:2:1]", 7),
        ("[0:4:2]x", 7),
        ("[0::2]", 3),
        ("[0:4:99999999999999999999]", 5),
    ] {
        match wrong.parse::<Interval>() {
            Err(IfrtError::Text { position, .. }) => assert_eq!(position, at, "{wrong}"),
            other => panic!("{wrong}: {other:?}"),
        }
    }
}

#[test]
fn interval_may_end_past_the_shards_if_its_last_step_does_not() {
    assert_eq!(one_to_two().validate(), Ok(()));
    assert_eq!(interval(1, 5, 2).shard_count(), Some(2));
    assert_eq!(interval(i64::MIN, i64::MAX, 1).shard_count(), None);
    assert_eq!(interval(5, 1, 1).shard_count(), Some(0));
}

#[test]
fn a_shard_is_used_and_filled_once() {
    let (first, both) = (interval(0, 1, 1), interval(0, 2, 1));
    refused(
        &plan(&[&[0, 1]], &[&[0], &[0]], &[(0, 0, &[first], &[first]), (0, 1, &[first], &[first])]),
        &["shard 0 of input 0 is used twice"],
    );
    refused(
        &plan(&[&[0], &[0]], &[&[0]], &[(0, 0, &[first], &[first]), (1, 0, &[first], &[first])]),
        &["shard 0 of output 0 is filled twice"],
    );
    refused(
        &plan(&[&[0, 1]], &[&[0, 1]], &[(0, 0, &[first], &[first])]),
        &["shard 1 of output 0 is not filled"],
    );
    refused(
        &plan(&[&[0, 1]], &[&[1, 0]], &[(0, 0, &[both], &[both])]),
        &["is on device 1", "from device 0"],
    );
}

#[test]
fn input_devices_name_addressable_devices_of_known_arrays() {
    let entry = |in_array, devices: &[i32]| InputDevices {
        in_array,
        devices: devices.iter().copied().map(DeviceId).collect(),
    };
    let base = || plan(&[&[0, 1]], &[&[0, 1]], &[]);
    let with = |out, inputs: Vec<InputDevices>| base().with_input_devices(out, inputs).unwrap();
    assert_eq!(with(0, vec![entry(0, &[1, 0])]).validate(), Ok(()));
    refused(&with(1, vec![]), &["out_array is 1"]);
    refused(&with(0, vec![entry(2, &[0])]), &["in_array is 2"]);
    refused(&with(0, vec![entry(0, &[7])]), &["device 7", "[0,1]"]);
    refused(&with(0, vec![entry(0, &[0])]), &["shard 1 of output 0 is not filled"]);
    refused(&with(0, vec![entry(0, &[0, 0])]), &["no shard left on device 0"]);
    assert!(with(0, vec![]).with_input_devices(0, vec![]).is_err());
}

#[test]
fn equal_plans_have_equal_hashes_and_other_plans_differ() {
    let hash = |plan: &RemapPlan| {
        use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
        BuildHasherDefault::<DefaultHasher>::default().hash_one(plan)
    };
    let plans = [
        two_to_one(),
        one_to_two(),
        one_to_two().in_device_form().unwrap(),
        RemapPlan::new([spec(&[0])], [spec(&[0])]),
        RemapPlan::new([spec(&[0])], [spec(&[1])]),
    ];
    for (at, left) in plans.iter().enumerate() {
        assert_eq!(hash(left), hash(&left.clone()));
        for right in plans.iter().skip(at + 1) {
            assert_ne!(left, right);
            assert_ne!(hash(left), hash(right));
        }
    }
}

#[test]
fn several_inputs_of_one_output_must_be_donated() {
    use ArrayCopySemantics::{AlwaysCopy, DonateInput, ReuseInput};
    let error = two_to_one().check_copy_semantics(ReuseInput).unwrap_err();
    assert!(error.to_string().contains("inputs 0 and 1"), "{error}");
    assert!(two_to_one().check_copy_semantics(AlwaysCopy).is_err());
    assert_eq!(two_to_one().check_copy_semantics(DonateInput), Ok(()));
    assert_eq!(one_to_two().check_copy_semantics(ReuseInput), Ok(()));
    for semantics in [AlwaysCopy, ReuseInput, DonateInput] {
        assert_eq!(ArrayCopySemantics::from_number(semantics.number()), Some(semantics));
    }
}

#[test]
fn below_6_a_plan_is_mappings_and_from_6_on_input_devices() {
    for plan in [two_to_one(), one_to_two()] {
        let devices = plan.input_devices().unwrap().into_owned();
        for version in versions() {
            let bytes = plan.to_bytes(version).unwrap();
            let proto = RemapPlanProto::decode(bytes.clone()).unwrap();
            let read = RemapPlan::from_bytes(bytes, &strict()).unwrap();
            if version.number() < 6 {
                assert_eq!((proto.version_number, proto.mappings.len()), (0, 2));
                assert!(proto.input_devices_for_output.is_empty());
                assert_eq!(read, plan);
            } else {
                assert_eq!((proto.version_number, proto.mappings.len()), (6, 0));
                assert_eq!(read.explicit_input_devices(), &devices);
            }
            assert_eq!(*read.input_devices().unwrap(), devices);
        }
    }
}

#[test]
fn mappings_and_input_devices_are_made_from_each_other() {
    let plan = one_to_two();
    let devices = plan.input_devices().unwrap().into_owned();
    assert_eq!(devices[&0], [InputDevices { in_array: 0, devices: DeviceList::from([0, 2]) }]);
    let by_devices = plan.in_device_form().unwrap();
    assert_eq!(by_devices.mappings().len(), 0);
    let converted = by_devices.in_mapping_form().unwrap();
    let odd = converted.mappings().nth(1).unwrap();
    assert_eq!(odd.from, [interval(1, 2, 1), interval(3, 4, 1)]);
    assert_eq!(odd.to, [interval(0, 1, 1), interval(1, 2, 1)]);
    assert_eq!(by_devices.validate(), Ok(()));
    for version in versions() {
        let bytes = by_devices.to_bytes(version).unwrap();
        let read = RemapPlan::from_bytes(bytes, &strict()).unwrap();
        assert_eq!(read.input_devices().unwrap(), by_devices.input_devices().unwrap());
    }
}

/// Returns the bytes after the specs of a plan with one input and one output: mappings and input
/// devices.
fn beyond_specs(plan: &RemapPlan, version: SerDesVersion) -> String {
    let bytes = plan.to_bytes(version).unwrap();
    let specs = RemapPlanProto::decode(bytes.clone()).map(|proto| RemapPlanProto {
        input_specs: proto.input_specs,
        output_specs: proto.output_specs,
        ..Default::default()
    });
    let after = bytes.slice(specs.unwrap().encoded_len()..);
    after.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn device_plan_below_version_6_equals_real_builds() {
    let reversed = RemapPlan::new([spec(&[0, 1])], [spec(&[1, 0])]);
    let reversed = reversed.with_input_devices(0, [from(0, &[1, 0])]).unwrap();
    let halves = RemapPlan::new([spec(&[0, 1, 2, 3])], [spec(&[0, 1]), spec(&[2, 3])])
        .with_input_devices(0, [from(0, &[0, 1])])
        .and_then(|plan| plan.with_input_devices(1, [from(0, &[2, 3])]))
        .unwrap();
    for number in 0..6 {
        assert_eq!(
            beyond_specs(&reversed, version(number)),
            "1a181a020001220201022a020101320201003a020201420201012a08120612040a020100"
        );
        // Shards that are consecutive on both sides form one interval.
        let read = RemapPlan::from_bytes(halves.to_bytes(version(number)).unwrap(), &strict());
        let read = read.unwrap();
        let first = read.mappings().next().unwrap();
        assert_eq!((first.from, first.to), (&[interval(0, 2, 1)][..], &[interval(0, 2, 1)][..]));
        assert_eq!(read.explicit_input_devices(), halves.explicit_input_devices());
    }
    assert_eq!(beyond_specs(&reversed, version(6)), "20062a08120612040a020100");
}

#[test]
fn a_shard_that_changes_its_device_cannot_be_written_from_6_on() {
    let both: &[Interval] = &[interval(0, 2, 1)];
    let plan = plan(&[&[0, 1]], &[&[1, 0]], &[(0, 0, both, both)]);
    assert!(plan.to_bytes(version(5)).is_ok());
    let error = plan.to_bytes(version(6)).unwrap_err();
    assert_eq!(error.code(), StatusCode::InvalidArgument);
    assert!(error.to_string().contains("expected the same device"), "{error}");
    assert_eq!(plan.to_proto(version(6)).unwrap_err(), error);
}

fn from(in_array: i32, devices: &[i32]) -> InputDevices {
    InputDevices { in_array, devices: devices.iter().copied().map(DeviceId).collect() }
}

#[test]
fn plan_in_both_forms_is_written_if_they_agree() {
    let both = |odd: &[i32]| {
        let plan = one_to_two().with_input_devices(0, [from(0, &[2, 0])]).unwrap();
        plan.with_input_devices(1, [from(0, odd)]).unwrap()
    };
    let agree = both(&[1, 3]);
    assert_eq!(agree.validate(), Ok(()));
    for version in versions() {
        let read = RemapPlan::from_bytes(agree.to_bytes(version).unwrap(), &strict()).unwrap();
        assert_eq!(read.explicit_input_devices(), agree.explicit_input_devices());
        assert_eq!(read.mappings().len(), if version.number() < 6 { 2 } else { 0 });
    }
    for (odd, part) in [
        (&[1][..], "the input devices nothing more"),
        (&[], "the input devices nothing more"),
        (&[1, 1], "no shard left on device 1"),
        (&[1, 5], "device 5"),
    ] {
        let contradicts = both(odd);
        refused(&contradicts, &[part]);
        for version in versions() {
            let error = contradicts.to_bytes(version).unwrap_err();
            assert_eq!(error.code(), StatusCode::InvalidArgument);
            assert_eq!(contradicts.to_proto(version).unwrap_err(), error);
            assert_eq!(contradicts.can_serialize_at(version).unwrap_err(), error);
        }
    }
    let other_input = two_to_one().with_input_devices(0, [from(1, &[2, 3])]).unwrap();
    refused(&other_input, &["mappings say that shard 0 of input 0", "shard 0 of input 1"]);
}

#[test]
fn outputs_without_input_devices_take_those_of_their_mappings() {
    let plan = one_to_two().with_input_devices(1, [from(0, &[3, 1])]).unwrap();
    assert_eq!(plan.validate(), Ok(()));
    let read = RemapPlan::from_bytes(plan.to_bytes(version(6)).unwrap(), &strict()).unwrap();
    let expected = BTreeMap::from([(0, vec![from(0, &[0, 2])]), (1, vec![from(0, &[3, 1])])]);
    assert_eq!(read.explicit_input_devices(), &expected);
}

#[test]
fn outputs_without_shards_have_an_entry_of_input_devices() {
    let none = || {
        let opaque = OpaqueSharding::new(DeviceList::from([]), MemoryKind::new("device"));
        ArraySpec::new(DType::F32, Shape::new([0]).unwrap(), opaque)
    };
    let base = || RemapPlan::new([spec(&[0])], [spec(&[0]), none()]);
    let by_devices = base().with_input_devices(0, [from(0, &[0])]).unwrap();
    refused(&by_devices, &["output 1 has no entry of input devices"]);
    let first: &[Interval] = &[interval(0, 1, 1)];
    let by_mappings = base().with_mapping(0, 0, first, first).unwrap();
    assert_eq!(by_mappings.validate(), Ok(()));
    let read = RemapPlan::from_bytes(by_mappings.to_bytes(version(6)).unwrap(), &strict());
    let expected = BTreeMap::from([(0, vec![from(0, &[0])]), (1, vec![])]);
    assert_eq!(read.unwrap().explicit_input_devices(), &expected);
}

#[test]
fn a_plan_without_any_shard_is_written_from_6_on() {
    let nothing = ConcreteEvenSharding::new(
        DeviceList::new([]),
        MemoryKind::unset(),
        Shape::new([2]).unwrap(),
        Shape::new([2]).unwrap(),
        false,
    );
    let output = ArraySpec::new(DType::F32, Shape::new([2]).unwrap(), nothing.unwrap());
    let plan = RemapPlan::new([array(DType::F32, "device", &[0, 1])], [output]);
    let plan = plan.with_input_devices(0, []).unwrap();
    assert_eq!(plan.validate(), Ok(()));
    for version in versions() {
        assert_eq!(plan.can_serialize_at(version).is_ok(), version.number() >= 6, "{version}");
        assert_eq!(plan.to_bytes(version).err(), plan.to_proto(version).err(), "{version}");
        if let Ok(bytes) = plan.to_bytes(version) {
            assert_eq!(RemapPlan::from_bytes(bytes, &strict()).unwrap(), plan);
        }
    }
}

#[test]
fn plan_that_device_lists_cannot_express_is_refused_from_6_on() {
    let (first, second) = (&[interval(0, 1, 1)][..], &[interval(1, 2, 1)][..]);
    // The two shards on one device are swapped.
    let crossed = plan(&[&[0, 0]], &[&[0, 0]], &[(0, 0, first, second), (0, 0, second, first)]);
    assert_eq!(crossed.validate(), Ok(()));
    assert!(crossed.to_bytes(version(5)).is_ok());
    let error = crossed.to_bytes(version(6)).unwrap_err();
    assert!(error.to_string().contains("shard 1 of input 0 becomes shard 0"), "{error}");
    let straight = plan(&[&[0, 0]], &[&[0, 0]], &[(0, 0, first, first), (0, 0, second, second)]);
    assert!(straight.to_bytes(version(6)).is_ok());
    // As many shards as the input has, but one of them twice, which is not the input's list.
    let twice = plan(&[&[0, 1]], &[&[0, 1], &[0]], &[(0, 0, first, first), (0, 1, first, first)]);
    let error = twice.to_bytes(version(6)).unwrap_err();
    assert!(error.to_string().contains("shard 0 of input 0, which is used twice"), "{error}");
    let filled = plan(&[&[0], &[0]], &[&[0]], &[(0, 0, first, first), (1, 0, first, first)]);
    let error = filled.to_bytes(version(6)).unwrap_err();
    assert!(error.to_string().contains("shard 0 of output 0, which is filled twice"), "{error}");
}

#[test]
fn devices_of_other_processes_may_be_in_lists_of_their_arrays() {
    let partly = |ids: &[i32]| {
        DeviceList::with_addressable(ids.iter().copied().map(DeviceId), |id| id.0 < 2)
    };
    let array = |ids: &[i32]| {
        let opaque = OpaqueSharding::new(partly(ids), MemoryKind::new("device"));
        let even = ConcreteEvenSharding::new(
            opaque.devices().clone(),
            MemoryKind::new("device"),
            Shape::new([8]).unwrap(),
            Shape::new([2]).unwrap(),
            false,
        );
        ArraySpec::new(DType::F32, Shape::new([8]).unwrap(), even.unwrap())
    };
    let whole: &[Interval] = &[interval(0, 4, 1)];
    let ids = [0, 1, 2, 3];
    let base = || RemapPlan::new([array(&ids)], [array(&ids)]);
    let plan = base().with_mapping(0, 0, whole, whole).unwrap();
    assert_eq!(plan.validate(), Ok(()));
    assert_eq!(plan.in_device_form().unwrap().validate(), Ok(()));
    let with = |devices| InputDevices { in_array: 0, devices };
    let foreign = base().with_input_devices(0, [with(partly(&[0, 1, 2, 9]))]).unwrap();
    refused(&foreign, &["device 9", "none of its devices [0,1,2,3]"]);
    let called_local = base().with_input_devices(0, [with(DeviceList::from(ids))]).unwrap();
    refused(&called_local, &["device 2", "none of its addressable devices [0,1]"]);
}

#[test]
fn reading_checks_the_lists_but_not_the_plan_unless_strict() {
    let proto = RemapPlanProto {
        mappings: vec![MappingProto { from_start: vec![1], ..Default::default() }],
        ..Default::default()
    };
    let error = RemapPlan::from_proto(&proto, &options()).unwrap_err();
    assert_eq!(error.code(), StatusCode::Internal);
    assert!(error.to_string().contains("[1, 0, 0, 0, 0, 0]"), "{error}");
    let bytes = proto.encode_to_vec().into();
    assert_eq!(RemapPlan::from_bytes(bytes, &options()).unwrap_err(), error);

    let empty = RemapPlanProto::default();
    assert!(RemapPlan::from_proto(&empty, &options()).is_ok());
    assert_eq!(
        RemapPlan::from_proto(&empty, &strict()).unwrap_err().code(),
        StatusCode::InvalidArgument
    );
    let error = RemapPlan::from_proto(&empty, &DeserializeOptions::new()).unwrap_err();
    assert!(error.to_string().contains("DeserializeShardingOptions"), "{error}");
}

#[test]
fn versions_0_to_6_are_read_and_7_is_too_new() {
    for number in 0..=7 {
        let proto = RemapPlanProto { version_number: number, ..Default::default() };
        let found = RemapPlan::from_proto(&proto, &options());
        if number == 7 {
            assert_eq!(found.unwrap_err().kind(), ErrorKind::TooNew);
        } else {
            assert!(found.is_ok(), "{number}");
        }
        let bytes = proto.encode_to_vec().into();
        assert_eq!(RemapPlan::from_bytes(bytes, &options()).is_ok(), number < 7);
    }
    let proto = RemapPlanProto { version_number: -1, ..Default::default() };
    let error = RemapPlan::from_proto(&proto, &options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[test]
fn a_hostile_interval_costs_nothing() {
    let endless = [interval(0, i64::MAX, 1)];
    let plan = plan(&[&[0, 1]], &[&[0, 1]], &[(0, 0, &endless, &endless)]);
    assert!(plan.input_devices().is_err());
    assert!(plan.to_bytes(version(6)).is_err());
    assert!(plan.validate().is_err());
}

fn plans() -> impl Strategy<Value = RemapPlan> {
    let number = || prop_oneof![0_i64..300, any::<i64>()];
    let interval = (number(), number(), number()).prop_map(|(a, b, c)| Interval::new(a, b, c));
    let pairs = prop::collection::vec((interval.clone(), interval), 0..4);
    let mapping = (any::<i32>(), 0_i32..5, pairs);
    (1_i32..5, prop::collection::vec(mapping, 0..20)).prop_map(|(devices, mappings)| {
        let devices: Vec<_> = (0..devices).collect();
        let plan = plan(&[&devices], &[&devices, &devices], &[]);
        mappings.into_iter().fold(plan, |plan, (input, output, pairs)| {
            let (from, to): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
            plan.with_mapping(input, output, &from, &to).unwrap()
        })
    })
}

/// Form in which a valid plan is written.
#[derive(Clone, Copy, Debug)]
enum Form {
    Mappings,
    Devices,
    Both,
    /// Mappings, and devices for the first output only.
    BothForOne,
}

/// Generates valid plans: the shards of the inputs, which are on distinct devices, are distributed
/// to outputs.
fn valid_plans() -> impl Strategy<Value = RemapPlan> {
    let form = prop::sample::select(&[Form::Mappings, Form::Devices, Form::Both, Form::BothForOne]);
    let counts = prop::collection::vec(1_usize..5, 1..4);
    (counts, 1_usize..4, any::<u64>(), form).prop_map(|(counts, outputs, seed, form)| {
        let mut shards = Vec::new();
        let mut inputs = Vec::new();
        let mut device = 0;
        for (array, count) in counts.iter().enumerate() {
            let devices: Vec<i32> = (device..).take(*count).collect();
            shards
                .extend(devices.iter().zip(0_i64..).map(|(id, shard)| (array as i32, shard, *id)));
            device += *count as i32;
            inputs.push(devices);
        }
        let mut state = seed | 1;
        for at in (1..shards.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            shards.swap(at, (state >> 33) as usize % (at + 1));
        }
        let size = shards.len().div_ceil(outputs);
        let parts: Vec<_> = shards.chunks(size).collect();
        let of_output = |part: &[(i32, i64, i32)]| part.iter().map(|shard| shard.2).collect();
        let devices: Vec<Vec<i32>> = parts.iter().map(|part| of_output(part)).collect();
        let slices = |lists: &[Vec<i32>]| lists.iter().map(|list| spec(list)).collect::<Vec<_>>();
        let mut plan = RemapPlan::new(slices(&inputs), slices(&devices));
        if !matches!(form, Form::Devices) {
            for (output, part) in parts.iter().enumerate() {
                for (place, (array, shard, _)) in (0..).zip(*part) {
                    let one = |shard| [interval(shard, shard + 1, 1)];
                    let (from, to) = (one(*shard), one(place));
                    plan = plan.with_mapping(*array, output as i32, &from, &to).unwrap();
                }
            }
        }
        for (output, part) in parts.iter().enumerate() {
            match form {
                Form::Mappings => break,
                Form::BothForOne if output > 0 => break,
                Form::Devices | Form::Both | Form::BothForOne => {}
            }
            let lists = (0..inputs.len() as i32).filter_map(|array| {
                let of_array = part.iter().filter(|shard| shard.0 == array);
                let ids: Vec<i32> = of_array.map(|shard| shard.2).collect();
                (!ids.is_empty()).then(|| from(array, &ids))
            });
            plan = plan.with_input_devices(output as i32, lists.collect::<Vec<_>>()).unwrap();
        }
        plan
    })
}

/// Returns the shards of the outputs with their source shards.
fn dealt(plan: &RemapPlan) -> Vec<(i32, i64, i32, i64)> {
    let plan = plan.in_mapping_form().unwrap();
    let mut dealt = Vec::new();
    for mapping in plan.mappings() {
        for (from, to) in mapping.from.iter().zip(mapping.to) {
            assert_eq!((from.step, to.step), (1, 1));
            for (from, to) in (from.start..from.end).zip(to.start..to.end) {
                dealt.push((mapping.out_array, to, mapping.in_array, from));
            }
        }
    }
    dealt.sort_unstable();
    dealt
}

#[test]
fn mapping_lists_in_pieces_or_unpacked_are_read_as_by_prost() {
    // The list in field 3 is a packed piece and a single number; the others are as real writers
    // encode them.
    let mapping: &[u8] = &[
        0x08, 1, 0x1a, 1, 0, 0x18, 2, 0x22, 2, 1, 3, 0x2a, 2, 1, 1, 0x32, 2, 0, 1, 0x3a, 2, 1, 2,
        0x42, 2, 1, 1,
    ];
    let bytes = [&[0x1a, mapping.len() as u8][..], mapping].concat();
    let message = <RemapPlan as FromProto>::Proto::decode(&bytes[..]).unwrap();
    let options = with_devices(AnyDevice);
    let plan = RemapPlan::from_bytes(bytes.into(), &options).unwrap();
    assert_eq!(RemapPlan::from_proto(&message, &options), Ok(plan.clone()));
    assert_eq!(
        plan.to_string(),
        "RemapPlan(0 inputs, 0 outputs, Mapping(in_array=1,out_array=0,from=[[0:1:1],[2:3:1]],to=[[0:1:1],[1:2:1]]))"
    );
}

proptest! {
    #[test]
    fn a_valid_plan_in_any_form_is_written_and_valid_for_its_reader(plan in valid_plans()) {
        prop_assert_eq!(plan.validate(), Ok(()));
        for version in versions() {
            let read = RemapPlan::from_bytes(plan.to_bytes(version).unwrap(), &strict());
            prop_assert_eq!(dealt(&read.unwrap()), dealt(&plan));
        }
    }

    #[test]
    fn plans_are_written_and_read_as_their_messages_are(plan in plans()) {
        for version in versions() {
            match (plan.to_bytes(version), plan.to_proto(version)) {
                (Ok(bytes), Ok(proto)) => {
                    prop_assert_eq!(&bytes[..], proto.encode_to_vec());
                    let reference = RemapPlan::from_proto(&proto, &options());
                    let read = RemapPlan::from_bytes(bytes, &options());
                    prop_assert_eq!(&read, &reference);
                    if version.number() < 6 {
                        prop_assert_eq!(read, Ok(plan.clone()));
                    }
                }
                (direct, message) => prop_assert_eq!(direct.err(), message.err()),
            }
        }
    }

    #[test]
    fn damaged_plans_are_read_as_their_messages_are(
        plan in plans(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = plan.to_bytes(version(3)).unwrap().to_vec();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let message = RemapPlanProto::decode(&bytes[..]).ok();
        let reference = message.and_then(|proto| RemapPlan::from_proto(&proto, &options()).ok());
        prop_assert_eq!(RemapPlan::from_bytes(bytes.into(), &options()).ok(), reference);
    }
}
