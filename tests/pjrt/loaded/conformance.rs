//! Tests the conformance suite on plug-ins in C: each fault switch fails the behaviour that it
//! breaks.

use std::collections::BTreeMap;

use serdes_pjrt::conformance;
use serdes_stream_executor::conformance::{Conformance, ConformanceOptions};

use super::plugins::Library;

/// Returns the outcome of each behaviour for a plug-in with these fault switches.
fn outcomes(switches: &[&str]) -> BTreeMap<&'static str, Conformance> {
    let library = Library::new(81, switches);
    let options = ConformanceOptions::new();
    let found = conformance::verify(library.path(), &[], options, |_| ()).unwrap();
    found.into_iter().map(|outcome| (outcome.behaviour, outcome.result)).collect()
}

#[test]
fn fault_switch_fails_the_behaviour_that_it_breaks() {
    let sound = outcomes(&[]);
    assert_eq!(sound.len(), conformance::behaviours().count());
    for (switches, behaviour) in [
        (&["TABLE_SAID=900"][..], "pjrt_table"),
        (&["NULL_SLOT=SLOT_PJRT_Event_Await"], "pjrt_required_functions"),
        (&["ENDLESS"], "pjrt_extensions"),
        (&["EQUAL_SIZES"], "pjrt_longer_arguments"),
        (&["NULL_MESSAGE"], "pjrt_errors"),
        (&["NULL_CLIENT"], "pjrt_client"),
        (&["NULL_BUFFER"], "pjrt_put"),
        (&["RANK_SAID=(size_t)-1"], "pjrt_shapes"),
        (&["FAILING=\"PJRT_Client_BufferFromHostBuffer\""], "pjrt_strides"),
        (&["TYPE_SAID=99"], "pjrt_type_f32"),
        (&["SIZE_SAID=0"], "pjrt_type_s8"),
        (&["FAILING=\"PJRT_Buffer_CopyRawToHost\""], "pjrt_read_raw"),
        (&["FAILING=\"PJRT_Buffer_CopyToDevice\""], "pjrt_copy_to_device"),
        (&["FAILING=\"PJRT_Buffer_CopyToMemory\""], "pjrt_copy_to_memory"),
        (&["FAILING=\"PJRT_Buffer_Delete\""], "pjrt_delete"),
        (&["EVENT_FAILS"], "pjrt_ready_event"),
        (&["FAILING=\"PJRT_Buffer_ToHostBuffer\""], "pjrt_threads"),
    ] {
        assert_eq!(sound[behaviour], Conformance::Pass, "{behaviour}");
        assert_eq!(outcomes(switches)[behaviour], Conformance::Fail, "{switches:?}: {behaviour}");
    }
}

#[test]
fn a_plug_in_that_makes_no_client_is_skipped_from_there_on() {
    let found = outcomes(&["FAILING=\"PJRT_Client_Create\""]);
    assert_eq!(found["pjrt_client"], Conformance::Skipped);
    assert!(!found.contains_key("pjrt_put"), "{found:?}");
}

#[test]
fn plugin_that_cannot_be_called_fails_only_the_load_check() {
    for switches in [&["NULL_TABLE"][..], &["MINOR_SAID=28"], &["MAJOR_SAID=1"]] {
        let found = outcomes(switches);
        assert_eq!(found, BTreeMap::from([("pjrt_load", Conformance::Fail)]), "{switches:?}");
    }
}

#[test]
fn the_behaviours_behind_those_that_were_tried_are_the_rest() {
    let library = Library::new(81, &[]);
    let names: Vec<_> = conformance::behaviours().collect();
    for skip in [1, 2, names.len() - 1, names.len()] {
        let options = ConformanceOptions::new().with_skip(skip);
        let found = conformance::verify(library.path(), &[], options, |_| ()).unwrap();
        let found: Vec<_> = found.iter().map(|outcome| outcome.behaviour).collect();
        assert_eq!(found, names[skip..], "{skip}");
    }
}
