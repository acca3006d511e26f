//! Reads declarations: structs, enumerations, and the names of types.

use std::{collections::HashMap, path::Path};

use super::{
    marks::{deprecation, function, marks, with_successors, written},
    sizes::{announce_sizes, version},
    tokens::{Macros, Token, Word, number_of, tokens},
};
use crate::diff::document::{Field, LayoutDocument, LayoutFileError, Structure, without_blanks};

/// What is known of a type.
#[derive(Clone, Copy, Debug)]
struct Type {
    size: u64,
    alignment: u64,
}

const POINTER: Type = Type { size: 8, alignment: 8 };

/// Sizes from here on are no sizes of structs.
const TOO_LARGE: u64 = 1 << 32;

/// Reads the layout that `text` declares. `definitions` are macros that are set before it,
/// `NAME=NUMBER` with commas between.
pub(in crate::diff) fn parse(
    text: &str,
    definitions: &str,
    path: &Path,
) -> Result<LayoutDocument, LayoutFileError> {
    let mut macros = Macros::new();
    for definition in definitions.split(',').filter(|definition| !definition.is_empty()) {
        let number = definition
            .split_once('=')
            .and_then(|(name, number)| Some((name.trim().to_owned(), number.trim().parse().ok()?)));
        let (name, number) = number.ok_or_else(|| LayoutFileError::Malformed {
            at: path.display().to_string(),
            found: format!("`{definition}`"),
            expected: "NAME=NUMBER, a macro that the header looks at",
        })?;
        macros.insert(name, vec![Word::Number(number)]);
    }
    let malformed = |line: usize, found: String, expected| LayoutFileError::Malformed {
        at: format!("{}:{line}", path.display()),
        found,
        expected,
    };
    let tokens = tokens(text, &mut macros)
        .map_err(|(line, found)| malformed(line, found, "a header in C"))?;
    let mut header = Header::new(&tokens, &macros);
    header.read().map_err(|(line, found, expected)| malformed(line, found, expected))?;
    let Header { mut structs, ends, .. } = header;
    announce_sizes(&mut structs, &macros, &ends);
    if structs.is_empty() {
        return Err(malformed(1, "no struct".to_owned(), "a header that declares some"));
    }
    let names: Vec<String> = structs.iter().map(|found| found.name.clone()).collect();
    for found in &mut structs {
        let successor = found.replaced_by.take();
        found.replaced_by = successor.filter(|name| *name != found.name && names.contains(name));
    }
    Ok(LayoutDocument { structs, version: version(&macros) })
}

/// Where a declaration cannot be read, what was found and what was expected.
type Trouble = (usize, String, &'static str);

/// A header while it is read.
struct Header<'a> {
    tokens: &'a [Token],
    at: usize,
    types: HashMap<String, Type>,
    structs: Vec<Structure>,
    /// Structs and the members at which they end, as macros at the top level say it.
    ends: Vec<(String, String)>,
    macros: &'a Macros,
}

impl<'a> Header<'a> {
    fn new(tokens: &'a [Token], macros: &'a Macros) -> Self {
        let types = [
            ("char bool _Bool int8_t uint8_t", 1),
            ("int16_t uint16_t", 2),
            ("float int32_t uint32_t", 4),
            ("double size_t ssize_t ptrdiff_t int64_t uint64_t intptr_t uintptr_t", 8),
        ];
        let known = types.iter().flat_map(|&(names, size)| {
            names.split(' ').map(move |name| (name.to_owned(), Type { size, alignment: size }))
        });
        let types = known.collect();
        Self { tokens, at: 0, types, structs: Vec::new(), ends: Vec::new(), macros }
    }

