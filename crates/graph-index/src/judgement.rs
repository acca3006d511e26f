//! The verdicts of the loaders of one release on a graph, its operations included.
//!
//! Knows the answers. It must never know how they were found.

use super::{DeprecatedOperation, StructureDiagnostic};

/// A way in which TensorFlow takes in a graph. Each looks at other things.
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

    /// Returns its name, as in the contract of the command: `import`, `load_v1`, `load`, `cpp`.
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
/// The version rule is not in here: it is asked before, but where a loader has found something by
/// then ([`is_before_versions`](Self::is_before_versions)), and by [`Loader::Load`], which does not
/// ask it of models with an object graph.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Judgement {
    import: LoaderVerdict,
    load_v1: LoaderVerdict,
    load: LoaderVerdict,
    cpp: LoaderVerdict,
    /// Attributes that the release does not know and whose value is not the default of the release
    /// that does: the graph loads and computes something else. The first of each operation and
    /// attribute, in the order of the file, at most 1024.
    pub ignored: Vec<IgnoredAttribute>,
}

impl Judgement {
    /// Makes a judgement of the verdict that `verdict` gives for each loader.
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

    /// Makes a judgement of one diagnostic for some loaders and the attributes that the release
    /// ignores: for tests of what is said of it.
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
    /// [`Loader::Cpp`] looks at constants and operations first, [`Loader::Load`] at functions.
    #[must_use]
    pub fn is_before_versions(&self, loader: Loader) -> bool {
        self.verdict(loader).is_before_versions
    }
}

/// The first thing that a loader finds wrong with a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportDiagnostic {
    /// The kind of diagnostic.
    pub kind: ImportDiagnosticKind,
    /// The node that has the diagnostic, cut to 256 bytes; empty where it is none of a node.
    pub node: String,
    /// The function that the node is in, cut to 256 bytes.
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
    /// The nodes or functions do not fit together, whatever their operations are.
    Structure(StructureDiagnostic),
    /// The release has no such operation, and the library no such function.
    UnknownOperation,
    /// The operation is deprecated at the graph's producer.
    Deprecated(DeprecatedOperation),
    /// The value is of another kind than the attribute (a scalar for a list, an int for a type).
    AttributeKind {
        /// The attribute.
        attribute: String,
    },
    /// The release has no such type, or it is no type of an element.
    AttributeType {
        /// The attribute.
        attribute: String,
    },
    /// The value is not among those that are allowed.
    AttributeNotAllowed {
        /// The attribute.
        attribute: String,
    },
    /// The number is too small, or the list too short.
    AttributeMinimum {
        /// The attribute.
        attribute: String,
    },
    /// Attributes without a default are not there.
    AttributesMissing {
        /// The attributes, in the order of the operation.
        attributes: Vec<String>,
    },
    /// The release does not know the attribute, and the loader takes no such value of it: Python
    /// refuses a placeholder there.
    AttributeUnknown {
        /// The attribute.
        attribute: String,
    },
    /// An attribute says a number of inputs or outputs that cannot be.
    AttributeNumber {
        /// The attribute.
        attribute: String,
    },
    /// There are more or fewer inputs of data than the operation has.
    InputCount,
    /// An input is of another type than the operation takes there.
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
    /// A body of a function cannot be built: a part of it names what is not there, returns another
    /// type than its signature says, or takes an attribute that the call does not give.
    FunctionBody,
    /// The release has no shape function for the operation, so that the import refuses it.
    NoShapeFunction,
    /// The shapes do not fit, as far as they are looked at.
    Shape,
    /// The release has no kernel for the operation on a CPU, and the loader wants one.
    NoKernel,
    /// The node's attributes exceed the limit (8 MiB of names and texts), so that it is unknown
    /// whether the release accepts it.
    Oversized,
    /// A device that cannot be, or is not there.
    Device,
    /// The loader refuses it in Python, for a reason of its own.
    Python,
    /// A collection, the saver, a signature or an asset names a node or tensor that is not there,
    /// or another one than it has to.
    NodeReference,
    /// The object graph of a model in the TF2 format does not fit together; only
    /// [`Loader::Load`] looks at it.
    Objects,
    /// The object graph has a type of elements that the release does not have.
    ObjectType,
    /// The loader calls the function that saves an object with a text, and the release takes none
    /// for what the function was traced with.
    SaveFunction,
}

/// An attribute that a release does not know and ignores, although its value matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredAttribute {
    /// The first node that has it, cut to 256 bytes.
    pub node: String,
    /// The function that the node is in.
    pub function: Option<String>,
    /// The operation.
    pub operation: String,
    /// The attribute.
    pub attribute: String,
    /// Its value, as it is shown, cut to 256 bytes.
    pub value: String,
    /// The first release that knows it, `MAJOR.MINOR`.
    pub since: Option<&'static str>,
    /// The number of nodes that have it.
    pub nodes: u64,
}
