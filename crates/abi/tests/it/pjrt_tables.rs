//! Tests that the tables of the PJRT C API equal the measured ones (`pjrt.json`), and that look-ups
//! in both give the same answers.
//!
//! `SERDES_REGENERATE_PJRT=1 cargo test -p serdes-abi --test it pjrt_tables` writes them
//! (`cargo xtask pjrt`).

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use serdes_abi::pjrt::{
    Handover, Minor, PADDING, StructSize, enumeration, enumerations, function, functions, minors,
    structure, structures, table_size,
};

const REGENERATE: &str = "SERDES_REGENERATE_PJRT";

/// A row of sizes, with the first and the last minor for which they hold.
type Row<'a> = &'a [Value];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn measured() -> Value {
    serde_json::from_slice(&fs::read(path("pjrt.json")).unwrap()).unwrap()
}

fn rows(value: &Value) -> impl Iterator<Item = Row<'_>> {
    value.as_array().unwrap().iter().map(|row| row.as_array().unwrap().as_slice())
}

fn number(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap()).unwrap()
}

fn every_minor() -> impl Iterator<Item = Minor> {
    (Minor::OLDEST.number()..=Minor::NEWEST.number()).map(Minor::new)
}

/// Returns the row whose range of minors contains `minor`.
fn of_minor<'a>(value: &'a Value, minor: Minor, [first, last]: [usize; 2]) -> Option<Row<'a>> {
    let number_of = minor.number();
    rows(value).find(|row| number(&row[first]) <= number_of && number_of <= number(&row[last]))
}

/// Writes entries such as `at(offset, first, last)`, one per line.
fn list(text: &mut String, entries: impl Iterator<Item = String>) {
    for entry in entries {
        writeln!(text, "            {entry},").unwrap();
    }
}

/// Returns the source of the module `generated`.
fn generated(measured: &Value) -> String {
    let mut text = "//! Generated from `pjrt.json` by `cargo xtask pjrt`; never edit it.\n\nuse super::layout::{Enumeration, Function, MinorRecord, Struct, at, field, long, value};\n\n".to_owned();
    text.push_str("pub(super) const MINORS: &[MinorRecord] = &[\n");
    for row in rows(&measured["minors"]) {
        writeln!(
            text,
            "    MinorRecord {{ minor: {}, first_seen: {}, size_of: {}, declared: {} }},",
            row[0], row[1], row[2], row[3]
        )
        .unwrap();
    }
    text.push_str("];\n\npub(super) const FUNCTIONS: &[Function] = &[\n");
    for (name, spans) in measured["functions"].as_object().unwrap() {
        writeln!(text, "    Function {{\n        name: \"{name}\",\n        spans: &[").unwrap();
        list(&mut text, rows(spans).map(|row| format!("at({}, {}, {})", row[2], row[0], row[1])));
        text.push_str("        ],\n    },\n");
    }
    text.push_str("];\n\npub(super) const STRUCTS: &[Struct] = &[\n");
    for (name, structure) in measured["structs"].as_object().unwrap() {
        writeln!(text, "    Struct {{\n        name: \"{name}\",\n        spans: &[").unwrap();
        let spans = rows(&structure["sizes"]);
        list(
            &mut text,
            spans.map(|row| format!("long({}, {}, {}, {})", row[2], row[3], row[0], row[1])),
        );
        text.push_str("        ],\n        fields: &[\n");
        let fields = rows(&structure["fields"]);
        list(
            &mut text,
            fields.map(|row| {
                let numbers = row[2..].iter().map(Value::to_string).collect::<Vec<_>>().join(", ");
                format!("field({}, {}, [{numbers}])", row[0], row[1])
            }),
        );
        text.push_str("        ],\n    },\n");
    }
    text.push_str("];\n\npub(super) const ENUMERATIONS: &[Enumeration] = &[\n");
    for (name, values) in measured["enums"].as_object().unwrap() {
        writeln!(text, "    Enumeration {{\n        name: \"{name}\",\n        values: &[")
            .unwrap();
        let values = rows(values);
        list(
            &mut text,
            values.map(|row| format!("value({}, {}, {}, {})", row[0], row[1], row[2], row[3])),
        );
        text.push_str("        ],\n    },\n");
    }
    text.push_str("];\n");
    text
}

