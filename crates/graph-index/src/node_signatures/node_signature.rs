//! One node signature.

use crate::{
    node_rules::Strictness,
    release::{PerRelease, ReleaseId},
};

/// The number of a node signature in [`NodeSignatures`](super::NodeSignatures).
pub type SignatureNumber = u32;

/// The number of a node type in [`NodeSignatures`](super::NodeSignatures).
pub(super) type TypeNumber = u32;

/// A loader of one release, identified by the way in which it checks a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoaderProfile {
    pub release: ReleaseId,
    pub strictness: Strictness,
}

impl LoaderProfile {
    /// Returns true if each operation must have a shape function: Python does not require one, and
    /// a session does not check shapes.
    pub fn needs_shape_functions(self) -> bool {
        self.strictness == Strictness::Import
    }
}

/// The result of judging a node in isolation for a release: steps 2 to 6 of the importer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Judged {
    /// The release has no such operation.
    Unknown,
    /// The attributes do not fit.
    InvalidAttributes,
    /// The node is valid in isolation, and has inputs and outputs of these types.
    Types(TypeNumber),
}

/// The results for each release, by strictness.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ByStrictness {
    pub(super) import: PerRelease<Judged>,
    pub(super) python_import: PerRelease<Judged>,
    pub(super) session: PerRelease<Judged>,
    pub(super) load: PerRelease<Judged>,
}

impl ByStrictness {
    /// Returns the result, if all are the same.
    fn common(&self) -> Option<Judged> {
        let Self { import, python_import, session, load } = self;
        let lists = [import, python_import, session, load].into_iter();
        let mut all = lists.flat_map(PerRelease::values).copied();
        let first = all.next()?;
        all.all(|other| other == first).then_some(first)
    }
}

/// The results for all loader profiles.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Results {
    /// All profiles have the same result.
    Same(Judged),
    Each(Box<ByStrictness>),
}

impl From<ByStrictness> for Results {
    fn from(each: ByStrictness) -> Self {
        match each.common() {
            Some(judged) => Self::Same(judged),
            None => Self::Each(Box::new(each)),
        }
    }
}

/// Nodes with the same operation and equivalent attributes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeSignature {
    /// The number of the operation in [`NodeSignatures`](super::NodeSignatures).
    pub(super) operation: u32,
    pub(super) results: Results,
    /// True if only the types of its nodes are checked: no release deprecates the operation or
    /// lacks its shape function, it is not a function, and no attribute has an invalid shape.
    pub needs_only_types: bool,
    /// True if a shape function refuses it for any inputs.
    pub has_shape_diagnostic: bool,
}

impl NodeSignature {
    /// Returns the result for a loader profile.
    pub fn judged(&self, LoaderProfile { release, strictness }: LoaderProfile) -> Judged {
        let each = match &self.results {
            Results::Same(judged) => return *judged,
            Results::Each(each) => each,
        };
        let by_release = match strictness {
            Strictness::Import => &each.import,
            Strictness::PythonImport => &each.python_import,
            Strictness::Session => &each.session,
            Strictness::Load => &each.load,
        };
        by_release[release]
    }

    /// Returns its types, if they are the same for every loader profile.
    pub fn common_types(&self) -> Option<TypeNumber> {
        match self.results {
            Results::Same(Judged::Types(types)) => Some(types),
            _ => None,
        }
    }
}
