//! A member of a struct beside its type: its signature, and what its comment says of it.

use super::tokens::Word;
use crate::diff::document::{Field, Zero, without_blanks};

/// The name and the signature of a pointer to a function.
pub(super) fn function(words: &[Word]) -> Option<(String, String)> {
    let open = words.windows(2).position(|pair| *pair == [Word::Sign('('), Word::Sign('*')])?;
    let (result, pointer) = words.split_at(open);
    let (named, behind) = pointer.split_at(pointer.iter().position(|word| word.is(')'))?);
    let name = named.iter().rev().find_map(Word::name)?;
    let arguments = behind.strip_prefix(&[Word::Sign(')'), Word::Sign('(')])?;
    let arguments = arguments.strip_suffix(&[Word::Sign(')')])?;
    let mut depth = 0usize;
    let arguments: Vec<String> = arguments
        .split(|word| {
            match word {
                Word::Sign('(') => depth += 1,
                Word::Sign(')') => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && word.is(',')
        })
        .map(|argument| written(without_name(argument)))
        .collect();
    let signature = format!("{}({})", written(result), arguments.join(","));
    Some((name.to_owned(), without_blanks(&signature)))
}

/// The type of an argument: what it is called is no part of the signature.
fn without_name(argument: &[Word]) -> &[Word] {
    const TYPES: [&str; 10] =
        ["void", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "const"];
    const QUALIFIERS: [&str; 5] = ["const", "volatile", "struct", "enum", "union"];
    match argument.split_last() {
        Some((Word::Name(name), rest))
            if !TYPES.contains(&name.as_str())
                && rest
                    .iter()
                    .any(|word| !word.name().is_some_and(|name| QUALIFIERS.contains(&name))) =>
        {
            rest
        }
        _ => argument,
    }
}

/// Words with blanks between them.
pub(super) fn written(words: &[Word]) -> String {
    let written = words.iter().map(|word| match word {
        Word::Name(name) => name.clone(),
        Word::Number(number) => number.to_string(),
        Word::Sign(sign) => sign.to_string(),
        Word::Text | Word::Comment(_) => String::new(),
    });
    written.collect::<Vec<_>>().join(" ")
}

/// What a comment says of zero, and whether the member is required.
pub(super) fn marks(remark: &str) -> (Zero, bool) {
    let remark = remark.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| remark.contains(word));
    let zero = if says(&["is no-op", "is a no-op", "[no-op]"]) {
        Zero::NoOp
    } else if says(&["[optional]", "[value]"])
        || sentences(&remark).any(|s| s.starts_with("optional"))
    {
        Zero::Meaningful
    } else {
        Zero::Unmarked
    };
    (zero, says(&["[required]"]))
}

fn sentences(remark: &str) -> impl Iterator<Item = &str> {
    remark.split(['.', ';']).map(|sentence| sentence.trim_start_matches([' ', '/', '*']))
}

/// Whether a comment says that something is deprecated, and what to use instead.
pub(super) fn deprecation(remark: &str) -> (bool, Option<String>) {
    let lower = remark.to_ascii_lowercase();
    let deprecated = lower.contains("will be deprecated")
        || sentences(&lower).any(|sentence| sentence.starts_with("deprecat"));
    let successor = || {
        let begins = lower.find("use `")? + "use `".len();
        let (name, _) = remark.get(begins..)?.split_once('`')?;
        Some(name.to_owned())
    };
    (deprecated, deprecated.then(successor).flatten())
}

/// Fields whose successors are members of the struct; what else a comment names is no successor.
pub(super) fn with_successors(mut fields: Vec<Field>) -> Vec<Field> {
    let names: Vec<String> = fields.iter().map(|field| field.name.clone()).collect();
    for field in &mut fields {
        field.replaced_by =
            field.replaced_by.take().filter(|name| *name != field.name && names.contains(name));
    }
    fields
}