#[test]
fn the_tables_are_generated_from_what_was_measured() {
    let (path, text) = (path("src/pjrt/generated/mod.rs"), generated(&measured()));
    if std::env::var_os(REGENERATE).is_some() {
        fs::write(path, text).unwrap();
        return;
    }
    // rustfmt decides the line breaks, so only words are compared.
    let words = |text: &str| {
        let text = text.split_whitespace().collect::<String>();
        text.replace(",]", "]").replace(",}", "}").replace(",)", ")")
    };
    let (found, expected) = (words(&fs::read_to_string(path).unwrap()), words(&text));
    assert!(found == expected, "run `cargo xtask pjrt` and `cargo fmt`");
}

#[test]
fn structs_have_the_measured_size_and_fields() {
    let measured = measured();
    let described = measured["structs"].as_object().unwrap();
    assert_eq!(described.len(), structures().len());
    for (name, described) in described {
        let found = structure(name).unwrap();
        for minor in every_minor() {
            let row = of_minor(&described["sizes"], minor, [0, 1]);
            let expected = row.map(|row| StructSize {
                size_of: number(&row[2]) as usize,
                declared: number(&row[3]) as usize,
            });
            assert_eq!(found.size(minor), expected, "{name} {minor}");
            let there =
                |row: &Row<'_>| (number(&row[4])..=number(&row[5])).contains(&minor.number());
            let expected: BTreeMap<&str, (u32, u32)> = rows(&described["fields"])
                .filter(there)
                .map(|row| (row[0].as_str().unwrap(), (number(&row[2]), number(&row[3]))))
                .collect();
            let fields = found
                .fields(minor)
                .map(|field| (field.name, (field.offset.into(), field.size.into())))
                .collect::<BTreeMap<&str, (u32, u32)>>();
            assert_eq!(fields, expected, "{name} {minor}");
            for (field, (offset, _)) in expected {
                let found = found.field(field, minor).unwrap();
                assert_eq!(u32::from(found.offset), offset, "{name}.{field} {minor}");
            }
        }
    }
}

#[test]
fn fields_of_one_minor_do_not_overlap_and_lie_inside_the_struct() {
    for found in structures() {
        for minor in every_minor() {
            let Some(size) = found.size(minor) else { continue };
            let mut fields: Vec<_> = found.fields(minor).collect();
            fields.sort_by_key(|field| field.offset);
            for pair in fields.windows(2) {
                assert!(pair[0].end() <= pair[1].offset.into(), "{} {minor}", found.name);
            }
            assert_eq!(
                size.size_of,
                found.end(minor).next_multiple_of(8),
                "{} {minor}",
                found.name
            );
            assert!(size.declared <= size.size_of, "{} {minor}", found.name);
        }
    }
}

#[test]
fn every_function_has_the_slots_that_were_measured() {
    let measured = measured();
    assert_eq!(measured["functions"].as_object().unwrap().len(), functions().len());
    for (name, spans) in measured["functions"].as_object().unwrap() {
        let found = function(name).unwrap();
        for minor in every_minor() {
            let row = of_minor(spans, minor, [0, 1]);
            let expected = row.map(|row| number(&row[2]) as usize);
            assert_eq!(found.offset(minor), expected, "{name} {minor}");
            assert_eq!(found.slot(minor), expected.map(|at| (at - 40) / 8), "{name} {minor}");
        }
    }
    // The slots of a minor fill its table.
    for minor in every_minor() {
        let mut slots: Vec<_> = functions().iter().filter_map(|found| found.slot(minor)).collect();
        slots.sort_unstable();
        let expected = (table_size(minor).unwrap().size_of - 40) / 8;
        assert_eq!(slots, (0..expected).collect::<Vec<_>>(), "{minor}");
    }
}

