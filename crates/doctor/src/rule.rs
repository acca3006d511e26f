//! The rules: their ids, and their texts for users.

use std::fmt;

macro_rules! rules {
    ($(#[$of:meta])* $kind:ident { $($variant:ident = $id:literal, $meaning:literal, $example:literal, $remedy:literal;)* }) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $kind {
            $(#[doc = $meaning] $variant,)*
        }

        impl $kind {
            /// Every rule.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the id, for programs.
            #[must_use]
            pub fn id(self) -> &'static str {
                match self { $(Self::$variant => $id,)* }
            }

            /// Returns the condition under which the rule speaks.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }

            /// Returns an environment of which the rule speaks.
            #[must_use]
            pub fn example(self) -> &'static str {
                match self { $(Self::$variant => $example,)* }
            }

            /// Returns the rule with this id.
            #[must_use]
            pub fn named(id: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|rule| rule.id() == id)
            }

            /// Returns the general advice.
            #[must_use]
            pub fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy,)* }
            }
        }

        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.id())
            }
        }
    };
}

rules! {
    /// A rule of which a violation means that the environment does not fit.
    Rule {
        JaxlibMissing = "jaxlib_missing", "jax is installed and jaxlib is not.", "jax 0.4.29, of which plain `pip install jax` brings no jaxlib.", "Install the jaxlib of the same version as jax.";
        JaxlibTooOld = "jaxlib_too_old", "jaxlib is older than the minimum that jax names in its version file; jax refuses it at import.", "jax 0.10.2 with jaxlib 0.10.0: it takes 0.10.1 and newer.", "Raise jaxlib to the version of jax.";
        JaxlibTooNew = "jaxlib_too_new", "jaxlib is newer than jax; jax refuses it at import. Every number of the version counts.", "jax 0.12.0 with jaxlib 0.12.0.1.", "Bring jax and jaxlib to one version.";
        PluginJaxlibDiffer = "plugin_jaxlib_differ", "A plug-in whose version jaxlib compares with its own has another number; jaxlib leaves its kernels out.", "jax-cuda12-plugin 0.9.2 beside jaxlib 0.9.0.1.", "Install both halves of the plug-in in jaxlib's version.";
        PluginHalvesDiffer = "plugin_halves_differ", "The two packages of a plug-in, `-plugin` and `-pjrt`, are of different versions.", "jax-cuda12-plugin 0.9.2 with jax-cuda12-pjrt 0.9.1, after an edit of a lock.", "Install both in one version.";
        PluginHalfInstalled = "plugin_half_installed", "One of the two packages of a plug-in, `-plugin` and `-pjrt`, is not installed.", "jax-cuda12-plugin after `pip uninstall jax-cuda12-pjrt`.", "Install the other one in the same version, or remove the first.";
        PluginModuleMissing = "plugin_module_missing", "An entry point names a module that is not there; jax logs that and goes on without the device.", "jax-cuda13-pjrt of which the folder `jax_plugins/xla_cuda13` was deleted.", "Install the package again.";
        PluginLibraryMissing = "plugin_library_missing", "The module of a plug-in has no library.", "`jax_plugins/xla_cuda12` without `xla_cuda_plugin.so`.", "Install the package again.";
        PluginsSamePlatform = "plugins_same_platform", "Two plug-ins register one platform; the second is refused, and which one is second changes from run to run.", "jax-cuda12-pjrt and jax-cuda13-pjrt, which both register `cuda`.", "Remove one of them.";
        Libtpu = "libtpu", "torch_xla has another libtpu than the one that it pins.", "torch_xla 2.8.0, which pins libtpu 0.0.17, with libtpu 0.0.23.", "Install the pinned libtpu, or move torch_xla.";
        TorchXlaTorch = "torch_xla_torch", "torch and torch_xla differ in MAJOR.MINOR; torch_xla links torch's C++ symbols.", "torch_xla 2.8.0 with torch 2.9.0.", "Install both in one MAJOR.MINOR.";
        CudaLibraryMissing = "cuda_library_missing", "Libraries of NVIDIA are installed as packages, and one that the plug-in needs is not among them.", "jax-cuda13-plugin with nvidia-cublas-cu13 0.0.1, which is an empty package; nvidia-cublas is the real one.", "Install the plug-in with its libraries: `jax[cuda12]` or `jax[cuda13]`.";
        CudaLibraryTooOld = "cuda_library_too_old", "A library of NVIDIA is older than what the plug-in was built with: cuDNN of another major or of an older minor, another one below JAX's minimum.", "jax-cuda12-plugin 0.6.0, built with cuDNN 9.8, beside torch 2.6, which pins cuDNN 9.1.", "Raise the library, or what pins it.";
        DriverTooOld = "driver_too_old", "NVIDIA's driver is older than the major of CUDA wants.", "jax-cuda13-pjrt over driver 535.104.05: CUDA 13 wants 580.65.06.", "Update the driver, or take the plug-in for the older CUDA.";
        Numpy = "numpy", "A component was built for the other major of NumPy.", "tensorflow 2.17 with NumPy 2.2.", "Change NumPy, or the component.";
        MlDtypes = "ml_dtypes", "ml_dtypes is outside of what a component was built for.", "tensorflow 2.21 with ml_dtypes 0.4.1.", "Change ml_dtypes.";
        Protobuf = "protobuf", "The runtime of Protocol Buffers does not take the code that was generated for a component.", "tensorflow 2.21, generated by protobuf 6.31.1, with protobuf 5.29.5.", "Change protobuf.";
        Keras = "keras", "Keras is of another major than TensorFlow was built for.", "tensorflow 2.15 with Keras 3.", "Change Keras, or TensorFlow.";
        TensorflowExtension = "tensorflow_extension", "An extension of TensorFlow is for another MAJOR.MINOR.", "tensorflow-text 2.20 with tensorflow 2.21.", "Bring both to one MAJOR.MINOR.";
        SymbolsMissing = "symbols_missing", "A library in `tensorflow-plugins` needs functions that TensorFlow does not export; importing TensorFlow fails.", "`tensorflow-plugins/libmetal_plugin.dylib` of tensorflow-metal 1.2.0 with tensorflow 2.20.", "Change TensorFlow, or remove the plug-in.";
        UndeclaredNeed = "undeclared_need", "A need that was measured or reported, and that the metadata does not declare.", "jax-metal 0.1.1 with jax 0.6.0: it works up to jax 0.5.0, and declares no upper bound.", "Change one of the two packages.";
        Requirement = "requirement", "A package declares a requirement on another that the installed version does not meet.", "flax that declares `jax>=0.8` with jax 0.7.2.", "Install a version that meets it.";
        SameFiles = "same_files", "Two packages own the same files; whichever was installed last is there.", "tensorflow and tensorflow-cpu, both in the folder `tensorflow`.", "Remove both, and install one.";
        MetadataDiffers = "metadata_differs", "The version file and the metadata of a package disagree, and the answer depends on which is right.", "`jaxlib/version.py` says 0.9.2 and `jaxlib-0.9.1.dist-info` 0.9.1, and jax is 0.9.1.", "Install the package again.";
        FilesMissing = "files_missing", "Files that the record of a package lists are not there.", "jaxlib of which an interrupted update removed `jaxlib/_jax.so`.", "Install the package again.";
        FilesChanged = "files_changed", "Files of a package have another size than its record says.", "jax of which `jax/version.py` was edited.", "Install the package again.";
        PythonVersion = "python_version", "A package does not declare this Python among those that it runs on.", "jax 0.11.0, which declares Python 3.12 and newer, in a Python 3.11.", "Take a version of the package that does.";
        PythonAbi = "python_abi", "The extension modules of a package are for another Python.", "jaxlib of the wheel `cp312-cp312-manylinux_2_27_x86_64` in a Python 3.13.", "Install the package again with this Python.";
        ArtifactType = "artifact_type", "A safetensors file has an element type that the installed safetensors does not read.", "A file with tensors of the type `F8_E8M0` and safetensors 0.5.3.", "Raise safetensors.";
        Glibc = "glibc", "A package needs a newer C library than the system has.", "libtpu of `manylinux_2_31` in an image with glibc 2.28.", "Take a newer system, or an older release of the package.";
        Architecture = "architecture", "A package is for another machine.", "A wheel for aarch64 in an image for x86_64, or one for macOS on Linux.", "Install the package for this machine.";
        MinorsDiffer = "minors_differ", "jaxlib takes plug-ins of its own PJRT minor alone (until 0.4.31), and the plug-in has another.", "jaxlib 0.4.28 (PJRT 0.51) with jax-cuda12-pjrt 0.4.30 (PJRT 0.54).", "Bring the plug-in and jaxlib to one version.";
        PluginTooOld = "plugin_too_old", "A PJRT plug-in is older than the oldest minor that jaxlib takes.", "A plug-in of PJRT 0.28 with jaxlib 0.9.1, which takes 0.29 and newer.", "Take a newer plug-in.";
        SlotsMoved = "slots_moved", "The table of functions has another order in the minors of the plug-in and of jaxlib: a call would reach another function.", "A plug-in of a minor before functions were moved, and a jaxlib of one after.", "Bring the plug-in and jaxlib to one version.";
        StructTooShort = "struct_too_short", "The plug-in demands a longer struct than jaxlib declares.", "libtpu 0.0.23 with torch_xla 2.8: expected 32, got 24.", "Bring the plug-in and jaxlib to one version.";
        StructSizeDiffers = "struct_size_differs", "The plug-in demands exactly its own size of a struct, and jaxlib declares another.", "A plug-in that checks for equal sizes, and a jaxlib of another minor.", "Bring the plug-in and jaxlib to one version.";
        FunctionMissing = "function_missing", "jaxlib needs a function that the table of the plug-in does not have.", "A plug-in of an older minor, with a jaxlib that calls a newer function.", "Take a newer plug-in.";
        StableHlo = "stablehlo", "There is no version of StableHLO that jaxlib writes and the plug-in reads.", "A plug-in that says StableHLO 0.8, and a jaxlib that writes 0.9 and newer.", "Take a newer plug-in.";
    }
}

