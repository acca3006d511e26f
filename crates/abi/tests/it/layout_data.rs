//! The descriptions in this crate against the layouts measured from the published headers
//! (layouts.json).

use serde_json::{Value, json};
use serdes_abi::{
    Layout, RFC_257, TENSORFLOW_2_4, TENSORFLOW_2_5, TENSORFLOW_2_8, TENSORFLOW_2_14, Zero,
};

fn measured() -> Value {
    serde_json::from_str(include_str!("../../layouts.json")).expect("the measured layouts are JSON")
}

/// Returns a section of the file, in which structs that equal the released ones are filled in.
fn section(measured: &Value, section: &Value) -> Value {
    let mut filled = section.clone();
    for (name, structure) in filled.as_object_mut().expect("a section is an object") {
        if structure.get("same_as").is_some() {
            *structure = measured["released"][name].clone();
        }
    }
    filled
}

fn described(layout: &Layout) -> Value {
    layout
        .structs
        .iter()
        .map(|structure| {
            let fields: Vec<Value> = structure
                .fields
                .iter()
                .map(|field| {
                    let mut described = json!({"name": field.name, "kind": field.kind, "offset": field.offset, "size": field.size});
                    match field.zero {
                        Zero::Required => described["required"] = true.into(),
                        // "Not provided" is a value as well: such a field cannot be deprecated by
                        // leaving it zero.
                        Zero::Optional | Zero::Value => described["zero"] = "meaningful".into(),
                        Zero::NoOp => described["zero"] = "no-op".into(),
                    }
                    described
                })
                .collect();
            let description = json!({
                "sizeof": structure.size_of,
                "alignof": structure.align_of,
                "struct_size_macro": structure.struct_size_macro,
                "macro_last_field": structure.macro_last_field,
                "struct_size": structure.struct_size,
                "fields": fields,
            });
            (structure.name.to_owned(), description)
        })
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[test]
fn every_layout_is_the_measured_one() {
    let measured = measured();
    for (layout, expected) in [
        (&TENSORFLOW_2_14, &measured["released"]),
        (&TENSORFLOW_2_14, &measured["history"]["2.14.1"]),
        (&TENSORFLOW_2_8, &measured["history"]["2.8.4"]),
        (&TENSORFLOW_2_5, &measured["history"]["2.6.5"]),
        (&TENSORFLOW_2_5, &measured["history"]["2.5.3"]),
        (&TENSORFLOW_2_4, &measured["history"]["2.4.4"]),
        (&RFC_257, &measured["rfc"]),
    ] {
        assert_eq!(described(layout), section(&measured, expected), "layout {}", layout.name);
    }
}

#[test]
fn version_and_event_states_are_the_measured_ones() {
    let measured = measured();
    for version in ["released_version", "rfc_version"] {
        assert_eq!(measured[version]["SE_MAJOR"], serdes_abi::SE_MAJOR);
        assert_eq!(measured[version]["SE_MINOR"], serdes_abi::SE_MINOR);
        assert_eq!(measured[version]["SE_PATCH"], serdes_abi::SE_PATCH);
    }
    let states = &measured["enum_SE_EventStatus"];
    assert_eq!(states["size"], size_of::<serdes_abi::SE_EventStatus>());
    assert_eq!(states["SE_EVENT_UNKNOWN"], serdes_abi::SE_EventStatus::UNKNOWN.0);
    assert_eq!(states["SE_EVENT_ERROR"], serdes_abi::SE_EventStatus::ERROR.0);
    assert_eq!(states["SE_EVENT_PENDING"], serdes_abi::SE_EventStatus::PENDING.0);
    assert_eq!(states["SE_EVENT_COMPLETE"], serdes_abi::SE_EventStatus::COMPLETE.0);
}

#[test]
fn layouts_are_found_by_name() {
    for layout in serdes_abi::LAYOUTS {
        assert_eq!(serdes_abi::layout_named(layout.name), Some(layout));
    }
    assert_eq!(serdes_abi::layout_named("tensorflow-2.3"), None);
}
