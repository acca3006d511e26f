//! The verdicts of the loaders of one release on a graph, its operations included.
//!
//! Does not depend on the way in which verdicts are found.

use super::{DeprecatedOperation, StructureDiagnostic};

/// A way in which TensorFlow loads a graph. Each makes different checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loader {
    /// `TF_GraphImportGraphDef`, the C import of a GraphDef.
    Import,
    /// `tf.compat.v1.saved_model.load`.
    LoadV1,
    /// `tf.saved_model.load`.
    Load,
    /// `TF_LoadSessionFromSavedModel`, the C++ loader.
    Cpp,
}

impl Loader {
    /// Every loader.
    pub const ALL: &'static [Self] = &[Self::Import, Self::LoadV1, Self::Load, Self::Cpp];

    /// Returns its name, as in the output of the command: `import`, `load_v1`, `load`, `cpp`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Import => "import",
            Self::LoadV1 => "load_v1",
            Self::Load => "load",
            Self::Cpp => "cpp",
        }
    }
}

/// The verdict of one loader on a graph.
#[derive(Clone, Debug, Default)]
pub struct LoaderVerdict {
    /// The first diagnostic that it finds; `None` if it loads the graph.
    pub diagnostic: Option<ImportDiagnostic>,
    /// True if it finds the diagnostic before it checks the versions of the graph.
    pub is_before_versions: bool,
}

/// The verdicts of the loaders of one release on one graph.
///
/// The version rule is not included: it is checked before, except where a loader finds a diagnostic
/// earlier ([`is_before_versions`](Self::is_before_versions)), and except for [`Loader::Load`],
/// which does not check it for models with an object graph.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Judgement {
    import: LoaderVerdict,
    load_v1: LoaderVerdict,
    load: LoaderVerdict,
    cpp: LoaderVerdict,
    /// Attributes that the release does not know and whose value differs from the default of a
    /// release that does: the graph loads, but computes something else. The first of each operation
    /// and attribute, in the order of the file, at most 1024.
    pub ignored: Vec<IgnoredAttribute>,
}

impl Judgement {
    /// Creates a judgement from the verdict that `verdict` returns for each loader.
    #[doc(hidden)]
    pub fn new(verdict: impl Fn(Loader) -> LoaderVerdict, ignored: Vec<IgnoredAttribute>) -> Self {
        Self {
            import: verdict(Loader::Import),
            load_v1: verdict(Loader::LoadV1),
            load: verdict(Loader::Load),
            cpp: verdict(Loader::Cpp),
            ignored,
        }
    }

    /// Creates a judgement from one diagnostic for some loaders and the attributes that the release
    /// ignores; for tests of messages.
    #[doc(hidden)]
    #[must_use]
    pub fn of(
        loaders: &[Loader],
        diagnostic: &ImportDiagnostic,
        ignored: Vec<IgnoredAttribute>,
    ) -> Self {
        let verdict = |loader| LoaderVerdict {
            diagnostic: loaders.contains(&loader).then(|| diagnostic.clone()),
            is_before_versions: loader == Loader::Cpp,
        };
        Self::new(verdict, ignored)
    }

    fn verdict(&self, loader: Loader) -> &LoaderVerdict {
        match loader {
            Loader::Import => &self.import,
            Loader::LoadV1 => &self.load_v1,
            Loader::Load => &self.load,
            Loader::Cpp => &self.cpp,
        }
    }

    /// Returns the first diagnostic that this loader finds; `None` if it loads the graph.
    #[must_use]
    pub fn diagnostic(&self, loader: Loader) -> Option<&ImportDiagnostic> {
        self.verdict(loader).diagnostic.as_ref()
    }

    /// Returns true if this loader finds its diagnostic before it checks the versions of the graph:
    /// [`Loader::Cpp`] checks constants and operations first, [`Loader::Load`] functions.
    #[must_use]
    pub fn is_before_versions(&self, loader: Loader) -> bool {
        self.verdict(loader).is_before_versions
    }
}

