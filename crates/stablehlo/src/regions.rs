//! Copying the section of operations, with the properties of some removed.
//!
//! The regions of an operation may have their own section, whose length changes with its
//! operations.

use std::collections::BTreeSet;

use super::{
    StableHloError,
    bytecode::{Bytecode, Cursor, Operation, Section, SectionKind, write_section},
};

/// Limit on nested sections: each is copied into the one around it.
const DEEPEST: usize = 64;

/// Returns the section of operations, with the properties removed from operations of these names.
pub(super) fn without_properties(
    file: &Bytecode<'_>,
    section: Cursor<'_>,
    names: &BTreeSet<usize>,
) -> Result<Vec<u8>, StableHloError> {
    let mut copy = Copy { file: section, open: Vec::new(), out: Vec::new() };
    let mut copied = Ok(());
    file.walk(|operation| {
        if copied.is_ok() {
            copied = copy.take(operation, names.contains(&operation.name));
        }
    })?;
    copied?;
    copy.finish()
}

/// A copy of the operations up to a position.
struct Copy<'a> {
    /// The rest of the section.
    file: Cursor<'a>,
    /// The open sections: the end of each, and the copy of the section around it.
    open: Vec<(usize, Vec<u8>)>,
    /// The copy of the innermost section.
    out: Vec<u8>,
}

impl Copy<'_> {
    /// Copies up to an operation's end, including the head of the section of its regions.
    fn take(&mut self, operation: &Operation, is_bare: bool) -> Result<(), StableHloError> {
        self.close(operation.at)?;
        if is_bare && operation.properties.is_some() {
            self.copy_to(operation.mask.0)?;
            self.file.byte()?;
            self.out.push(operation.mask.1 & !Operation::HAS_PROPERTIES);
            self.copy_to(operation.properties_at)?;
            self.file.varint()?;
        }
        if operation.regions > 0 && operation.in_section {
            self.copy_to(operation.end)?;
            let (kind, alignment, length) = Section::read_head(&mut self.file)?;
            if kind != SectionKind::Operations || alignment.is_some() {
                return Ok(self.file.damage("a section of operations that is not aligned")?);
            }
            if self.open.len() >= DEEPEST {
                return Ok(self.file.damage("at most 64 sections of operations in one another")?);
            }
            let end = self.file.at().saturating_add(length);
            self.open.push((end, std::mem::take(&mut self.out)));
        }
        Ok(())
    }

    /// Closes the sections that end before a position.
    fn close(&mut self, at: usize) -> Result<(), StableHloError> {
        while let Some((end, _)) = self.open.last().filter(|(end, _)| *end <= at) {
            self.copy_to(*end)?;
            if let Some((_, around)) = self.open.pop() {
                let inside = std::mem::replace(&mut self.out, around);
                write_section(&mut self.out, SectionKind::Operations, None, &inside);
            }
        }
        Ok(())
    }

    fn copy_to(&mut self, at: usize) -> Result<(), StableHloError> {
        let bytes = self.file.bytes(at.saturating_sub(self.file.at()))?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<u8>, StableHloError> {
        self.close(usize::MAX)?;
        self.out.extend_from_slice(self.file.rest());
        Ok(self.out)
    }
}
