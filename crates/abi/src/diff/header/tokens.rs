//! The tokenizer and preprocessor of C headers: words, conditions, and macros with numbers.
//!
//! The preprocessor supports the parts that headers of a C API use: `#define` of numbers and names,
//! and conditions over them. It ignores `#include`, so definitions in other headers are unknown.

use std::collections::HashMap;

/// A word of the header, with the line on which it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) line: usize,
    /// The number of bytes before the word on its line.
    pub(super) column: usize,
    pub(super) word: Word,
}

/// The kind of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// A name or a keyword.
    Name(String),
    /// A number.
    Number(i64),
    /// A string literal.
    Text,
    /// A punctuation character.
    Sign(char),
    /// A comment, without its delimiters.
    Comment(String),
}

impl Word {
    /// Returns `true` if the word is this punctuation character.
    pub(super) fn is(&self, sign: char) -> bool {
        *self == Self::Sign(sign)
    }

    /// Returns the name, if the word is one.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            _ => None,
        }
    }
}

/// The macros that a header defines, by name.
pub(super) type Macros = HashMap<String, Macro>;

/// The replacement of a macro.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Macro {
    /// The words that replace the name of the macro.
    Words(Vec<Word>),
    /// A macro with arguments.
    Function,
}

impl Macro {
    /// Returns the replacement of a macro without arguments.
    pub(super) fn words(&self) -> Option<&[Word]> {
        match self {
            Self::Words(words) => Some(words),
            Self::Function => None,
        }
    }
}

/// The maximum number of nested conditions.
const MOST_CONDITIONS: usize = 256;

/// The maximum depth of macros that expand to macros.
const DEEPEST: usize = 16;

/// Returns the words of `text` that its conditions keep. `macros` has the macros defined before it,
/// and receives those that it defines. The error has the line and the problem.
pub(super) fn tokens(text: &str, macros: &mut Macros) -> Result<Vec<Token>, (usize, String)> {
    let mut found = Vec::new();
    // For each open condition: true if its lines count, and true if one of its branches did.
    let mut conditions: Vec<(bool, bool)> = Vec::new();
    let mut rest = text;
    let (mut line, mut line_start) = (1, 0);
    let mut at_line_start = true;
    while let Some(character) = rest.chars().next() {
        if character == '#' && at_line_start {
            let (directive, lines, after) = logical_line(rest);
            apply(&directive, &mut conditions, macros).map_err(|what| (line, what))?;
            (rest, line) = (after, line + lines);
            line_start = text.len() - rest.len();
            continue;
        }
        let counts = conditions.iter().all(|(counts, _)| *counts);
        let (word, behind) = next_word(rest);
        let at = text.len() - rest.len();
        let passed = rest.get(..rest.len() - behind.len()).unwrap_or_default();
        let newlines = passed.bytes().filter(|byte| *byte == b'\n').count();
        if let Some(word) = word.filter(|_| counts) {
            found.push(Token { line, column: at - line_start, word });
        }
        line += newlines;
        if let Some(last) = passed.rfind('\n') {
            line_start = at + last + 1;
        }
        at_line_start = match character {
            '\n' => true,
            _ => at_line_start && (character.is_whitespace() || newlines > 0),
        };
        rest = behind;
    }
    if conditions.is_empty() { Ok(found) } else { Err((line, "a condition without #endif".into())) }
}

/// Returns the word at the start of a text, unless that is a blank, and the rest of the text.
fn next_word(text: &str) -> (Option<Word>, &str) {
    if let Some(comment) = text.strip_prefix("/*") {
        let (comment, behind) = comment.split_once("*/").unwrap_or((comment, ""));
        return (Some(comment_word(comment)), behind);
    }
    if let Some(comment) = text.strip_prefix("//") {
        let (comment, behind) = comment.split_at(comment.find('\n').unwrap_or(comment.len()));
        return (Some(comment_word(comment)), behind);
    }
    let first = text.chars().next().unwrap_or(' ');
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    if is_name(first) {
        let (word, behind) = text.split_at(text.find(|c| !is_name(c)).unwrap_or(text.len()));
        return (Some(name_or_number(word)), behind);
    }
    if first == '"' || first == '\'' {
        return (Some(Word::Text), behind_text(text, first));
    }
    let word = (!first.is_whitespace() && first != '\\').then_some(Word::Sign(first));
    (word, behind_character(text))
}

