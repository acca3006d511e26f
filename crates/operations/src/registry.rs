//! The operations that a consumer has: those of a release, and custom ones.

use std::{borrow::Cow, sync::Arc};

use serdes_abi::ErrorKind;

use super::{
    Operation, OperationDefinition,
    encode::{History, ReleaseRecord},
    table::{TENSORFLOW, Table},
};

/// A list of custom operations: those of a custom library, or the signatures of functions.
///
/// ```
/// use serdes_operations::{OperationDefinition, OperationList};
///
/// let list = OperationList::new([OperationDefinition::new("OurFusedOp")]);
/// assert!(list.operation("OurFusedOp").is_some());
/// assert!(list.operation("MatMul").is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationList(Arc<Table>);

impl OperationList {
    /// Creates a list of these operations. Of several with one name the last one counts.
    #[must_use]
    pub fn new(operations: impl IntoIterator<Item = OperationDefinition>) -> Self {
        let operations = operations.into_iter().map(|one| (one.name.clone(), one)).collect();
        let record = ReleaseRecord { operations, ..ReleaseRecord::default() };
        // The release has no name, because a custom list belongs to no release.
        let bytes = History { releases: vec![record] }.to_bytes();
        Self(Arc::new(Table::new(Cow::Owned(bytes))))
    }

    /// Returns the operation of this name. Allocates nothing.
    #[must_use]
    pub fn operation(&self, name: &str) -> Option<Operation<'_>> {
        Operation::read(&self.0, self.0.find(name)?, 0)
    }
}

/// The operations that a consumer has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registry {
    release: usize,
    /// Custom lists; later ones are searched first.
    lists: Vec<OperationList>,
}

/// The error for a release whose operations are not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the operations of TensorFlow {found:?} are not known; known are those of {}; name one of these, or give a list of operations",
    Registry::releases().collect::<Vec<_>>().join(", ")
)]
#[non_exhaustive]
pub struct UnknownRelease {
    /// The text found, cut at 40 characters.
    pub found: String,
}

impl UnknownRelease {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        ErrorKind::NotFound
    }
}

impl Registry {
    /// Returns the operations of a release, `MAJOR.MINOR` or `MAJOR.MINOR.PATCH`: all patches of a
    /// release have the same operations.
    ///
    /// # Errors
    /// [`UnknownRelease`] for a release before 2.12 or after 2.21, and for text that is not a
    /// release.
    pub fn tensorflow(release: &str) -> Result<Self, UnknownRelease> {
        let is_patch =
            |rest: &str| rest.strip_prefix('.').is_some_and(|patch| patch.parse::<u16>().is_ok());
        let position = Self::releases().position(|name| {
            release.strip_prefix(name).is_some_and(|rest| rest.is_empty() || is_patch(rest))
        });
        let unknown = || UnknownRelease { found: release.chars().take(40).collect() };
        Ok(Self { release: position.ok_or_else(unknown)?, lists: Vec::new() })
    }

