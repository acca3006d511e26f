//! Names of packages, in the normal form of PEP 503.

use pep508_rs::PackageName;

/// Returns the normal form of a package's name; `None` for an invalid name.
pub(crate) fn normal(name: &str) -> Option<String> {
    PackageName::new(name.trim().to_owned()).ok().map(|name| name.to_string())
}

/// The distributions that install TensorFlow itself, into the folder `tensorflow`.
pub(crate) const TENSORFLOW: [&str; 9] = [
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-gpu",
    "tensorflow-macos",
    "tensorflow-intel",
    "tensorflow-cpu-aws",
    "tensorflow-rocm",
    "tensorflow-tpu",
    "tf-nightly",
];

/// The judged packages, apart from those with a judged prefix.
const JUDGED: [&str; 30] = [
    "jax",
    "jaxlib",
    "libtpu",
    "libtpu-nightly",
    "torch",
    "torch-xla",
    "tensorflow-text",
    "tf-keras",
    "tensorflow-io",
    "tensorflow-metal",
    "intel-extension-for-tensorflow",
    "intel-extension-for-openxla",
    "jax-metal",
    "jax-mps",
    "jax-graft",
    "metal-pjrt-core",
    "metal-pjrt-plugin",
    "jax-qnn",
    "keras",
    "numpy",
    "ml-dtypes",
    "protobuf",
    "scipy",
    "orbax-checkpoint",
    "tensorstore",
    "flax",
    "safetensors",
    "xla-cpu-pjrt",
    "fastatomstruct-xla-cpu",
    "lammps-jax-pjrt-cpu",
];

/// Returns true if the package with this normal name is judged.
#[must_use]
pub fn is_judged(name: &str) -> bool {
    JUDGED.contains(&name)
        || TENSORFLOW.contains(&name)
        || name.starts_with("nvidia-")
        || (name.starts_with("jax-") && (name.ends_with("-plugin") || name.ends_with("-pjrt")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_names_ignore_case_and_separators() {
        assert_eq!(normal("ML_Dtypes").as_deref(), Some("ml-dtypes"));
        assert_eq!(normal("jax.cuda12--plugin").as_deref(), Some("jax-cuda12-plugin"));
        assert_eq!(normal("../etc"), None);
    }

    #[test]
    fn judged_names_include_plugins_and_cuda_libraries() {
        for name in ["jax-rocm7-pjrt", "jax-cuda13-plugin", "nvidia-cudnn-cu12", "tensorflow-cpu"] {
            assert!(is_judged(name), "{name}");
        }
        assert!(!is_judged("requests"));
    }
}
