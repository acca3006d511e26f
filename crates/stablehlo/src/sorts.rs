//! Sorts, and the comparators by which sorts and custom calls order values.
//!
//! Compilers pass a comparator to a sort of their standard library. Where the sort is not stable,
//! it requires a strict weak order: an inconsistent comparator makes it access memory outside its
//! array.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    bytecode::{Bytecode, Operation},
    catalogue::{VHLO, attribute_code},
    custom_calls,
    properties::{attributes_of, names_one_of, string},
};

/// Number of properties of a sort: its dimension, and whether it is stable.
const PROPERTIES: usize = 2;

/// Index of the stability among the properties of a sort.
pub(super) const STABLE: usize = 1;

/// Name of the stability in a dictionary.
const STABLE_KEY: &[u8] = b"is_stable";

/// Index of the direction among the properties of a comparison.
const DIRECTION: usize = 1;

/// Directions that are false for equal values: greater, less.
const STRICT: [u64; 2] = [3, 5];

/// Index of the name among the properties of a function.
const NAME: usize = 3;

/// Index of the called functions among the properties of a custom call.
const CALLED: usize = 3;

/// The sorts and comparators of a program, as collected by a walk over its operations.
#[derive(Clone, Debug, Default)]
pub(super) struct SortsFound {
    /// The properties of sorts, with the position of the first sort that has them.
    properties: BTreeMap<Option<u64>, usize>,
    /// The dictionaries of sorts, with the position of the first sort that has them.
    dictionaries: BTreeMap<u64, usize>,
    /// Number of the operation name of sorts.
    name: Option<usize>,
    /// Depth of the sort whose comparator is being read.
    within: Option<usize>,
    /// Names of the operations in comparators.
    compared: BTreeSet<usize>,
    function: Option<Function>,
    /// The properties of functions that are plain comparators, and of all other functions.
    plain: BTreeSet<u64>,
    others: BTreeSet<u64>,
    custom_calls: BTreeSet<Option<u64>>,
}

/// The state of a function that is being read.
#[derive(Clone, Copy, Debug)]
struct Function {
    depth: usize,
    properties: u64,
    next: Next,
}

/// The next operation required for a function to be a plain comparator.
#[derive(Clone, Copy, Debug)]
enum Next {
    Comparison,
    /// A return of this value.
    Return(u64),
    Nothing,
    /// None: the function is not a plain comparator.
    Never,
}

/// The sorts and comparators of a program.
#[derive(Clone, Debug)]
pub(super) struct Sorts<'a> {
    /// Indices of the properties of sorts that are not stable.
    pub(super) unstable: BTreeSet<usize>,
    /// Position of a sort whose stability cannot be read or changed.
    pub(super) unread: Option<usize>,
    /// Names of the operations in comparators.
    pub(super) operations: BTreeSet<&'a str>,
    /// Names of functions that are plain comparators.
    plain: BTreeSet<&'a [u8]>,
    custom_calls: BTreeSet<Option<u64>>,
}

impl SortsFound {
    pub(super) fn note(&mut self, file: &Bytecode<'_>, operation: &Operation) {
        let (dialect, name) = file.operation_name(operation.name);
        let name = if dialect == VHLO { name } else { "" };
        self.note_function(file, operation, name);
        if self.within.is_some_and(|depth| operation.depth > depth) {
            self.compared.insert(operation.name);
        } else {
            self.within = None;
        }
        if name.starts_with("sort_") {
            self.within.get_or_insert(operation.depth);
            self.name = Some(operation.name);
            self.properties.entry(operation.properties).or_insert(operation.at);
            if let Some(dictionary) = operation.attributes {
                self.dictionaries.entry(dictionary).or_insert(operation.at);
            }
        } else if custom_calls::is_one(name) {
            self.custom_calls.insert(operation.properties);
        }
    }

