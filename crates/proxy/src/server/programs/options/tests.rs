use std::{fs, path::Path};

use prost::encoding::{WireType, encode_key, encode_varint};
use serdes::codec::StatusCode;
use serdes_pjrt::Minor;

use super::{
    table::{self, Kind, Otherwise},
    *,
};

const TARGET: Target<'_> = Target { minor: Minor::new(115), devices: &[0, 1, 2, 3] };

fn bytes(number: u32, content: &[u8]) -> Vec<u8> {
    let mut field = Vec::new();
    Value::Bytes(content).write(number, &mut field);
    field
}

fn number(number: u32, value: u64) -> Vec<u8> {
    let mut field = Vec::new();
    Value::Number(value).write(number, &mut field);
    field
}

/// Returns options for one device, with these additional fields.
fn build(fields: &[Vec<u8>]) -> Vec<u8> {
    bytes(BUILD_OPTIONS, &[number(4, 1), fields.concat(), number(5, 1)].concat())
}

fn debug(options: &[Vec<u8>]) -> Vec<u8> {
    [number(5, u64::MAX), build(&[bytes(DEBUG_OPTIONS, &options.concat())])].concat()
}

fn named(name: &str, value: &[u8]) -> Vec<u8> {
    bytes(OVERRIDES, &[bytes(1, name.as_bytes()), bytes(2, value)].concat())
}

fn rebuilt(options: &[u8]) -> Result<Vec<u8>, Status> {
    for_plugin(options, &OptionRules::default(), TARGET)
}

fn allowing(names: &[&str]) -> OptionRules {
    OptionRules::new(names.iter().map(|name| (*name).to_owned())).unwrap()
}

/// Returns the debug options in a message, if there are any.
fn debug_of(options: &[u8]) -> Option<Vec<u8>> {
    let found = |message: &[u8], wanted| {
        let fields: Vec<_> = Fields(message).map(Result::unwrap).collect();
        fields.into_iter().find_map(|(number, value)| match value {
            Value::Bytes(bytes) if number == wanted => Some(bytes.to_vec()),
            _ => None,
        })
    };
    found(&found(options, BUILD_OPTIONS)?, DEBUG_OPTIONS)
}

fn fields(message: &[u8]) -> Vec<(u32, Value<'_>)> {
    Fields(message).map(Result::unwrap).collect()
}

#[track_caller]
fn assert_refused(options: &[u8], name: &str) {
    let error = rebuilt(options).unwrap_err();
    assert_eq!(error.code(), StatusCode::InvalidArgument, "{name}: {}", error.message());
    assert!(error.message().contains(name), "{name}: {}", error.message());
}

/// Returns compile options that real clients have sent.
fn captured() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/xla_compile_options");
    let mut all = Vec::new();
    for release in ["0.8.0", "0.9.1", "0.10.2", "0.11.1", "0.12.0.1"] {
        let file = fs::read(folder.join(format!("jaxlib-{release}.binpb"))).unwrap();
        for (number, value) in fields(&file) {
            let Value::Bytes(options) = value else { panic!("{release}: field {number}") };
            all.push((release.to_owned(), options.to_vec()));
        }
    }
    all
}

#[test]
fn for_plugin_keeps_what_clients_send_unasked() {
    let all = captured();
    assert!(all.len() > 50, "{}", all.len());
    for (release, options) in all {
        let given = rebuilt(&options).unwrap_or_else(|error| panic!("{release}: {error:?}"));
        let (before, after) = (debug_of(&options).unwrap(), debug_of(&given).unwrap());
        // Except for folders of the client's machine.
        let is_cache =
            |value: &Value<'_>| matches!(value, Value::Bytes(bytes) if bytes.starts_with(b"/home"));
        let before = fields(&before);
        let before: Vec<_> = before.iter().filter(|(_, value)| !is_cache(value)).collect();
        let after = fields(&after);
        assert_eq!(before, after.iter().collect::<Vec<_>>(), "{release}");
        // Rebuilding the result again does not change it.
        assert_eq!(rebuilt(&given).as_ref(), Ok(&given), "{release}");
    }
}

