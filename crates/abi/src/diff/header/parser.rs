//! Parses declarations: structs, enumerations, and the names of types.

use std::{collections::HashSet, path::Path};

use super::{
    claims::{self, Claim},
    marks::{deprecation, function, joined, marks, written},
    sizes::{End, set_declared_sizes, version},
    tokens::{Macro, Macros, Token, Word, number_of, tokens},
    types::{POINTER, Type, Types},
};
use crate::diff::{
    document::without_blanks,
    error::LayoutFileError,
    layout::{Field, LayoutDocument, Source, Structure},
};

/// Larger numbers cannot be sizes of structs.
const TOO_LARGE: u64 = 1 << 32;

/// Parses the layout that `text` declares. `definitions` are macros that are defined before it, as
/// `NAME=NUMBER` separated by commas.
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
        macros.insert(name, Macro::Words(vec![Word::Number(number)]));
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
    let Header { mut structs, ends, claims, functions, mut remarks, .. } = header;
    if structs.is_empty() {
        return Err(malformed(1, "no struct".to_owned(), "a header that declares some"));
    }
    remarks.extend(set_declared_sizes(&mut structs, &macros, &ends).map_err(|found| {
        LayoutFileError::Malformed {
            at: path.display().to_string(),
            found,
            expected: "a member that the struct has",
        }
    })?);
    let said = claims::apply(&claims, &functions, &mut structs);
    remarks.extend(said.map_err(|(line, found, expected)| malformed(line, found, expected))?);
    Ok(LayoutDocument { structs, version: version(&macros), source: Source::Header, remarks })
}

/// A declaration that cannot be read: the line, the text found, the text expected.
type Trouble = (usize, String, &'static str);

/// The state of the parser of a header.
struct Header<'a> {
    tokens: &'a [Token],
    at: usize,
    types: Types,
    structs: Vec<Structure>,
    /// Structs and the members at which they end, given by macros at the top level.
    ends: Vec<End>,
    claims: Vec<Claim>,
    /// The functions that are declared outside the structs.
    functions: HashSet<String>,
    remarks: Vec<String>,
    /// The names of the structs, unions and enumerations so far.
    names: HashSet<String>,
    macros: &'a Macros,
}

/// A member of a struct, with its comment.
struct Member {
    line: usize,
    field: Field,
    found: Type,
    remark: String,
}

impl<'a> Header<'a> {
    fn new(tokens: &'a [Token], macros: &'a Macros) -> Self {
        Self {
            tokens,
            at: 0,
            types: Types::known(),
            structs: Vec::new(),
            ends: Vec::new(),
            claims: Vec::new(),
            functions: HashSet::new(),
            remarks: Vec::new(),
            names: HashSet::new(),
            macros,
        }
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

    /// Parses the whole header.
    fn read(&mut self) -> Result<(), Trouble> {
        // All lines of the comment before a declaration.
        let (mut remark, mut line) = (Vec::new(), 0);
        while let Some(token) = self.next() {
            match &token.word {
                Word::Comment(text) => {
                    if token.line > line + 1 {
                        remark.clear();
                    }
                    line = token.line;
                    remark.push(text.as_str());
                    continue;
                }
                Word::Name(name) if name == "typedef" => self.declaration(true, &remark)?,
                Word::Name(name) if ["struct", "enum", "union"].contains(&name.as_str()) => {
                    self.at -= 1;
                    self.declaration(false, &remark)?;
                }
                // Skips the name and the text of `extern "C" {`; the bracket follows.
                Word::Name(name) if name == "extern" && self.peek() == Some(&Word::Text) => {}
                Word::Name(name) => {
                    self.note_end(name);
                    self.skip(name);
                }
                _ => {}
            }
            remark.clear();
            // A comment after a declaration on the same line does not describe the next one.
            self.trailing();
        }
        Ok(())
    }

    /// Returns the comments after the last word on its line, including those aligned below them.
    fn trailing(&mut self) -> Vec<&'a str> {
        let mut remarks = Vec::new();
        let last = self.tokens.get(self.at.saturating_sub(1)).map_or(0, |token| token.line);
        let (mut line, mut column) = (last, None);
        while let Some(Token { line: at, column: begins, word: Word::Comment(text) }) =
            self.tokens.get(self.at)
            && (*at == last || (*at == line + 1 && column == Some(*begins)))
        {
            remarks.push(text.as_str());
            (line, column) = (*at, Some(*begins));
            self.at += 1;
        }
        remarks
    }

    /// Records a macro at the top level that names a struct and its last member,
    /// `TRAITS(TYPE, MEMBER)`.
    fn note_end(&mut self, macro_name: &str) {
        if let Some([open, structure, comma, member, close, ..]) = self.tokens.get(self.at..)
            && open.word.is('(')
            && comma.word.is(',')
            && close.word.is(')')
            && let (Some(structure), Some(member)) = (structure.word.name(), member.word.name())
        {
            self.ends.push(End {
                by: macro_name.to_owned(),
                structure: structure.to_owned(),
                member: member.to_owned(),
            });
        }
    }