/// Returns the text after a literal in such quotes, with which `text` begins.
fn behind_text(text: &str, quote: char) -> &str {
    let (mut rest, mut escaped) = (behind_character(text), false);
    while let Some(character) = rest.chars().next() {
        rest = behind_character(rest);
        if character == quote && !escaped {
            break;
        }
        escaped = character == '\\' && !escaped;
    }
    rest
}

fn behind_character(text: &str) -> &str {
    let mut characters = text.chars();
    characters.next();
    characters.as_str()
}

/// Returns a comment without the stars at the start of its lines.
fn comment_word(text: &str) -> Word {
    let lines =
        text.lines().map(|line| line.trim().trim_start_matches(['*', '/', '<', '!']).trim());
    Word::Comment(lines.collect::<Vec<_>>().join(" ").trim().to_owned())
}

fn name_or_number(text: &str) -> Word {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    let number = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hexadecimal) => i64::from_str_radix(hexadecimal, 16),
        None => digits.parse(),
    };
    let is_number = text.starts_with(|c: char| c.is_ascii_digit());
    match number {
        Ok(number) if is_number => Word::Number(number),
        _ => Word::Name(text.to_owned()),
    }
}

/// Returns a directive with its continuation lines joined, the number of line ends in it, and the
/// rest of the text.
fn logical_line(text: &str) -> (String, usize, &str) {
    let (mut line, mut ends, mut rest) = (String::new(), 0, text);
    while !rest.is_empty() {
        let (part, behind) = rest.split_once('\n').unwrap_or((rest, ""));
        (rest, ends) = (behind, ends + 1);
        let part = part.trim_end_matches('\r');
        match part.strip_suffix('\\') {
            Some(part) => line.push_str(part),
            None => {
                line.push_str(part);
                break;
            }
        }
    }
    (line, ends, rest)
}

fn words(text: &str) -> Vec<Word> {
    let (mut words, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let (word, behind) = next_word(rest);
        words.extend(word.filter(|word| !matches!(word, Word::Comment(_))));
        rest = behind;
    }
    words
}

/// Returns the name and the replacement of a `#define`.
fn definition(text: &str) -> Option<(String, Macro)> {
    let mut rest = text;
    while !rest.is_empty() {
        let (word, behind) = next_word(rest);
        rest = behind;
        match word {
            None | Some(Word::Comment(_)) => {}
            Some(Word::Name(name)) => {
                let has_arguments = behind.starts_with('(');
                let meaning =
                    if has_arguments { Macro::Function } else { Macro::Words(words(behind)) };
                return Some((name, meaning));
            }
            Some(_) => break,
        }
    }
    None
}

fn apply(
    directive: &str,
    conditions: &mut Vec<(bool, bool)>,
    macros: &mut Macros,
) -> Result<(), String> {
    let text = directive.trim_start_matches('#').trim_start();
    let length = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (what, rest) = text.split_at(length);
    let counts = conditions.iter().all(|(counts, _)| *counts);
    let defined = |words: &[Word]| words.first().and_then(Word::name).map(str::to_owned);
    match what {
        "if" | "ifdef" | "ifndef" if conditions.len() == MOST_CONDITIONS => {
            return Err(format!("more than {MOST_CONDITIONS} conditions inside of each other"));
        }
        "if" | "ifdef" | "ifndef" => {
            let words = words(rest);
            let holds = match what {
                "if" => counts && Condition::of(&words, macros)?,
                _ => {
                    let name = defined(&words).ok_or("a condition without a name")?;
                    macros.contains_key(&name) == (what == "ifdef")
                }
            };
            conditions.push((holds, holds));
        }
        "elif" | "else" => {
            let (_, taken) = conditions.pop().ok_or("#else without a condition")?;
            let outside = conditions.iter().all(|(counts, _)| *counts);
            let holds =
                !taken && outside && (what == "else" || Condition::of(&words(rest), macros)?);
            conditions.push((holds, taken || holds));
        }
        "endif" => {
            conditions.pop().ok_or("#endif without a condition")?;
        }
        "define" if counts => {
            let (name, meaning) = definition(rest).ok_or("#define without a name")?;
            macros.insert(name, meaning);
        }
        "undef" if counts => {
            macros.remove(&defined(&words(rest)).unwrap_or_default());
        }
        "error" if counts => return Err(format!("#error{rest}")),
        _ => {}
    }
    Ok(())
}

