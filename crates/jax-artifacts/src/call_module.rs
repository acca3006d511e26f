//! Modules in TensorFlow models: the operation `XlaCallModule`, which jax2tf writes.

use serdes_mlir_bytecode::MAGIC;

use crate::{
    bytecode::Module,
    judgement::{Reason, Verdict},
    module_reasons::needs,
    release::{Release, StableHlo},
    rule::Rule,
};

/// The versions of the operation that a release of TensorFlow runs.
struct Window {
    tensorflow: (u32, u32),
    oldest: u64,
    newest: u64,
}

/// The maxima are from the wheels, from 2.14, and from the sources of 2.13 and 2.12. The minimum is
/// from the sources of mid-2023 and the wheel of 2.21.
const WINDOWS: [Window; 10] = [
    window(12, 2, 4),
    window(13, 2, 5),
    window(14, 2, 8),
    window(15, 2, 8),
    window(16, 2, 9),
    window(17, 2, 9),
    window(18, 2, 9),
    window(19, 2, 9),
    window(20, 4, 10),
    window(21, 4, 10),
];

const fn window(minor: u32, oldest: u64, newest: u64) -> Window {
    Window { tensorflow: (2, minor), oldest, newest }
}

/// TensorFlow 2.21's StableHLO knows the same operations as this version, that of jaxlib 0.8.0.
const STABLEHLO_OF_TENSORFLOW: StableHlo = StableHlo::new(1, 13, 1);

/// Returns the problems that a release of TensorFlow has with an `XlaCallModule` when it runs it;
/// loading a model checks nothing of it.
///
/// `version` and `module` are the attributes of that name, `tensorflow` a release such as `2.16`.
/// Returns nothing for a release other than 2.12 to 2.21. The features that a release's StableHLO
/// knows are measured for 2.21 only; for older releases only the version is compared.
///
/// ```
/// use serdes_jax_artifacts::{Verdict, xla_call_module};
///
/// let (verdict, reasons) = xla_call_module(10, &[], "2.16").expect("a known release");
/// assert_eq!(verdict, Verdict::Unacceptable);
/// assert_eq!(reasons[0].expected, "2..9");
/// ```
#[must_use]
pub fn xla_call_module(
    version: u64,
    module: &[u8],
    tensorflow: &str,
) -> Option<(Verdict, Vec<Reason>)> {
    let mut numbers = tensorflow.split('.').map(str::parse);
    let release = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    let window = WINDOWS.iter().find(|window| window.tensorflow == release)?;
    let mut reasons = Vec::new();
    if !(window.oldest..=window.newest).contains(&version) {
        let is_new = version > window.newest;
        let expected = format!("{}..{}", window.oldest, window.newest);
        let message = format!(
            "XlaCallModule has version {version}, and TensorFlow {tensorflow} runs {expected}"
        );
        let first =
            WINDOWS.iter().find(|window| (window.oldest..=window.newest).contains(&version));
        let load = first.map_or("no known TensorFlow runs it".to_owned(), |window| {
            format!(
                "run it with TensorFlow {}.{} or later",
                window.tensorflow.0, window.tensorflow.1
            )
        });
        let remedy = if is_new {
            format!(
                "{load}, or convert the model with JAX_EXPORT_CALLING_CONVENTION_VERSION={}",
                window.newest
            )
        } else {
            "convert the model again with a newer jax".to_owned()
        };
        let rule = if is_new { Rule::TooNew } else { Rule::TooOld };
        let found = version.to_string();
        reasons.push(Reason {
            rule,
            found,
            expected,
            message,
            remedy,
            place: "version".to_owned(),
        });
    }
    if release == (2, 21) && module.starts_with(MAGIC) {
        add_module(module, &mut reasons);
    }
    let verdict = match reasons.as_slice() {
        [] => Verdict::Acceptable,
        reasons if reasons.iter().all(|reason| reason.rule == Rule::Corrupt) => Verdict::Unreadable,
        _ => Verdict::Unacceptable,
    };
    Some((verdict, reasons))
}

fn add_module(module: &[u8], reasons: &mut Vec<Reason>) {
    let Some(reader) = Release::find("0.8.0") else { return };
    debug_assert_eq!(reader.stablehlo, STABLEHLO_OF_TENSORFLOW);
    let module = Module::read(module);
    for need in needs(&module, reader, true) {
        let remedy = "convert the model with jax 0.11.1 or older".to_owned();
        let message = need.message.replace(&reader.to_string(), "TensorFlow 2.21");
        let place = "module".to_owned();
        let (rule, found, expected) = (need.rule, need.found, need.expected);
        reasons.push(Reason { rule, found, expected, message, remedy, place });
    }
    // Measured for a Cholesky factorization: jaxlib has these functions, and TensorFlow does not.
    let is_lapack = |target: &&String| target.starts_with("lapack_");
    for target in module.custom_calls.keys().filter(is_lapack).take(MOST_TARGETS) {
        reasons.push(Reason {
            rule: Rule::NotCallable,
            found: target.clone(),
            expected: "functions of TensorFlow".to_owned(),
            message: format!("it calls {target}, which jaxlib has, and TensorFlow 2.21 does not"),
            remedy: "compute that part with TensorFlow, or run the function with jax".to_owned(),
            place: "module".to_owned(),
        });
    }
}

/// Limit on the LAPACK functions that are listed for a module.
const MOST_TARGETS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_lapack_are_not_those_of_tensorflow() {
        let path =
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/files/cholesky-0.11.0.jaxexport");
        let export = std::fs::read(path).unwrap();
        // The module is a vector of the flatbuffer, preceded by its length.
        let at = export.windows(4).position(|bytes| bytes == MAGIC).unwrap();
        let length = u32::from_le_bytes(*export[at - 4..].first_chunk().unwrap()) as usize;
        let module = &export[at..at + length];
        let (verdict, reasons) = xla_call_module(10, module, "2.21").unwrap();
        assert_eq!(verdict, Verdict::Unacceptable);
        assert!(reasons.iter().any(|reason| reason.rule == Rule::NotCallable), "{reasons:?}");
        assert_eq!(xla_call_module(10, module, "2.20").unwrap().1, []);
    }
}