    /// Skips a declaration that is not a type, and records the function that it declares.
    fn skip(&mut self, first: &str) {
        let (mut depth, mut name) = (0usize, Some(first));
        while let Some(token) = self.next() {
            match &token.word {
                Word::Sign('{' | '(') => {
                    if let Some(function) = name.take().filter(|_| depth == 0) {
                        self.functions.insert(function.to_owned());
                    }
                    depth += 1;
                }
                Word::Sign('}') => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return;
                    }
                }
                Word::Sign(')') => depth = depth.saturating_sub(1),
                Word::Sign(';') if depth == 0 => return,
                Word::Name(found) if depth == 0 => name = Some(found),
                _ => {}
            }
        }
    }

    /// Parses the declaration of a type, after `typedef` if there was one.
    fn declaration(&mut self, is_typedef: bool, remark: &[&str]) -> Result<(), Trouble> {
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
            && let Some(found) = self.types.resolve(rest, self.macros)
        {
            self.types.insert(name.clone(), found);
        }
        Ok(())
    }

    /// Parses the body of a struct, union or enumeration, and the name after it.
    fn body(
        &mut self,
        what: &str,
        tag: Option<String>,
        is_typedef: bool,
        remark: &[&str],
    ) -> Result<(), Trouble> {
        let line = self.tokens.get(self.at.saturating_sub(1)).map_or(1, |token| token.line);
        let mut remark = remark.to_vec();
        remark.extend(self.behind_bracket());
        let (mut members, mut values) = (Vec::new(), Vec::new());
        if what == "enum" {
            values = self.values()?;
        } else {
            members = self.members(what == "union")?;
        }
        let behind = self.words_to_semicolon()?;
        remark.extend(self.trailing());
        let alias = behind.last().and_then(Word::name).filter(|_| is_typedef).map(str::to_owned);
        let Some(name) = alias.clone().or_else(|| tag.clone()) else { return Ok(()) };
        let alignment = members.iter().map(|member| member.found.alignment).max().unwrap_or(1);
        let end = members.iter().map(|member| member.field.end()).max().unwrap_or_default();
        let found = match what {
            "enum" => Type { size: 4, alignment: 4 },
            _ => Type { size: end.next_multiple_of(alignment), alignment },
        };
        let name = self.unused_name(name, tag.as_deref())?;
        for name in alias.into_iter().chain(tag) {
            self.types.insert(name, found);
        }
        if what == "union" {
            return Ok(());
        }
        let remark = joined(&remark);
        let state = deprecation(&remark);
        self.claims.extend(Claim::find(&remark, state, line, (&name, None)));
        for Member { line, field, remark, .. } in &members {
            let of = (name.as_str(), Some(field.name.as_str()));
            self.claims.extend(Claim::find(remark, field.deprecation, *line, of));
        }
        self.structs.push(Structure {
            name,
            struct_size: end,
            alignment: (what == "struct").then_some(alignment),
            deprecation: state,
            replaced_by: None,
            fields: members.into_iter().map(|member| member.field).collect(),
            values,
        });
        Ok(())
    }

    /// Returns the comments after an opening bracket, if they end its line.
    fn behind_bracket(&mut self) -> Vec<&'a str> {
        let begins = self.at;
        let remarks = self.trailing();
        let line = |at: usize| self.tokens.get(at).map(|token| token.line);
        if line(self.at) == line(begins.saturating_sub(1)) {
            self.at = begins;
            return Vec::new();
        }
        remarks
    }

    /// Returns the name of a type, or its tag if another type already has the name.
    fn unused_name(&mut self, name: String, tag: Option<&str>) -> Result<String, Trouble> {
        if !self.names.contains(&name) {
            self.names.insert(name.clone());
            return Ok(name);
        }
        let Some(tag) = tag.filter(|tag| !self.names.contains(*tag)) else {
            return Err(self.trouble(format!("a second type `{name}`"), "each name once"));
        };
        self.remarks
            .push(format!("two types are called `{name}`; the second one is taken for `{tag}`"));
        self.names.insert(tag.to_owned());
        Ok(tag.to_owned())
    }

    /// Returns the words up to the next semicolon, without comments.
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

    /// Parses the names and numbers of an enumeration.
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

    /// Parses the members of a struct, each with its type; the members of a union are all at offset
    /// 0.
    fn members(&mut self, overlap: bool) -> Result<Vec<Member>, Trouble> {
        let (mut members, mut end) = (Vec::new(), 0u64);
        let (mut words, mut remark) = (Vec::new(), Vec::new());
        while let Some(token) = self.next() {
            match &token.word {
                Word::Comment(text) => remark.push(text.as_str()),
                Word::Sign('}') => return Ok(members),
                Word::Sign(';') => {
                    // A comment after the member on the same line describes it.
                    remark.extend(self.trailing());
                    let remark = joined(&std::mem::take(&mut remark));
                    let (mut field, found) = self.member(&words, &remark)?;
                    if !overlap {
                        field.offset = end.next_multiple_of(found.alignment);
                        end = field.end();
                    }
                    members.push(Member { line: token.line, field, found, remark });
                    words.clear();
                }
                word => words.push(word.clone()),
            }
        }
        Err(self.trouble("the end of the header", "`}` behind a struct"))
    }

    /// Parses one member, at offset 0.
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
            let mut found = self.types.resolve(element, self.macros).ok_or_else(unreadable)?;
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
        let (zero, required) = marks(remark);
        let size = found.size;
        let field = Field {
            name,
            kind,
            offset: 0,
            size,
            signature,
            deprecation: deprecation(remark),
            replaced_by: None,
            zero,
            required,
        };
        Ok((field, found))
    }
}
