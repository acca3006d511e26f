//! The rules: ids for programs, and what people read of them.

use std::fmt;

macro_rules! rules {
    ($(#[$of:meta])* $kind:ident { $($variant:ident = $id:literal, $meaning:literal, $remedy:literal;)* }) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $kind {
            $(#[doc = $meaning] $variant,)*
        }

        impl $kind {
            /// Every rule.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The id, for programs.
            #[must_use]
            pub fn id(self) -> &'static str {
                match self { $(Self::$variant => $id,)* }
            }

            /// The condition under which the rule speaks.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }

            /// The general advice.
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
        JaxlibMissing = "jaxlib_missing", "jax is installed and jaxlib is not.", "Install the jaxlib of the same version as jax.";
        JaxlibTooOld = "jaxlib_too_old", "jaxlib is older than the minimum that jax names in its version file; jax refuses it at import.", "Raise jaxlib to the version of jax.";
        JaxlibTooNew = "jaxlib_too_new", "jaxlib is newer than jax; jax refuses it at import. Every number of the version counts.", "Bring jax and jaxlib to one version.";
        PluginJaxlibDiffer = "plugin_jaxlib_differ", "A plug-in whose version jaxlib compares with its own has another number; jaxlib leaves its kernels out.", "Install both halves of the plug-in in jaxlib's version.";
        PluginHalvesDiffer = "plugin_halves_differ", "The two packages of a plug-in, `-plugin` and `-pjrt`, are of different versions.", "Install both in one version.";
        PluginHalfInstalled = "plugin_half_installed", "One of the two packages of a plug-in, `-plugin` and `-pjrt`, is not installed.", "Install the other one in the same version, or remove the first.";
        PluginModuleMissing = "plugin_module_missing", "An entry point names a module that is not there; jax logs that and goes on without the device.", "Install the package again.";
        PluginLibraryMissing = "plugin_library_missing", "The module of a plug-in has no library.", "Install the package again.";
        PluginsSamePlatform = "plugins_same_platform", "Two plug-ins register one platform; the second is refused, and which one is second changes from run to run.", "Remove one of them.";
        Libtpu = "libtpu", "torch_xla has another libtpu than the one that it pins.", "Install the pinned libtpu, or move torch_xla.";
        TorchXlaTorch = "torch_xla_torch", "torch and torch_xla differ in MAJOR.MINOR; torch_xla links torch's C++ symbols.", "Install both in one MAJOR.MINOR.";
        CudaLibraryMissing = "cuda_library_missing", "Libraries of NVIDIA are installed as packages, and one that the plug-in needs is not among them.", "Install the plug-in with its libraries: `jax[cuda12]` or `jax[cuda13]`.";
        CudaLibraryTooOld = "cuda_library_too_old", "A library of NVIDIA is older than what the plug-in was built with: cuDNN of another major or of an older minor, another one below JAX's minimum.", "Raise the library, or what pins it.";
        DriverTooOld = "driver_too_old", "NVIDIA's driver is older than the major of CUDA wants.", "Update the driver, or take the plug-in for the older CUDA.";
        Numpy = "numpy", "A component was built for the other major of NumPy.", "Change NumPy, or the component.";
        MlDtypes = "ml_dtypes", "ml_dtypes is outside of what a component was built for.", "Change ml_dtypes.";
        Protobuf = "protobuf", "The runtime of Protocol Buffers does not take the code that was generated for a component.", "Change protobuf.";
        Keras = "keras", "Keras is of another major than TensorFlow was built for.", "Change Keras, or TensorFlow.";
        TensorflowExtension = "tensorflow_extension", "An extension of TensorFlow is for another MAJOR.MINOR.", "Bring both to one MAJOR.MINOR.";
        SymbolsMissing = "symbols_missing", "A library in `tensorflow-plugins` needs functions that TensorFlow does not export; importing TensorFlow fails.", "Change TensorFlow, or remove the plug-in.";
        UndeclaredNeed = "undeclared_need", "A need that was measured or reported, and that the metadata does not declare.", "Change one of the two packages.";
        Requirement = "requirement", "A package declares a requirement on another that the installed version does not meet.", "Install a version that meets it.";
        SameFiles = "same_files", "Two packages own the same files; whichever was installed last is there.", "Remove both, and install one.";
        MetadataDiffers = "metadata_differs", "The version file and the metadata of a package disagree, and the answer depends on which is right.", "Install the package again.";
        FilesMissing = "files_missing", "Files that the record of a package lists are not there.", "Install the package again.";
        FilesChanged = "files_changed", "Files of a package have another size than its record says.", "Install the package again.";
        PythonVersion = "python_version", "A package does not declare this Python among those that it runs on.", "Take a version of the package that does.";
        PythonAbi = "python_abi", "The extension modules of a package are for another Python.", "Install the package again with this Python.";
        ArtifactType = "artifact_type", "A safetensors file has an element type that the installed safetensors does not read.", "Raise safetensors.";
        Glibc = "glibc", "A package needs a newer C library than the system has.", "Take a newer system, or an older release of the package.";
        Architecture = "architecture", "A package is for another machine.", "Install the package for this machine.";
        MinorsDiffer = "minors_differ", "jaxlib takes plug-ins of its own PJRT minor alone (until 0.4.31), and the plug-in has another.", "Bring the plug-in and jaxlib to one version.";
        PluginMisfit = "plugin_misfit", "The table of functions of a PJRT plug-in does not go together with jaxlib; the message has the details.", "Change the plug-in, or jaxlib.";
    }
}

rules! {
    /// A rule that only warns.
    WarningRule {
        DriverUnknown = "driver_unknown", "NVIDIA's driver is not visible.", "Nothing, if the driver is mounted later.";
        LibrariesElsewhere = "libraries_elsewhere", "CUDA's libraries are not installed as packages; the loader's path decides.", "Check the loader's path.";
        NewerThanKnown = "newer_than_known", "A release is newer than the tables of this build; its own files were judged.", "Update serdes.";
        LibtpuUnpinned = "libtpu_unpinned", "libtpu is not the one that jax pins, and nothing is known against it.", "Nothing, unless it fails.";
        DuplicateMetadata = "duplicate_metadata", "A package has metadata of two versions.", "Install the package again.";
        MetadataDiffers = "metadata_differs", "The version file and the metadata of a package disagree.", "Install the package again.";
        OldPlugin = "old_plugin", "The vendor says of a plug-in no more than what it was tested with.", "Look for a newer one.";
        NotJudged = "not_judged", "A part of the environment was not judged.", "Read the message.";
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