#[test]
fn no_function_has_moved_since_the_oldest_that_is_supported() {
    for found in functions() {
        let places: Vec<_> = every_minor()
            .filter(|minor| minor.is_supported())
            .filter_map(|minor| found.offset(minor))
            .collect();
        assert!(places.windows(2).all(|pair| pair[0] == pair[1]), "{}", found.name);
    }
    let moved = function("PJRT_Client_Compile").unwrap();
    assert_ne!(moved.slot(Minor::new(13)), moved.slot(Minor::OLDEST_SUPPORTED));
}

#[test]
fn fields_never_moved_but_in_one_struct() {
    let mut moved = Vec::new();
    for found in structures() {
        for after in found.fields {
            let is_late = u32::from(after.first) > Minor::APPEND_ONLY.number();
            let before = Minor::new(u32::from(after.first) - 1);
            // The field lies where the struct of the previous minor has something else.
            let overlaps = |field: &serdes_abi::pjrt::Field| {
                field.offset < after.offset + after.size && after.offset < field.offset + field.size
            };
            if is_late
                && found.fields(before).any(overlaps)
                && found.field(after.name, before).is_none_or(|old| old != after)
            {
                moved.push((found.name, after.first));
            }
        }
    }
    moved.dedup();
    assert_eq!(moved, [("PJRT_ProcessInfo", 75)]);
}

#[test]
fn macros_that_were_not_moved_with_their_struct_are_known() {
    let mut stale = Vec::new();
    for found in structures() {
        let minors: Vec<u32> =
            every_minor().filter(|minor| found.is_stale(*minor)).map(Minor::number).collect();
        if let (Some(first), Some(last)) = (minors.first(), minors.last()) {
            assert_eq!(minors.len() as u32, last - first + 1, "{}", found.name);
            let size = found.size(Minor::new(*last)).unwrap();
            stale.push((found.name, size.declared, found.end(Minor::new(*last)), *first, *last));
        }
    }
    assert_eq!(
        stale,
        [
            ("PJRT_CopyToDeviceStream_AddChunk_Args", 32, 40, 1, 2),
            ("PJRT_Device_AddressableMemories_Args", 32, 40, 13, 45),
            ("PJRT_Error_GetCode_Args", 24, 28, 1, 2),
            ("PJRT_Executable_DeserializeAndLoad_Args", 48, 64, 56, 56),
            ("PJRT_ExecuteOptions", 52, 72, 39, 45),
            ("PJRT_Plugin_Attributes_Args", 24, 32, 9, 70),
        ]
    );
    let tables: Vec<_> = minors()
        .iter()
        .filter(|record| record.declared < record.size_of)
        .map(|record| record.minor)
        .collect();
    assert_eq!(tables, [vec![35], (40..=56).collect()].concat());
}

#[test]
fn a_struct_is_handed_over_as_the_plug_in_was_built() {
    let at = |name: &str, minor| structure(name).unwrap().handover(Minor::new(minor));
    let exactly = |struct_size, memory| Some(Handover { struct_size, memory });
    // The struct is long enough for the field that its macro forgot, but its declared size omits
    // it.
    assert_eq!(at("PJRT_Plugin_Attributes_Args", 54), exactly(24, 32));
    assert_eq!(at("PJRT_Plugin_Attributes_Args", 71), exactly(32, 32));
    assert_eq!(at("PJRT_ExecuteOptions", 81), exactly(112, 112));
    assert_eq!(at("PJRT_ExecuteOptions", 108), exactly(121, 128));
    // A minor that is not known yet may have larger structs.
    assert_eq!(at("PJRT_ExecuteOptions", 118), exactly(160 + PADDING, 160 + PADDING));
    assert_eq!(at("PJRT_Error_Message_Args", 118), exactly(40 + PADDING, 40 + PADDING));
    // Elements of arrays cannot grow.
    assert_eq!(at("PJRT_NamedValue", 118), exactly(56, 56));
    assert_eq!(at("PJRT_ShapeSpec", 118), exactly(36, 40));
    // The struct does not exist yet.
    assert_eq!(at("PJRT_Client_CreateErrorBuffer_Args", 81), None);
}