/// The first diagnostic of a loader for a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportDiagnostic {
    /// The kind of diagnostic.
    pub kind: ImportDiagnosticKind,
    /// The node that has the diagnostic, cut to 256 bytes; empty if it is not about a node.
    pub node: String,
    /// The function that contains the node, cut to 256 bytes.
    pub function: Option<String>,
    /// The operation of the node, cut to 256 bytes.
    pub operation: String,
    /// The graph's value: the attribute with its value, the type of the input, the number of
    /// inputs.
    pub found: String,
    /// The release's value; empty if there is none.
    pub expected: String,
}

/// The kinds of diagnostics of a graph for a release whose operations are known: classes of
/// TensorFlow's own error messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportDiagnosticKind {
    /// The nodes or functions do not fit together, independent of their operations.
    Structure(StructureDiagnostic),
    /// Neither the release has such an operation, nor the library such a function.
    UnknownOperation,
    /// The operation is deprecated at the graph's producer.
    Deprecated(DeprecatedOperation),
    /// The value is of another kind than the attribute (a scalar for a list, an int for a type).
    AttributeKind {
        /// The attribute.
        attribute: String,
    },
    /// The release has no such type, or it is not an element type.
    AttributeType {
        /// The attribute.
        attribute: String,
    },
    /// The value is not among the allowed ones.
    AttributeNotAllowed {
        /// The attribute.
        attribute: String,
    },
    /// The number is too small, or the list too short.
    AttributeMinimum {
        /// The attribute.
        attribute: String,
    },
    /// Attributes without a default are missing.
    AttributesMissing {
        /// The attributes, in the order of the operation.
        attributes: Vec<String>,
    },
    /// The release does not know the attribute, and the loader does not accept such a value: Python
    /// refuses a placeholder there.
    AttributeUnknown {
        /// The attribute.
        attribute: String,
    },
    /// An attribute gives an impossible number of inputs or outputs.
    AttributeNumber {
        /// The attribute.
        attribute: String,
    },
    /// There are more or fewer data inputs than the operation has.
    InputCount,
    /// An input has another type than the operation accepts there.
    InputType {
        /// The number of the input, counted from 0.
        input: u32,
    },
    /// An input names an output that its node does not have.
    OutputIndex {
        /// The number of the input, counted from 0.
        input: u32,
    },
    /// A function has the name of an operation of the release.
    FunctionName,
    /// A function body cannot be built: a part of it names something that does not exist, returns
    /// another type than its signature declares, or uses an attribute that the call does not give.
    FunctionBody,
    /// The release has no shape function for the operation, so that the import refuses it.
    NoShapeFunction,
    /// The shapes do not fit, as far as they are checked.
    Shape,
    /// The release has no CPU kernel for the operation, and the loader requires one.
    NoKernel,
    /// The node's attributes exceed the limit (8 MiB of names and texts), so that it is unknown
    /// whether the release accepts it.
    Oversized,
    /// A device is invalid or does not exist.
    Device,
    /// The Python loader refuses the graph for a reason of its own.
    Python,
    /// A collection, the saver, a signature or an asset names a node or tensor that does not exist,
    /// or a wrong one.
    NodeReference,
    /// The object graph of a model in the TF2 format is inconsistent; only [`Loader::Load`] checks
    /// it.
    Objects,
    /// The object graph has an element type that the release does not have.
    ObjectType,
    /// The loader calls the function that saves an object with a string, which the release does not
    /// accept for the traced signature.
    SaveFunction,
}

/// An attribute that a release does not know and ignores, although its value matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredAttribute {
    /// The first node that has it, cut to 256 bytes.
    pub node: String,
    /// The function that contains the node.
    pub function: Option<String>,
    /// The operation.
    pub operation: String,
    /// The attribute.
    pub attribute: String,
    /// Its value as displayed, cut to 256 bytes.
    pub value: String,
    /// The first release that knows it, `MAJOR.MINOR`.
    pub since: Option<&'static str>,
    /// The number of nodes that have it.
    pub nodes: u64,
}
