//! Attribute names that need a dialect prefix: those of modules, and those of arguments and results
//! of functions.

use std::collections::BTreeSet;

use serdes_mlir_bytecode::{Cursor, Operation, Result, Stop, Tables};

use super::texts;

/// The dictionaries that were checked, each once.
#[derive(Debug, Default)]
pub(super) struct AttributeNames {
    seen: BTreeSet<usize>,
}

/// Smallest length of a dictionary that is recorded as checked: it exceeds the size of its entry in
/// the set.
const FEWEST_BYTES: usize = 16;

impl AttributeNames {
    /// Checks that all names in the dictionary of a module have dialect prefixes.
    pub(super) fn check_module<'a>(
        &mut self,
        tables: &Tables<'a>,
        attributes: usize,
        operation: &Operation<'a>,
    ) -> Result<(), Stop> {
        let Some(entry) = tables.entry(&tables.attributes, attributes) else { return Ok(()) };
        let mut contents = entry.contents;
        if !entry.is_encoded || contents.varint()? != 1 {
            return Ok(());
        }
        let string = |index: usize| {
            let entry = tables.entry(&tables.attributes, index)?;
            let mut contents = entry.contents;
            contents.varint().ok()?;
            let string = usize::try_from(contents.varint().ok()?).ok()?;
            entry.is_encoded.then(|| tables.string(string))
        };
        self.check_names(attributes, contents, operation, string)
    }

    /// Checks that all names in the dictionaries of arguments or results have dialect prefixes.
    pub(super) fn check_values<'a>(
        &mut self,
        tables: &Tables<'a>,
        array: usize,
        operation: &Operation<'a>,
    ) -> Result<(), Stop> {
        let Some((1, mut list)) = texts::vhlo(tables, array, false) else { return Ok(()) };
        if list.rest().len() >= FEWEST_BYTES && !self.seen.insert(array) {
            return Ok(());
        }
        for _ in 0..list.varint()? {
            let dictionary = usize::try_from(list.varint()?).unwrap_or(usize::MAX);
            if let Some((6, contents)) = texts::vhlo(tables, dictionary, false) {
                let string = |index| texts::string_of(tables, index);
                self.check_names(dictionary, contents, operation, string)?;
            }
        }
        Ok(())
    }

    fn check_names<'a>(
        &mut self,
        dictionary: usize,
        mut contents: Cursor<'a>,
        operation: &Operation<'a>,
        string: impl Fn(usize) -> Option<&'a [u8]>,
    ) -> Result<(), Stop> {
        if contents.rest().len() >= FEWEST_BYTES && !self.seen.insert(dictionary) {
            return Ok(());
        }
        for _ in 0..contents.varint()? {
            let name = usize::try_from(contents.varint()?).unwrap_or(usize::MAX);
            contents.varint()?;
            if string(name).is_some_and(|name| !name.contains(&b'.')) {
                let expected = "names of attributes with a dialect in front";
                return Ok(operation.results.damage(expected)?);
            }
        }
        Ok(())
    }
}
