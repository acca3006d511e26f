//! The function attributes that `tf.saved_model.load` accepts when it makes a Python function of a
//! library function.
//!
//! Read from the lists of 2.12, 2.16 and 2.21 (`attributes.py` among the code of `tf.function`): an
//! attribute that one of these has and the one before lacks counts as known to all releases between
//! them.
//!
//! Depends on names and releases, but not on the use of attributes.

/// Attributes that every release knows, sorted.
const KNOWN: [&str; 34] = [
    "_OutputsOnOpDevice",
    "_XlaCompile",
    "_XlaMustCompile",
    "_XlaScope",
    "_XlaSeparateCompiledGradients",
    "_construction_context",
    "_disable_call_shape_inference",
    "_implements",
    "_input_shapes",
    "_noinline",
    "_original_func_name",
    "_tf_data_function",
    "_tftrt_allow_build_at_runtime",
    "_tftrt_convert_function",
    "_tftrt_is_dyn_op",
    "_tftrt_max_batch_size",
    "_tftrt_max_cached_engines",
    "_tftrt_max_workspace_size_bytes",
    "_tftrt_minimum_segment_size",
    "_tftrt_precision_mode",
    "_tftrt_profile_strategy",
    "_tftrt_trt_logger_name",
    "_tftrt_use_calibration",
    "_tftrt_use_implicit_batch",
    "api_implements",
    "api_preferred_device",
    "backward_function_name",
    "experimental_ints_on_device",
    "forward_function_name",
    "go_backwards",
    "shared_rendezvous",
    "tf_quant.composite_function",
    "tf_quant.quantized_ops",
    "time_major",
];

/// Later attributes, with the GraphDef version of the first release that may know them.
const LATER: [(&str, i32); 4] = [
    ("_disable_acd", TENSORFLOW_2_13),
    ("disable_summaries_at_runtime", TENSORFLOW_2_13),
    ("function_runs_at_most_once", TENSORFLOW_2_17),
    ("runtime_constant_optimization", TENSORFLOW_2_13),
];
const TENSORFLOW_2_13: i32 = 1482;
const TENSORFLOW_2_17: i32 = 1882;

/// Returns true if every release knows an attribute of this name.
pub fn is_known_to_all(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(|name| KNOWN.binary_search(&name).is_ok())
}

/// Returns true if the release with this GraphDef version knows an attribute of this name.
pub fn is_known(name: &str, release: i32) -> bool {
    let later = LATER.iter().find(|(later, _)| *later == name);
    is_known_to_all(name.as_bytes()) || later.is_some_and(|(_, since)| release >= *since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_that_came_later_is_known_from_then_on() {
        assert!(KNOWN.is_sorted());
        assert!(is_known("_noinline", 1395) && is_known_to_all(b"_noinline"));
        for (name, since) in LATER {
            assert!(!is_known_to_all(name.as_bytes()));
            assert!(is_known(name, since) && !is_known(name, since - 1), "{name}");
        }
        assert!(!is_known("", i32::MAX) && !is_known("_v", i32::MAX));
    }
}