rules! {
    /// A rule that only warns.
    WarningRule {
        DriverUnknown = "driver_unknown", "NVIDIA's driver is not visible.", "A container image into which the driver is mounted when it starts.", "Nothing, if the driver is mounted later.";
        LibrariesElsewhere = "libraries_elsewhere", "CUDA's libraries are not installed as packages; the loader's path decides.", "jax[cuda12-local], with CUDA from the system.", "Check the loader's path.";
        NewerThanKnown = "newer_than_known", "A release is newer than the tables of this build; its own files were judged.", "A jax that came after this build.", "Update serdes.";
        LibtpuUnpinned = "libtpu_unpinned", "libtpu is not the one that jax pins, and nothing is known against it.", "jax 0.9.0, which pins libtpu 0.0.34, with libtpu 0.0.37.", "Nothing, unless it fails.";
        DuplicateMetadata = "duplicate_metadata", "A package has metadata of two versions.", "jaxlib-0.9.1.dist-info beside jaxlib-0.9.2.dist-info.", "Install the package again.";
        MetadataDiffers = "metadata_differs", "The version file and the metadata of a package disagree.", "`numpy/version.py` and its metadata give two versions.", "Install the package again.";
        OldPlugin = "old_plugin", "The vendor says of a plug-in no more than what it was tested with.", "intel-extension-for-openxla, which declares nothing of jax.", "Look for a newer one.";
        UnknownMinor = "unknown_minor", "A version of PJRT is newer than the table of layouts, and was taken for the newest of it.", "A plug-in of next month.", "Update serdes.";
        NotJudged = "not_judged", "A part of the environment was not judged.", "A requirements file with `numpy>=2`, which does not say what is installed.", "Read the message.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_ids_of_their_own() {
        let mut ids: Vec<&str> = Rule::ALL.iter().map(|rule| rule.id()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), Rule::ALL.len());
    }
}