    fn note_function(&mut self, file: &Bytecode<'_>, operation: &Operation, name: &str) {
        match &mut self.function {
            Some(function) if operation.depth > function.depth => {
                function.next = function.next.after(file, operation, name);
            }
            _ => self.end_function(),
        }
        if name.starts_with("func_") && self.function.is_none() {
            let next = match operation.in_section && operation.regions == 1 {
                true => Next::Comparison,
                false => Next::Never,
            };
            self.function = operation.properties.map(|properties| Function {
                depth: operation.depth,
                properties,
                next,
            });
        }
    }

    fn end_function(&mut self) {
        let Some(function) = self.function.take() else { return };
        match function.next {
            Next::Nothing => self.plain.insert(function.properties),
            _ => self.others.insert(function.properties),
        };
    }

    /// Resolves the collected facts in the tables of the file.
    pub(super) fn read<'a>(
        &self,
        file: &Bytecode<'a>,
        owners: &BTreeMap<u64, Option<usize>>,
    ) -> Sorts<'a> {
        let mut found = self.clone();
        found.end_function();
        let (mut unstable, mut unread) = (BTreeSet::new(), None);
        for (properties, at) in &found.properties {
            let index = properties.and_then(|number| usize::try_from(number).ok());
            let is_own = properties.is_some_and(|number| owners.get(&number) == Some(&found.name));
            match index.and_then(|index| is_stable(file, index)) {
                Some(true) => {}
                Some(false) if is_own => unstable.extend(index),
                _ => unread = unread.or(Some(*at)),
            }
        }
        for (dictionary, at) in &found.dictionaries {
            // An entry in the dictionary takes precedence over the properties.
            if names_one_of(file, *dictionary, &[STABLE_KEY]) != Some(false) {
                unread = unread.or(Some(*at));
            }
        }
        let name_of = |properties: &u64| {
            let properties = file.properties.get(usize::try_from(*properties).ok()?)?;
            string(file, *attributes_of(properties)?.get(NAME)?)
        };
        let others: BTreeSet<&[u8]> = found.others.iter().filter_map(name_of).collect();
        let plain = found.plain.iter().filter_map(name_of);
        Sorts {
            unstable,
            unread,
            operations: found.compared.iter().map(|name| file.operation_name(*name).1).collect(),
            plain: plain.filter(|name| !others.contains(name)).collect(),
            custom_calls: found.custom_calls,
        }
    }
}

impl Next {
    fn after(self, file: &Bytecode<'_>, operation: &Operation, name: &str) -> Self {
        match self {
            Self::Comparison if name.starts_with("compare_") && is_strict(file, operation) => {
                Self::Return(operation.first_result)
            }
            Self::Return(value)
                if name.starts_with("return_")
                    && operation.operands == 1
                    && operation.first_operands == [Some(value), None] =>
            {
                Self::Nothing
            }
            _ => Self::Never,
        }
    }
}

impl Sorts<'_> {
    pub(super) fn compares_plainly(&self, file: &Bytecode<'_>, target: &str) -> bool {
        let mut of_target = self.custom_calls.iter().filter(|properties| {
            let names = custom_calls::targets(file, std::iter::once(**properties), None);
            names.iter().any(|name| name.is_none_or(|name| name == target))
        });
        of_target.all(|properties| self.calls_plain(file, *properties) == Some(true))
    }

    /// Returns true if the functions that a custom call names are plain comparators; `None` if they
    /// cannot be read.
    fn calls_plain(&self, file: &Bytecode<'_>, properties: Option<u64>) -> Option<bool> {
        let properties = file.properties.get(usize::try_from(properties?).ok()?)?;
        let called = *attributes_of(properties)?.get(CALLED)?;
        let (code, mut list) = file.attribute(called, VHLO)?;
        (code == attribute_code::ARRAY).then_some(())?;
        let count = list.varint().ok()?;
        for _ in 0..count {
            let name = string(file, list.varint().ok()?)?;
            if !self.plain.contains(name) {
                return Some(false);
            }
        }
        Some(count > 0)
    }
}