    /// Returns the releases whose operations are built in, `MAJOR.MINOR`, oldest first.
    pub fn releases() -> impl Iterator<Item = &'static str> {
        let table: &'static Table = &TENSORFLOW;
        (0..table.releases()).map(|index| table.release(index))
    }

    /// Adds operations. They replace those of the same name.
    ///
    /// ```
    /// use serdes_operations::{OperationDefinition, Registry};
    ///
    /// let ours = OperationDefinition::new("OurFusedOp");
    /// let registry = Registry::tensorflow("2.16")?.with([ours]);
    /// assert!(registry.operation("OurFusedOp").is_some());
    /// assert!(registry.operation("MatMul").is_some());
    /// # Ok::<(), serdes_operations::UnknownRelease>(())
    /// ```
    #[must_use]
    pub fn with(mut self, operations: impl IntoIterator<Item = OperationDefinition>) -> Self {
        let mut operations = operations.into_iter().peekable();
        if operations.peek().is_some() {
            self.lists.insert(0, OperationList::new(operations));
        }
        self
    }

    /// Returns the release, `MAJOR.MINOR`.
    #[must_use]
    pub fn release(&self) -> &'static str {
        TENSORFLOW.release(self.release)
    }

    /// Returns the exact release whose operations were read.
    #[must_use]
    pub fn measured_release(&self) -> &'static str {
        TENSORFLOW.measured_release(self.release)
    }

    /// Returns the release's GraphDef version.
    #[must_use]
    pub fn graph_def_version(&self) -> i32 {
        TENSORFLOW.graph_def_version(self.release)
    }

    /// Returns true if the release has an element type of this number. References are not element
    /// types.
    ///
    /// ```
    /// use serdes_operations::{Registry, data_type::DataType};
    ///
    /// let int4 = DataType::Int4.number();
    /// assert!(!Registry::tensorflow("2.14")?.has_type(int4));
    /// assert!(Registry::tensorflow("2.15")?.has_type(int4));
    /// # Ok::<(), serdes_operations::UnknownRelease>(())
    /// ```
    #[must_use]
    pub fn has_type(&self, number: i32) -> bool {
        let types = self.types();
        u32::try_from(number).ok().and_then(|number| types.checked_shr(number)).unwrap_or(0) & 1
            == 1
    }

    /// Returns the element types of the release as a bit mask, in which bit `n` is
    /// [`has_type(n)`](Self::has_type).
    pub fn types(&self) -> u64 {
        TENSORFLOW.types(self.release)
    }

    /// Returns the operation of this name. Names are compared exactly. Allocates nothing.
    #[must_use]
    pub fn operation(&self, name: &str) -> Option<Operation<'_>> {
        self.own_operation(name).or_else(|| self.built_in_operation(TENSORFLOW.find(name)?))
    }

    /// Returns the operation of this name in each registry, with one search in the built-in table.
    pub fn operation_in_each<'r>(
        registries: &'r [Self],
        name: &str,
    ) -> impl Iterator<Item = Option<Operation<'r>>> {
        let position = TENSORFLOW.find(name);
        registries.iter().map(move |registry| {
            let built_in = || registry.built_in_operation(position?);
            registry.own_operation(name).or_else(built_in)
        })
    }

    /// Returns the operation of this name in the custom lists.
    fn own_operation(&self, name: &str) -> Option<Operation<'_>> {
        self.lists.iter().find_map(|list| list.operation(name))
    }

    /// Returns the operation at a position of the built-in table, if the release has it.
    fn built_in_operation(&self, position: usize) -> Option<Operation<'static>> {
        Operation::read(&TENSORFLOW, position, self.release)
    }

    /// Returns the operation that this one is a later version of, by TensorFlow's naming
    /// convention: `TopK` for `TopKV2`, `DebugIdentityV2` for `DebugIdentityV3`; the latest one
    /// that exists.
    ///
    /// ```
    /// use serdes_operations::Registry;
    ///
    /// let older = Registry::tensorflow("2.12")?;
    /// assert!(older.operation("SegmentMaxV2").is_none());
    /// assert_eq!(older.version_before("SegmentMaxV2").unwrap().name(), "SegmentMax");
    /// assert!(older.version_before("SegmentMax").is_none());
    /// # Ok::<(), serdes_operations::UnknownRelease>(())
    /// ```
    #[must_use]
    pub fn version_before(&self, name: &str) -> Option<Operation<'_>> {
        let (stem, version) = name.rsplit_once('V')?;
        let version: u8 = version.parse().ok().filter(|version| (2..=9).contains(version))?;
        let earlier = (2..version).rev().map(|version| format!("{stem}V{version}"));
        earlier.chain([stem.to_owned()]).find_map(|name| self.operation(&name))
    }

    /// Returns the operation of this name in the newest release that has it, independent of the
    /// release of this registry. Used to say where an unknown operation comes from.
    #[must_use]
    pub fn operation_of_any_release(name: &str) -> Option<Operation<'static>> {
        let table: &'static Table = &TENSORFLOW;
        let position = table.find(name)?;
        (0..table.releases()).rev().find_map(|release| Operation::read(table, position, release))
    }

    /// Returns every operation, by name; custom ones come first.
    pub fn operations(&self) -> impl Iterator<Item = Operation<'_>> {
        let own = self.lists.iter().enumerate().flat_map(move |(index, OperationList(list))| {
            let is_new = move |operation: &Operation<'_>| {
                self.lists
                    .iter()
                    .take(index)
                    .all(|OperationList(list)| list.find(operation.name()).is_none())
            };
            let all =
                (0..list.operations()).filter_map(|position| Operation::read(list, position, 0));
            all.filter(is_new)
        });
        let release = self.release;
        let built_in = (0..TENSORFLOW.operations())
            .filter_map(move |position| Operation::read(&TENSORFLOW, position, release));
        let is_own = |operation: &Operation<'_>| {
            self.lists.iter().any(|OperationList(list)| list.find(operation.name()).is_some())
        };
        own.chain(built_in.filter(move |operation| !is_own(operation)))
    }
}
