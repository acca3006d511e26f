//! The sizes of types, by name.

use std::collections::HashMap;

use super::tokens::{Macro, Macros, Word};

/// The size and the alignment of a type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Type {
    pub(super) size: u64,
    pub(super) alignment: u64,
}

pub(super) const POINTER: Type = Type { size: 8, alignment: 8 };

/// The maximum number of words in a type, including those of macros.
const MOST_WORDS: usize = 256;

/// The types with a name of one word.
#[derive(Debug)]
pub(super) struct Types(HashMap<String, Type>);

impl Types {
    /// Returns the types of C and its standard headers for LP64, and those of TensorFlow.
    pub(super) fn known() -> Self {
        let types = [
            // TF_Bool comes from a header that TensorFlow's header of the executor includes.
            ("char bool _Bool int8_t uint8_t TF_Bool", 1),
            ("int16_t uint16_t", 2),
            ("float int32_t uint32_t", 4),
            ("double size_t ssize_t ptrdiff_t int64_t uint64_t intptr_t uintptr_t", 8),
        ];
        let known = types.iter().flat_map(|&(names, size)| {
            names.split(' ').map(move |name| (name.to_owned(), Type { size, alignment: size }))
        });
        Self(known.collect())
    }

    pub(super) fn insert(&mut self, name: String, found: Type) {
        self.0.insert(name, found);
    }

    /// Returns the size and the alignment of the type that the words name.
    pub(super) fn resolve(&self, words: &[Word], macros: &Macros) -> Option<Type> {
        let words = self.expanded(words, macros)?;
        if words.iter().any(|word| word.is('*')) {
            return Some(POINTER);
        }
        let qualifiers = ["const", "volatile", "struct", "union", "enum", "signed", "unsigned"];
        let names: Vec<&str> = words.iter().map(|word| word.name()).collect::<Option<_>>()?;
        let bare: Vec<&str> =
            names.iter().copied().filter(|name| !qualifiers.contains(name)).collect();
        let size = match bare[..] {
            ["__int128"] | ["long", "double"] => 16,
            ["long"] | ["long", "int"] | ["long", "long"] | ["long", "long", "int"] => 8,
            ["short"] | ["short", "int"] => 2,
            ["int"] => 4,
            [] => names.iter().any(|name| name.ends_with("signed")).then_some(4)?,
            [name] => return self.0.get(name).copied(),
            _ => return None,
        };
        Some(Type { size, alignment: size })
    }

    /// Returns the words of a type with all macros expanded, unless the expansion does not end.
    fn expanded<'a>(&self, words: &'a [Word], macros: &'a Macros) -> Option<Vec<&'a Word>> {
        let mut pending: Vec<&Word> = words.iter().rev().collect();
        let mut expanded = Vec::new();
        for _ in 0..MOST_WORDS {
            let Some(word) = pending.pop() else { return Some(expanded) };
            let stands_for = word
                .name()
                .filter(|name| !self.0.contains_key(*name))
                .and_then(|name| macros.get(name))
                .and_then(Macro::words);
            match stands_for {
                Some(words) if words.len() < MOST_WORDS => pending.extend(words.iter().rev()),
                Some(_) => return None,
                None => expanded.push(word),
            }
        }
        None
    }
}