/// Returns true for a strict comparison of the two arguments at one position.
fn is_strict(file: &Bytecode<'_>, operation: &Operation) -> bool {
    let [Some(one), Some(other)] = operation.first_operands else { return false };
    let properties = operation.properties.and_then(|number| usize::try_from(number).ok());
    let direction = || {
        let attributes = attributes_of(file.properties.get(properties?)?)?;
        let (code, mut direction) = file.attribute(*attributes.get(DIRECTION)?, VHLO)?;
        (code == attribute_code::COMPARISON_DIRECTION).then(|| direction.varint().ok())?
    };
    // The arguments of a function are numbered first, two for each array that is compared.
    operation.operands == 2
        && operation.attributes.is_none()
        && one.is_multiple_of(2)
        && one.checked_add(1) == Some(other)
        && other < operation.first_result
        && direction().is_some_and(|direction| STRICT.contains(&direction))
}

/// Returns true if the sorts with these properties are stable; `None` if they cannot be read.
fn is_stable(file: &Bytecode<'_>, properties: usize) -> Option<bool> {
    let attributes = attributes_of(file.properties.get(properties)?)?;
    (attributes.len() == PROPERTIES).then_some(())?;
    let (code, mut value) = file.attribute(*attributes.get(STABLE)?, VHLO)?;
    (code == attribute_code::BOOLEAN).then_some(())?;
    let value = (value.varint().ok()?, value.is_empty());
    match value {
        (0, true) => Some(false),
        (1, true) => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Program, tests::same_but_for};

    macro_rules! artifact {
        ($name:literal) => {
            include_bytes!(concat!("../../../tests/data/stablehlo/", $name, "-1.10.9.mlirbc"))
        };
    }

    #[test]
    fn sorts_are_stable_afterwards_and_nothing_else_changes() {
        for (artifact, count) in [(&artifact!("sorts")[..], 2), (artifact!("endless_sort"), 1)] {
            let program = Program::read(artifact).unwrap();
            assert!(program.has_unstable_sorts());
            let written = program.with_stable_sorts().unwrap().unwrap();
            let stable = Program::read(&written).unwrap();
            assert!(!stable.has_unstable_sorts());
            assert_eq!(stable.with_stable_sorts(), Ok(None));
            assert_eq!(stable.version(), program.version());
            same_but_for(artifact, &written, count);
        }
    }

    #[test]
    fn sorts_tell_by_which_operations_they_compare() {
        let operations = |artifact: &[u8]| -> Vec<String> {
            let program = Program::read(artifact).unwrap();
            program.comparator_operations().map(str::to_owned).collect()
        };
        let plain = ["compare_v1", "constant_v1", "or_v1", "and_v1", "return_v1", "select_v1"];
        let found = operations(artifact!("sorts"));
        assert!(found.iter().all(|name| plain.contains(&name.as_str())), "{found:?}");
        assert!(operations(artifact!("random_sort")).contains(&"rng_v1".to_owned()));
        assert!(operations(artifact!("calling_sort")).contains(&"call_v1".to_owned()));
        assert_eq!(
            operations(include_bytes!("../../../tests/data/stablehlo/add-1.22.0.mlirbc")),
            [""; 0]
        );
    }

    #[test]
    fn comparators_are_plain_that_tell_which_of_two_comes_first() {
        let is_plain =
            |artifact: &[u8]| Program::read(artifact).unwrap().compares_plainly("ApproxTopK");
        assert!(is_plain(artifact!("approx_max_k")) && is_plain(artifact!("approx_mixed")));
        assert!(!is_plain(artifact!("approx_le")) && !is_plain(artifact!("approx_crossed")));
        // Without such a call nothing is compared.
        assert!(is_plain(artifact!("sorts")));
    }

    #[test]
    fn sorts_that_share_their_properties_are_not_rewritten() {
        let file = Bytecode::read(artifact!("endless_sort")).unwrap();
        let (mut found, mut owners) = (SortsFound::default(), BTreeMap::new());
        file.walk(|operation| {
            found.note(&file, operation);
            owners.extend(operation.properties.map(|number| (number, Some(operation.name))));
        })
        .unwrap();
        assert_eq!(found.read(&file, &owners).unread, None);
        owners.values_mut().for_each(|owner| *owner = None);
        assert!(found.read(&file, &owners).unread.is_some());
    }
}