/// Returns the numeric value of a macro, through other macros.
pub(super) fn number_of(name: &str, macros: &Macros) -> Option<i64> {
    let mut name = name;
    for _ in 0..DEEPEST {
        match macros.get(name)?.words()? {
            [Word::Number(number)] => return Some(*number),
            [Word::Sign('-'), Word::Number(number)] => return number.checked_neg(),
            [Word::Sign('('), Word::Number(number), Word::Sign(')')] => return Some(*number),
            [Word::Name(other)] => name = other,
            _ => return None,
        }
    }
    None
}

/// A comparison of two numbers.
type Compare = fn(&i64, &i64) -> bool;

/// The expression of an `#if`, evaluated from left to right.
struct Condition<'a> {
    words: &'a [Word],
    macros: &'a Macros,
    /// The number of open brackets.
    depth: usize,
}

impl<'a> Condition<'a> {
    fn of(words: &'a [Word], macros: &'a Macros) -> Result<bool, String> {
        let mut condition = Condition { words, macros, depth: 0 };
        let value = condition.any()?;
        match condition.words {
            [] => Ok(value != 0),
            _ => Err("a condition that goes on behind its end".to_owned()),
        }
    }

    fn takes(&mut self, signs: &[char]) -> bool {
        let Some((next, behind)) = self.words.split_at_checked(signs.len()) else { return false };
        let is_next = next.iter().zip(signs).all(|(word, sign)| word.is(*sign));
        if is_next {
            self.words = behind;
        }
        is_next
    }

    fn any(&mut self) -> Result<i64, String> {
        let mut value = self.all()?;
        while self.takes(&['|', '|']) {
            let other = self.all()?;
            value = i64::from(value != 0 || other != 0);
        }
        Ok(value)
    }

    fn all(&mut self) -> Result<i64, String> {
        let mut value = self.comparison()?;
        while self.takes(&['&', '&']) {
            let other = self.comparison()?;
            value = i64::from(value != 0 && other != 0);
        }
        Ok(value)
    }

    fn comparison(&mut self) -> Result<i64, String> {
        let left = self.value()?;
        let operators: [(&[char], Compare); 6] = [
            (&['=', '='], i64::eq),
            (&['!', '='], i64::ne),
            (&['<', '='], i64::le),
            (&['>', '='], i64::ge),
            (&['<'], i64::lt),
            (&['>'], i64::gt),
        ];
        for (signs, compare) in operators {
            if self.takes(signs) {
                return Ok(i64::from(compare(&left, &self.value()?)));
            }
        }
        Ok(left)
    }

    fn value(&mut self) -> Result<i64, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("a condition of too many brackets".to_owned());
        }
        let value = if self.takes(&['!']) {
            i64::from(self.value()? == 0)
        } else if self.takes(&['(']) {
            let value = self.any()?;
            if !self.takes(&[')']) {
                return Err("a bracket that is not closed in a condition".to_owned());
            }
            value
        } else {
            self.single()?
        };
        self.depth -= 1;
        Ok(value)
    }

    fn single(&mut self) -> Result<i64, String> {
        let (first, rest) = self.words.split_first().ok_or("a condition without an end")?;
        self.words = rest;
        match first {
            Word::Number(number) => Ok(*number),
            Word::Name(name) if name == "defined" => {
                let bracket = self.takes(&['(']);
                let (name, rest) = self.words.split_first().ok_or("`defined` of nothing")?;
                self.words = rest;
                if bracket && !self.takes(&[')']) {
                    return Err("a bracket that is not closed in a condition".to_owned());
                }
                Ok(i64::from(name.name().is_some_and(|name| self.macros.contains_key(name))))
            }
            // As in C, an undefined name is 0.
            Word::Name(name) => Ok(number_of(name, self.macros).unwrap_or_default()),
            _ => Err("a condition in which a value is missing".to_owned()),
        }
    }
}
