//! The definitions of an operation in every registry.

use std::collections::HashMap;

use crate::ops::{Operation, OperationDefinition, OperationList, Registry};

/// An operation that a registry has, or a function of the library.
#[derive(Debug)]
pub struct KnownOperation<'a> {
    /// By registry; empty for a function.
    by_registry: Box<[Option<Operation<'a>>]>,
    /// The definition, if the operation is a function of the library, which hides an operation of
    /// the same name.
    function: Option<OperationList>,
    name: Box<str>,
}

impl<'a> KnownOperation<'a> {
    /// The operation as a registry has it; the function's signature where it is a function.
    pub fn operation(&self, registry: usize) -> Option<Operation<'_>> {
        match &self.function {
            Some(list) => list.operation(&self.name),
            None => *self.by_registry.get(registry)?,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True for a function of the library.
    pub fn is_function(&self) -> bool {
        self.function.is_some()
    }

    /// True if only the types of its nodes are checked.
    pub(super) fn is_plain(&self) -> bool {
        let mut definitions = self.by_registry.iter().flatten();
        !self.is_function()
            && definitions.all(|definition| {
                definition.has_shape_function() && definition.deprecated_since().is_none()
            })
    }

    /// True if every registry that has the operation has a kernel of it for the CPU.
    pub fn has_cpu_kernels(&self) -> bool {
        self.by_registry.iter().flatten().all(|definition| definition.has_cpu_kernel())
    }

    /// True if two registries have the same definition.
    pub(super) fn is_same(&self, registry: usize, other: usize) -> bool {
        let definition = |registry| Some(self.operation(registry)?.definition_id());
        definition(registry) == definition(other)
    }
}

/// The operations that nodes have, numbered. The number 0 is for unknown ones.
#[derive(Debug)]
pub(super) struct Operations<'a> {
    numbers: HashMap<Box<[u8]>, u32, foldhash::quality::RandomState>,
    known: Vec<KnownOperation<'a>>,
    /// The functions that were found last, without their names, which those share that differ in
    /// nothing else.
    functions: Vec<(OperationDefinition, u32)>,
}

/// Functions that others are compared with.
const COMPARED: usize = 8;

/// The number of every operation that is in no registry and no function.
pub(super) const UNKNOWN: u32 = 0;

impl<'a> Operations<'a> {
    pub(super) fn new() -> Self {
        let by_registry = Box::default();
        let unknown = KnownOperation { by_registry, function: None, name: Box::default() };
        Self { numbers: HashMap::default(), known: vec![unknown], functions: Vec::new() }
    }

    /// The number of an operation that was found before.
    pub(super) fn number(&self, name: &[u8]) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// Finds an operation; an unknown one is not kept.
    pub(super) fn add(
        &mut self,
        name: &[u8],
        registries: &'a [Registry],
        signature: Option<OperationDefinition>,
    ) -> u32 {
        // What is no UTF-8 is in no registry, and neither is the empty name.
        let text = std::str::from_utf8(name).unwrap_or_default();
        let mut by_registry = Registry::operation_in_each(registries, text);
        if let Some(signature) = signature {
            let is_hidden = by_registry.any(|operation| operation.is_some());
            return self.add_function(name, text, signature, is_hidden);
        }
        let by_registry: Box<[_]> = by_registry.collect();
        if by_registry.iter().all(Option::is_none) {
            return UNKNOWN;
        }
        let known = KnownOperation { by_registry, function: None, name: text.into() };
        self.push(name, known)
    }

    fn push(&mut self, name: &[u8], known: KnownOperation<'a>) -> u32 {
        let number = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        self.known.push(known);
        self.numbers.insert(name.into(), number);
        number
    }

    /// Adds a function; one that has the name of an operation is kept apart from others.
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
        let function = Some(OperationList::new([named]));
        let by_registry = Box::default();
        let number = self.push(name, KnownOperation { by_registry, function, name: text.into() });
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