#[test]
fn for_plugin_refuses_every_option_with_another_value() {
    for option in table::all() {
        let values: Vec<Vec<u8>> = match option.kind {
            Kind::Text | Kind::Message => {
                vec![bytes(option.number, b"/a/b"), bytes(option.number, b"x")]
            }
            Kind::Float | Kind::Double => vec![number(option.number, 1)],
            Kind::Bool | Kind::Int | Kind::Enum | Kind::List => vec![
                number(option.number, u64::MAX - 1),
                number(option.number, 1 << 50),
                bytes(option.number, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
            ],
        };
        for value in values {
            let options = debug(&[value]);
            if option.otherwise == Otherwise::LeftOut {
                let given = debug_of(&rebuilt(&options).unwrap());
                assert_eq!(given, Some(Vec::new()), "{}", option.name);
            } else {
                assert_refused(&options, option.name);
            }
        }
    }
}

#[test]
fn for_plugin_refuses_what_is_not_known() {
    for field in [1, 3, 558, 999, (1 << 29) - 1] {
        let name = format!("field {field} of xla.DebugOptions");
        for value in [number(field, 1), bytes(field, b"x"), bytes(field, b"a/b")] {
            assert_refused(&debug(&[value]), &name);
        }
        // Fields without an effect are left out.
        let given = rebuilt(&debug(&[number(field, 0), bytes(field, b"")])).unwrap();
        assert_eq!(debug_of(&given), Some(Vec::new()));
    }
    // A field after another one with the same number, and in another part of the message.
    let twice = [debug(&[bytes(109, b"")]), debug(&[bytes(109, b"out")])].concat();
    assert_refused(&twice, "xla_dump_to");
    assert_refused(&debug(&[bytes(500, b"\n\x05-help")]), "xla_backend_extra_options");
    for (field, name) in [(28, "field 28 of xla.ExecutableBuildOptionsProto"), (14, "fdo_profile")]
    {
        assert_refused(&build(&[bytes(field, b"x")]), name);
    }
    for (field, name) in [(13, "field 13 of xla.CompileOptionsProto"), (1, "argument_layouts")] {
        assert_refused(&[build(&[]), bytes(field, b"x")].concat(), name);
    }
}

#[test]
fn for_plugin_holds_counts_that_end_a_compiler() {
    for count in [u64::MAX, (1 << 31) - 1, 1 << 31, 65] {
        assert_refused(&debug(&[number(323, count)]), "xla_cpu_parallel_codegen_split_count");
        let named = named("xla_cpu_parallel_codegen_split_count", &number(3, count));
        assert_refused(&[build(&[]), named].concat(), "xla_cpu_parallel_codegen_split_count");
    }
    assert_refused(&debug(&[number(379, 1)]), "xla_unsupported_crash_on_hlo_pass_noop_change");
    for ordinal in [-5_i64, -2, 4, i64::MAX, i64::MIN] {
        assert_refused(&build(&[number(1, ordinal.cast_unsigned())]), "device_ordinal");
    }
    for ordinal in [-1_i64, 0, 3] {
        rebuilt(&build(&[number(1, ordinal.cast_unsigned())])).unwrap();
    }
    for (replicas, partitions) in
        [(0, 1), (1, 0), (5, 1), (1, 5), (2, 3), (1 << 31, 1), (u64::MAX, u64::MAX), (1 << 62, 4)]
    {
        let counts = [number(4, replicas), number(5, partitions)].concat();
        assert_refused(&bytes(BUILD_OPTIONS, &counts), "num_replicas");
    }
}

#[test]
fn for_plugin_takes_devices_of_the_server_alone() {
    let assigned = |ids: &[i64]| {
        let assignment = DeviceAssignmentProto {
            replica_count: 1,
            computation_count: 1,
            computation_devices: vec![
                serdes::proto::xla::device_assignment_proto::ComputationDevice {
                    replica_device_ids: ids.to_vec(),
                },
            ],
        };
        build(&[bytes(9, &assignment.encode_to_vec())])
    };
    for ids in [&[7][..], &[-1], &[1, 1], &[i64::MAX], &[1 << 32]] {
        assert_refused(&assigned(ids), "device_assignment");
    }
    assert_refused(&build(&[bytes(9, &[0xff])]), "device_assignment");
    rebuilt(&assigned(&[3])).unwrap();
}

#[test]
fn for_plugin_holds_overrides_to_the_same_table() {
    for (name, value) in [
        ("xla_cpu_enable_fast_math", number(2, 1)),
        ("xla_gpu_autotune_level", number(3, 4)),
        ("xla_embed_ir_in_executable", bytes(1, b"True")),
        ("xla_cpu_prefer_vector_width", bytes(1, b"512")),
        ("exec_time_optimization_effort", [&[0x21][..], &0.5_f64.to_le_bytes()].concat()),
    ] {
        let options = [build(&[]), named(name, &value)].concat();
        let given = rebuilt(&options).unwrap();
        assert!(fields(&given).contains(&fields(&options)[1]), "{name}");
    }
    let wrong = [
        ("xla_dump_to", bytes(1, b"x")),
        ("xla_dump_hlo_as_text", number(2, 1)),
        ("xla_gpu_load_autotune_results_from", bytes(1, b"x")),
        ("xla_backend_extra_options", bytes(1, b"-help")),
        ("xla_disable_hlo_passes", bytes(1, b"x")),
        ("XLA_CPU_ENABLE_FAST_MATH", number(2, 1)),
        ("xla_cpu_enable_fast_math", bytes(1, b"maybe")),
        ("xla_cpu_enable_fast_math", bytes(4, b"")),
        ("xla_gpu_autotune_level", number(3, 5)),
        ("xla_a_file_of", bytes(1, b"x")),
        ("exec_time_optimization_effort", [&[0x21][..], &9.5_f64.to_le_bytes()].concat()),
        ("", number(2, 1)),
    ];
    for (name, value) in wrong {
        assert_refused(&[build(&[]), named(name, &value)].concat(), name);
    }
    // Of two values the last one counts.
    let twice = named("xla_gpu_autotune_level", &[number(3, 4), number(3, 9)].concat());
    assert_refused(&[build(&[]), twice].concat(), "xla_gpu_autotune_level");
    let cache = named("xla_gpu_per_fusion_autotune_cache_dir", &bytes(1, b"/tmp/cache"));
    assert_eq!(rebuilt(&[build(&[]), cache].concat()), rebuilt(&build(&[])));
}

#[test]
fn for_plugin_hands_on_what_the_operator_allows() {
    let asked =
        [debug(&[bytes(109, b"/tmp/x"), number(999, 7)]), named("xla_tpu_x", &number(2, 1))];
    let asked = asked.concat();
    let rules = allowing(&["xla_dump_to", "999", "xla_tpu_x"]);
    let given = for_plugin(&asked, &rules, TARGET).unwrap();
    assert_eq!(debug_of(&given), debug_of(&asked));
    let other = debug(&[bytes(109, b"/tmp/x"), bytes(110, b".*")]);
    let error = for_plugin(&other, &rules, TARGET).unwrap_err();
    assert!(error.message().contains("xla_dump_hlo_module_re"), "{}", error.message());
    // Devices are not options.
    let devices = build(&[number(1, 77)]);
    assert!(for_plugin(&devices, &allowing(&["device_ordinal"]), TARGET).is_err());
}

#[test]
fn for_plugin_asks_old_plugins_for_shardings_in_tiles() {
    let asked = debug(&[number(452, 1), number(185, 1)]);
    for (minor, kept) in [(81, false), (106, false), (114, false), (115, true), (120, true)] {
        let target = Target { minor: Minor::new(minor), ..TARGET };
        let given = for_plugin(&asked, &OptionRules::default(), target).unwrap();
        let given = debug_of(&given).unwrap();
        assert_eq!(fields(&given).contains(&(452, Value::Number(1))), kept, "{minor}");
        assert!(fields(&given).contains(&(185, Value::Number(1))));
    }
}

#[test]
fn for_plugin_adds_no_debug_options() {
    assert_eq!(debug_of(&rebuilt(&build(&[])).unwrap()), None);
    // Empty debug options are options: all of them are zero.
    assert_eq!(debug_of(&rebuilt(&debug(&[])).unwrap()), Some(Vec::new()));
}

#[test]
fn for_plugin_refuses_bytes_that_are_no_options() {
    let hidden = debug(&[bytes(109, b"out")]);
    for before in [&[0xff; 11][..], &[0x0b], &[0x0a, 0xff, 0xff, 0x03], &[0x09, 1], &[0x0d]] {
        let error = rebuilt(&[before, &hidden].concat()).unwrap_err();
        assert_eq!(error.code(), StatusCode::InvalidArgument, "{before:?}");
    }
    // A cut between the two fields leaves a valid message.
    for cut in 1..hidden.len() {
        assert_eq!(rebuilt(&hidden[..cut]).is_ok(), cut == number(5, u64::MAX).len(), "{cut}");
    }
    let mut group = Vec::new();
    encode_key(4, WireType::StartGroup, &mut group);
    encode_varint(1, &mut group);
    assert!(rebuilt(&group).is_err());
}
