//! The definitions of an operation in every release.

use std::collections::HashMap;

use crate::{
    ops::{Operation, OperationDefinition, OperationList},
    release::{PerRelease, ReleaseId, Releases},
};

/// An operation that a release has, or a function of the library.
#[derive(Debug)]
pub struct KnownOperation<'a> {
    definition: Definition<'a>,
    name: Box<str>,
}

#[derive(Debug)]
enum Definition<'a> {
    /// The operation of each release that has it.
    Operation(PerRelease<Option<Operation<'a>>>),
    /// The signature of a function of the library, which hides an operation of the same name.
    Function(OperationList),
}

impl<'a> KnownOperation<'a> {
    /// Returns the operation of a release, or the function's signature if it is a function.
    pub fn operation(&self, release: ReleaseId) -> Option<Operation<'_>> {
        match &self.definition {
            Definition::Operation(by_release) => by_release[release],
            Definition::Function(list) => list.operation(&self.name),
        }
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true for a function of the library.
    pub fn is_function(&self) -> bool {
        matches!(self.definition, Definition::Function(_))
    }

    /// Returns true if only the types of its nodes are checked.
    pub(super) fn needs_only_types(&self) -> bool {
        match &self.definition {
            Definition::Operation(by_release) => by_release.values().flatten().all(|definition| {
                definition.has_shape_function() && definition.deprecated_since().is_none()
            }),
            Definition::Function(_) => false,
        }
    }

    /// Returns true if every release that has the operation has a CPU kernel for it.
    pub fn has_cpu_kernels(&self) -> bool {
        match &self.definition {
            Definition::Operation(by_release) => {
                by_release.values().flatten().all(|definition| definition.has_cpu_kernel())
            }
            Definition::Function(_) => true,
        }
    }

    /// Returns true if two releases have the same definition.
    pub(super) fn is_same(&self, release: ReleaseId, other: ReleaseId) -> bool {
        let definition = |release| Some(self.operation(release)?.definition_id());
        definition(release) == definition(other)
    }
}

/// The operations that nodes have, numbered. The number 0 is for unknown ones.
#[derive(Debug)]
pub(super) struct Operations<'a> {
    numbers: HashMap<Box<[u8]>, u32, foldhash::quality::RandomState>,
    known: Vec<KnownOperation<'a>>,
    /// The last functions that were found, without their names, so that functions that differ only
    /// in name share an entry.
    functions: Vec<(OperationDefinition, u32)>,
}

/// Number of functions with which others are compared.
const COMPARED: usize = 8;

/// The number of all operations that are neither in a release nor a function.
pub(super) const UNKNOWN: u32 = 0;

impl<'a> Operations<'a> {
    pub(super) fn new(releases: Releases<'a>) -> Self {
        let definition = Definition::Operation(releases.all(None));
        let unknown = KnownOperation { definition, name: Box::default() };
        Self { numbers: HashMap::default(), known: vec![unknown], functions: Vec::new() }
    }

    /// Returns the number of an operation that was found before.
    pub(super) fn number(&self, name: &[u8]) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// Finds an operation; an unknown one is not kept.
    pub(super) fn add(
        &mut self,
        name: &[u8],
        releases: Releases<'a>,
        signature: Option<OperationDefinition>,
    ) -> u32 {
        // A name that is empty or not UTF-8 is in no release.
        let text = std::str::from_utf8(name).unwrap_or_default();
        let by_release = releases.operations(text);
        let is_in_one = by_release.values().any(Option::is_some);
        match signature {
            Some(signature) => self.add_function(name, text, signature, is_in_one),
            None if is_in_one => {
                let definition = Definition::Operation(by_release);
                self.push(name, KnownOperation { definition, name: text.into() })
            }
            None => UNKNOWN,
        }
    }

    fn push(&mut self, name: &[u8], known: KnownOperation<'a>) -> u32 {
        let number = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        self.known.push(known);
        self.numbers.insert(name.into(), number);
        number
    }

    /// Adds a function; one with the name of an operation is kept separately.
    fn add_function(
        &mut self,
        name: &[u8],
        text: &str,
        mut signature: OperationDefinition,
        is_hidden: bool,
    ) -> u32 {
        signature.name.clear();
        let known = self.functions.iter().find(|(known, _)| *known == signature && !is_hidden);
        if let Some((_, number)) = known {
            self.numbers.insert(name.into(), *number);
            return *number;
        }
        let named = OperationDefinition { name: text.to_owned(), ..signature.clone() };
        let definition = Definition::Function(OperationList::new([named]));
        let number = self.push(name, KnownOperation { definition, name: text.into() });
        if !is_hidden {
            if self.functions.len() >= COMPARED {
                self.functions.remove(0);
            }
            self.functions.push((signature, number));
        }
        number
    }

    pub(super) fn get(&self, number: u32) -> Option<&KnownOperation<'a>> {
        self.known.get(number as usize)
    }
}