    fn peek(&self) -> Option<&'a Word> {
        self.tokens.get(self.at).map(|token| &token.word)
    }

    fn next(&mut self) -> Option<&'a Token> {
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        Some(token)
    }

    fn trouble(&self, found: impl Into<String>, expected: &'static str) -> Trouble {
        let last = self.tokens.get(self.at.saturating_sub(1));
        (last.map_or(1, |token| token.line), found.into(), expected)
    }

    /// Reads everything.
    fn read(&mut self) -> Result<(), Trouble> {
        let mut remark = String::new();
        while let Some(token) = self.next() {
            match &token.word {
                Word::Comment(text) => {
                    remark.clone_from(text);
                    continue;
                }
                Word::Name(name) if name == "typedef" => self.declaration(true, &remark)?,
                Word::Name(name) if ["struct", "enum", "union"].contains(&name.as_str()) => {
                    self.at -= 1;
                    self.declaration(false, &remark)?;
                }
                // Of `extern "C" {` the name and the text go, then the bracket.
                Word::Name(name) if name == "extern" && self.peek() == Some(&Word::Text) => {}
                Word::Name(_) => {
                    self.note_end();
                    self.skip();
                }
                _ => {}
            }
            remark.clear();
        }
        Ok(())
    }

    /// A macro at the top level that names a struct and its last member, `TRAITS(TYPE, MEMBER)`.
    fn note_end(&mut self) {
        if let Some([open, structure, comma, member, close, ..]) = self.tokens.get(self.at..)
            && open.word.is('(')
            && comma.word.is(',')
            && close.word.is(')')
            && let (Some(structure), Some(member)) = (structure.word.name(), member.word.name())
        {
            self.ends.push((structure.to_owned(), member.to_owned()));
        }
    }

    /// Passes over what is no type.
    fn skip(&mut self) {
        let mut depth = 0usize;
        while let Some(token) = self.next() {
            match token.word {
                Word::Sign('{' | '(') => depth += 1,
                Word::Sign('}') => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return;
                    }
                }
                Word::Sign(')') => depth = depth.saturating_sub(1),
                Word::Sign(';') if depth == 0 => return,
                _ => {}
            }
        }
    }

    /// A declaration of a type, behind `typedef` if there was one.
    fn declaration(&mut self, is_typedef: bool, remark: &str) -> Result<(), Trouble> {
        let begins = self.at;
        let what = self.next().and_then(|token| token.word.name()).unwrap_or_default();
        if ["struct", "union", "enum"].contains(&what) {
            let tag = self.peek().and_then(Word::name).map(str::to_owned);
            if tag.is_some() {
                self.at += 1;
            }
            if self.peek().is_some_and(|word| word.is('{')) {
                self.at += 1;
                return self.body(what, tag, is_typedef, remark);
            }
        }
        self.at = begins;
        let words = self.words_to_semicolon()?;
        if !is_typedef {
            return Ok(());
        }
        if let Some((name, _)) = function(&words) {
            self.types.insert(name, POINTER);
        } else if let Some((Word::Name(name), rest)) = words.split_last()
            && let Some(found) = self.resolve(rest)
        {
            self.types.insert(name.clone(), found);
        }
        Ok(())
    }

    /// The body of a struct, union or enumeration, and the name behind it.
    fn body(
        &mut self,
        what: &str,
        tag: Option<String>,
        is_typedef: bool,
        remark: &str,
    ) -> Result<(), Trouble> {
        let (mut fields, mut values) = (Vec::new(), Vec::new());
        if what == "enum" {
            values = self.values()?;
        } else {
            fields = self.members(what == "union")?;
        }
        let behind = self.words_to_semicolon()?;
        let alias = behind.last().and_then(Word::name).filter(|_| is_typedef).map(str::to_owned);
        let Some(name) = alias.clone().or_else(|| tag.clone()) else { return Ok(()) };
        let alignment = fields.iter().map(|(_, found)| found.alignment).max().unwrap_or(1);
        let fields: Vec<Field> = fields.into_iter().map(|(field, _)| field).collect();
        let end = fields.iter().map(Field::end).max().unwrap_or_default();
        let found = match what {
            "enum" => Type { size: 4, alignment: 4 },
            _ => Type { size: end.next_multiple_of(alignment), alignment },
        };
        for name in alias.into_iter().chain(tag) {
            self.types.insert(name, found);
        }
        if what == "union" {
            return Ok(());
        }
        let (deprecated, successor) = deprecation(remark);
        self.structs.push(Structure {
            name,
            struct_size: end,
            alignment: (what == "struct").then_some(alignment),
            deprecated,
            replaced_by: successor,
            fields: with_successors(fields),
            values,
        });
        Ok(())
    }

    /// The words up to the next semicolon, without comments.
    fn words_to_semicolon(&mut self) -> Result<Vec<Word>, Trouble> {
        let mut words = Vec::new();
        while let Some(token) = self.next() {
            match &token.word {
                Word::Sign(';') => return Ok(words),
                Word::Comment(_) => {}
                word => words.push(word.clone()),
            }
        }
        Err(self.trouble("the end of the header", "`;` behind a declaration"))
    }

    /// The names and numbers of an enumeration.
    fn values(&mut self) -> Result<Vec<(String, i64)>, Trouble> {
        let (mut values, mut next) = (Vec::<(String, i64)>::new(), 0i64);
        let mut words = Vec::new();
        while let Some(token) = self.next() {
            match &token.word {
                Word::Comment(_) => {}
                Word::Sign(',' | '}') => {
                    if let Some((Word::Name(name), value)) = words.split_first() {
                        let number = match value {
                            [] => Some(next),
                            [Word::Sign('='), Word::Number(number)] => Some(*number),
                            [Word::Sign('='), Word::Sign('-'), Word::Number(number)] => {
                                number.checked_neg()
                            }
                            [Word::Sign('='), Word::Name(other)] => {
                                let known = values.iter().find(|(name, _)| name == other);
                                let known = known.map(|(_, number)| *number);
                                known.or_else(|| number_of(other, self.macros))
                            }
                            _ => None,
                        };
                        let number = number
                            .ok_or_else(|| self.trouble(format!("`{name}`"), "a number for it"))?;
                        values.push((name.to_owned(), number));
                        next = number.saturating_add(1);
                    }
                    words.clear();
                    if token.word.is('}') {
                        return Ok(values);
                    }
                }
                word => words.push(word.clone()),
            }
        }
        Err(self.trouble("the end of the header", "`}` behind an enumeration"))
    }

    /// The members of a struct, each with its type; of a union, all at offset 0.
    fn members(&mut self, overlap: bool) -> Result<Vec<(Field, Type)>, Trouble> {
        let (mut members, mut end) = (Vec::new(), 0u64);
        let (mut words, mut remark) = (Vec::new(), String::new());
        while let Some(token) = self.next() {
            match &token.word {
                Word::Comment(text) => {
                    remark.push_str(text);
                    remark.push_str(". ");
                }
                Word::Sign('}') => return Ok(members),
                Word::Sign(';') => {
                    // What stands behind it on its line is said of it.
                    while let Some(Token { line, word: Word::Comment(text) }) =
                        self.tokens.get(self.at)
                        && *line == token.line
                    {
                        remark.push_str(text);
                        self.at += 1;
                    }
                    let (mut field, found) = self.member(&words, &remark)?;
                    if !overlap {
                        field.offset = end.next_multiple_of(found.alignment);
                        end = field.end();
                    }
                    members.push((field, found));
                    words.clear();
                    remark.clear();
                }
                word => words.push(word.clone()),
            }
        }
        Err(self.trouble("the end of the header", "`}` behind a struct"))
    }

    /// One member, at offset 0.
    fn member(&self, words: &[Word], remark: &str) -> Result<(Field, Type), Trouble> {
        let expected =
            "a member of a type that the header declares, without bits, one a declaration";
        let unreadable = || self.trouble(format!("`{}`", written(words)), expected);
        let (name, kind, signature, found) = if let Some((name, signature)) = function(words) {
            (name, "fn".to_owned(), Some(signature), POINTER)
        } else {
            if words.iter().any(|word| word.is('{') || word.is(':') || word.is(',')) {
                return Err(unreadable());
            }
            let array = words.iter().position(|word| word.is('[')).unwrap_or(words.len());
            let (declared, counts) = words.split_at(array);
            let Some((Word::Name(name), element @ [_, ..])) = declared.split_last() else {
                return Err(unreadable());
            };
            let mut found = self.resolve(element).ok_or_else(unreadable)?;
            let mut kind = without_blanks(&written(element));
            for count in counts.chunks(3) {
                let number = match count {
                    [open, Word::Number(number), close] if open.is('[') && close.is(']') => {
                        Some(*number)
                    }
                    [open, Word::Name(name), close] if open.is('[') && close.is(']') => {
                        number_of(name, self.macros)
                    }
                    _ => None,
                };
                let number = number.and_then(|number| u64::try_from(number).ok());
                let number = number.filter(|&number| number > 0).ok_or_else(unreadable)?;
                kind.push_str(&format!("[{number}]"));
                found.size = found.size.checked_mul(number).ok_or_else(unreadable)?;
            }
            (name.clone(), kind, None, found)
        };
        if found.size >= TOO_LARGE {
            return Err(unreadable());
        }
        let (deprecated, replaced_by) = deprecation(remark);
        let (zero, required) = marks(remark);
        let size = found.size;
        let field = Field {
            name,
            kind,
            offset: 0,
            size,
            signature,
            deprecated,
            replaced_by,
            zero,
            required,
        };
        Ok((field, found))
    }

    /// What is known of a type by its words.
    fn resolve(&self, words: &[Word]) -> Option<Type> {
        if words.iter().any(|word| word.is('*')) {
            return Some(POINTER);
        }
        let qualifiers = ["const", "volatile", "struct", "union", "enum", "signed", "unsigned"];
        let names: Vec<&str> = words.iter().map(Word::name).collect::<Option<_>>()?;
        let bare: Vec<&str> =
            names.iter().copied().filter(|name| !qualifiers.contains(name)).collect();
        let size = match bare[..] {
            ["__int128"] | ["long", "double"] => 16,
            ["long"] | ["long", "int"] | ["long", "long"] | ["long", "long", "int"] => 8,
            ["short"] | ["short", "int"] => 2,
            ["int"] => 4,
            [] => names.iter().any(|name| name.ends_with("signed")).then_some(4)?,
            [name] => return self.types.get(name).copied(),
            _ => return None,
        };
        Some(Type { size, alignment: size })
    }
}
