//! Functions whose names are those of operations.

use crate::{ops::Registry, rules::shown};

/// A function that has the name of an operation.
#[derive(Clone, Debug)]
pub struct TakenName {
    /// Its position in the library.
    pub number: u32,
    /// Its name, cut for messages.
    pub name: String,
}

/// The first one, for each registry.
#[derive(Debug)]
pub struct TakenNames {
    functions: u32,
    by_registry: Vec<Option<TakenName>>,
}

impl TakenNames {
    pub(super) fn of(registries: &[Registry]) -> Self {
        Self { functions: 0, by_registry: vec![None; registries.len()] }
    }

    /// The next function of the library.
    pub(super) fn function(&mut self, name: &[u8], registries: &[Registry]) {
        let number = self.functions;
        self.functions = self.functions.saturating_add(1);
        let Ok(text) = std::str::from_utf8(name) else { return };
        for (first, registry) in self.by_registry.iter_mut().zip(registries) {
            if first.is_none() && registry.operation(text).is_some() {
                *first = Some(TakenName { number, name: shown(name) });
            }
        }
    }

    /// The first function of the library that has the name of an operation of this registry.
    pub fn first(&self, registry: usize) -> Option<&TakenName> {
        self.by_registry.get(registry)?.as_ref()
    }
}