#[test]
fn structs_of_the_newest_minors_are_what_plugins_demand() {
    // Reported by jax-cuda13-pjrt 0.12.0.1 (0.116) and libtpu 0.0.52 (0.117) when given no size;
    // 0.115 changed no struct.
    for (name, sizes) in [
        ("PJRT_Client_Create_Args", [88, 88, 88]),
        ("PJRT_Client_BufferFromHostBuffer_Args", [120, 120, 120]),
        ("PJRT_Buffer_Bitcast_Args", [64, 64, 64]),
        ("PJRT_Device_PoisonExecution_Args", [72, 72, 72]),
        ("PJRT_LoadedExecutable_Execute_Args", [80, 80, 80]),
        ("PJRT_ExecuteOptions", [144, 160, 160]),
        ("PJRT_Client_CreateErrorBuffer_Args", [112, 112, 120]),
    ] {
        let found = [115, 116, 117].map(|minor| {
            structure(name).and_then(|found| found.size(Minor::new(minor))).unwrap().declared
        });
        assert_eq!(found, sizes, "{name}");
    }
    let field = |name: &str, field: &str, minor| {
        structure(name).unwrap().field(field, Minor::new(minor)).map(|found| found.offset)
    };
    assert_eq!(field("PJRT_ExecuteOptions", "custom_options", 115), None);
    assert_eq!(field("PJRT_ExecuteOptions", "custom_options", 116), Some(144));
    assert_eq!(field("PJRT_Client_CreateErrorBuffer_Args", "device_layout", 117), Some(112));
}

#[test]
fn tables_are_as_long_as_plug_ins_of_the_field_say() {
    // Reported by eight plug-ins when they were loaded, and found in the code of two others.
    for (minor, reported) in [
        (54, 808),
        (80, 984),
        (81, 984),
        (106, 1128),
        (114, 1144),
        (115, 1144),
        (116, 1144),
        (117, 1144),
    ] {
        assert_eq!(table_size(Minor::new(minor)).unwrap().declared, reported, "0.{minor}");
    }
    assert_eq!(table_size(Minor::new(0)), None);
    assert_eq!(table_size(Minor::new(54)).unwrap().size_of, 840);
}

#[test]
fn enumerations_know_which_minor_brought_a_value() {
    let measured = measured();
    assert_eq!(measured["enums"].as_object().unwrap().len(), enumerations().len());
    for (name, described) in measured["enums"].as_object().unwrap() {
        let found = enumeration(name).unwrap();
        for row in rows(described) {
            for minor in every_minor() {
                let there = (number(&row[2])..=number(&row[3])).contains(&minor.number());
                let known = found.values(minor).any(|value| {
                    value.name == row[0] && i64::from(value.value) == row[1].as_i64().unwrap()
                });
                assert_eq!(known, there, "{name} {} {minor}", row[0]);
            }
        }
        for minor in every_minor() {
            let mut numbers: Vec<_> = found.values(minor).map(|value| value.value).collect();
            numbers.sort_unstable();
            assert!(numbers.windows(2).all(|pair| pair[0] != pair[1]), "{name} {minor}");
        }
    }
    let types = enumeration("PJRT_Buffer_Type").unwrap();
    assert_eq!(types.name_of(30, Minor::new(93)), None);
    assert_eq!(types.name_of(30, Minor::new(94)), Some("PJRT_Buffer_Type_S1"));
    assert_eq!(types.value("PJRT_Buffer_Type_S4", Minor::new(4)), Some(19));
    assert_eq!(types.value("PJRT_Buffer_Type_S4", Minor::new(117)), Some(21));
}

#[test]
fn a_minor_is_written_as_a_version() {
    assert_eq!(Minor::parse("0.54"), Some(Minor::new(54)));
    assert_eq!(Minor::new(112).to_string(), "0.112");
    for text in ["54", "0.", "0.054", "1.2", "0.5x", "0.-1", "0.99999999999", "0.+5", ""] {
        assert_eq!(Minor::parse(text), None, "{text}");
    }
    assert!(!Minor::new(28).is_supported() && Minor::new(200).is_supported());
    assert!(Minor::NEWEST.is_known() && !Minor::new(118).is_known() && !Minor::new(0).is_known());
}
