//! Detects programs whose run is unbounded: those with loops, and those whose parts wait for one
//! another.
//!
//! Other programs compute as many values as their types say, and end. Programs that may not end are
//! launched with more care, and do not share their devices.

use serdes::stablehlo::Program;

/// Operations that may run forever, without their versions: loops, and exchanges whose other part
/// may never arrive. Calls of functions of the client (`send`, `recv`) have their own time limit.
const OPERATIONS: &[&str] = &[
    "all_gather",
    "all_reduce",
    "all_to_all",
    "async_start",
    "collective_broadcast",
    "collective_permute",
    "collective_reduce",
    "infeed",
    "outfeed",
    "reduce_scatter",
    "while",
];

/// Prefixes of functions that are markers for a compiler, and no code.
const MARKS: &[&str] = &["Sharding", "SPMD", "xla.sdy.", "annotate_device_placement"];

/// Returns true if the run of a program is unbounded, or the program cannot be read.
pub(super) fn is_possible(artifact: &[u8]) -> bool {
    let Ok(program) = Program::read(artifact) else { return true };
    let is_mark = |name: &str| {
        name != "mhlo.topk"
            && (name.starts_with("mhlo.") || MARKS.iter().any(|mark| name.starts_with(mark)))
    };
    let in_operations = program.operations().any(|operation| {
        let name = operation.rsplit_once("_v").map_or(operation, |(name, _)| name);
        OPERATIONS.contains(&name)
    });
    // An inconsistent comparator may keep an unstable sort from ending.
    in_operations
        || program.has_unstable_sorts()
        || program.custom_calls().any(|name| !name.is_some_and(is_mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! is_possible {
        ($name:literal) => {
            is_possible(include_bytes!(concat!(
                "../../../../../tests/data/stablehlo/",
                $name,
                ".mlirbc"
            )))
        };
    }

    #[test]
    fn endless_are_loops_exchanges_and_unknown_functions() {
        assert!(is_possible!("psum-1.13.3") && is_possible!("cholesky-1.22.0"));
        assert!(is_possible!("endless_while-1.10.9") && is_possible!("endless_sort-1.10.9"));
        assert!(
            is_possible!("sorts-1.10.9")
                && is_possible!("infeed-1.10.9")
                && is_possible(b"no program")
        );
    }

    #[test]
    fn endless_is_no_program_of_plain_operations() {
        assert!(!is_possible!("add-1.22.0") && !is_possible!("pooling_gradient-1.22.0"));
        let sorts = Program::read(include_bytes!(
            "../../../../../tests/data/stablehlo/sorts-1.10.9.mlirbc"
        ));
        assert!(!is_possible(&sorts.unwrap().with_stable_sorts().unwrap().unwrap()));
        assert!(!is_possible!("send-1.10.9") && !is_possible!("recv-1.10.9"));
    }
}
