//! The facts about a struct's member besides its type: its signature, and the marks in its comment.

use super::tokens::Word;
use crate::diff::{document::without_blanks, layout::Zero, outcome::Deprecation};

/// Returns the name and the signature of a pointer to a function.
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
        .map(|argument| written(without_qualifier(without_name(argument))))
        .collect();
    let signature = format!("{}({})", written(result), arguments.join(","));
    Some((name.to_owned(), without_blanks(&signature)))
}

/// Returns the type of an argument; its name is not part of the signature.
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

/// Returns the type of an argument without qualifiers of the argument's own copy: `T* const` is
/// called like `T*`.
fn without_qualifier(argument: &[Word]) -> &[Word] {
    const QUALIFIERS: [&str; 3] = ["const", "volatile", "restrict"];
    match argument.split_last() {
        Some((Word::Name(name), rest @ [.., last])) if QUALIFIERS.contains(&name.as_str()) => {
            if last.is('*') {
                rest
            } else {
                argument
            }
        }
        _ => argument,
    }
}

/// Returns the words separated by blanks.
pub(super) fn written(words: &[Word]) -> String {
    let written = words.iter().map(|word| match word {
        Word::Name(name) => name.clone(),
        Word::Number(number) => number.to_string(),
        Word::Sign(sign) => sign.to_string(),
        Word::Text | Word::Comment(_) => String::new(),
    });
    written.collect::<Vec<_>>().join(" ")
}

/// Returns the text of consecutive comments, once with a sentence per line, and once with sentences
/// that continue across lines.
pub(super) fn joined(comments: &[&str]) -> String {
    match comments {
        [] => String::new(),
        [comment] => (*comment).to_owned(),
        _ => format!("{}. {}", comments.join(". "), comments.join(" ")),
    }
}

/// Returns the meaning of zero in a comment, and `true` if the member is required.
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
    remark.split(['.', ';']).map(|sentence| sentence.trim_start_matches(BEFORE_A_SENTENCE))
}

/// The characters that may precede the first word of a sentence.
const BEFORE_A_SENTENCE: [char; 6] = [' ', '/', '*', '@', '\\', '['];

/// Returns the state of the deprecation that a comment declares.
pub(super) fn deprecation(remark: &str) -> Option<Deprecation> {
    let lower = remark.to_ascii_lowercase();
    let announces = |sentence: &str| {
        ANNOUNCING.iter().any(|words| sentence.contains(words))
            || sentence.starts_with("deprecating")
    };
    let states = sentences(&lower).filter_map(|sentence| {
        if announces(sentence) {
            Some(Deprecation::Announced)
        } else {
            sentence.starts_with("deprecat").then_some(Deprecation::ByZero)
        }
    });
    states.max()
}

/// Phrases that announce a deprecation.
const ANNOUNCING: [&str; 4] =
    ["will be deprecated", "to be deprecated", "deprecated soon", "deprecating soon"];

/// Returns the successor that the comment of something deprecated names: ``Use `name` ``.
pub(super) fn successor(remark: &str) -> Option<String> {
    let speaks_of_it = |sentence: &str| {
        sentence.is_empty()
            || sentence.starts_with("deprecat")
            || ANNOUNCING.iter().any(|words| sentence.contains(words))
    };
    quoted_behind(remark, "use `")
        .find(|quoted| speaks_of_it(&quoted.before))
        .map(|quoted| quoted.name)
}

/// Returns the name that the described member replaces, by its comment: ``Replaces `name`.``
pub(super) fn replaced(remark: &str) -> Option<String> {
    quoted_behind(remark, "replaces `")
        .find(|quoted| quoted.before.is_empty() && quoted.ends_sentence)
        .map(|quoted| quoted.name)
}

/// A name in backquotes.
struct Quoted {
    name: String,
    /// The text before the name in its sentence, in lower case.
    before: String,
    ends_sentence: bool,
}

/// The number of bytes of a sentence that are searched, so that long comments do not cost too much
/// time.
const LONGEST_SENTENCE: usize = 200;

/// Returns the names in backquotes after `words`, whose last character is the opening quote.
fn quoted_behind(remark: &str, words: &str) -> impl Iterator<Item = Quoted> {
    let lower = remark.to_ascii_lowercase();
    let places: Vec<usize> = lower.match_indices(words).map(|(at, _)| at).collect();
    places.into_iter().filter_map(move |at| {
        let before = lower.as_bytes().get(at.saturating_sub(LONGEST_SENTENCE)..at)?;
        let sentence = before.rsplit(|byte| matches!(byte, b'.' | b';')).next()?;
        let (name, rest) = remark.get(at + words.len()..)?.split_once('`')?;
        let before = String::from_utf8_lossy(sentence);
        Some(Quoted {
            name: name.trim_end_matches("()").to_owned(),
            before: before.trim_start_matches(BEFORE_A_SENTENCE).trim_end().to_owned(),
            ends_sentence: rest
                .trim_start()
                .chars()
                .next()
                .is_none_or(|next| ".;,/*".contains(next)),
        })
    })
}
