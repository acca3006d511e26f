//! Reads comments and identifiers from Rust source, skipping strings and characters.

use std::{iter::Peekable, str::CharIndices};

/// The three kinds of Rust comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `//` and `/* */`.
    Plain,
    /// `///` and `/** */`.
    Outer,
    /// `//!` and `/*! */`.
    Inner,
}

impl Kind {
    /// Returns the kind of a comment by its text, which begins with `//` or `/*`.
    fn of(comment: &str) -> Self {
        match comment.as_bytes() {
            [b'/', b'/', b'!', ..] | [b'/', b'*', b'!', ..] => Self::Inner,
            [b'/', b'/', b'/', b'/', ..] | [b'/', b'*', b'*', b'*' | b'/', ..] => Self::Plain,
            [b'/', b'/', b'/', ..] | [b'/', b'*', b'*', ..] => Self::Outer,
            _ => Self::Plain,
        }
    }
}

/// A comment, with consecutive line comments of one kind joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) kind: Kind,
    /// Line numbers from 1, with the text of each line after its comment marker.
    pub(crate) lines: Vec<(usize, String)>,
}

/// The comments and identifiers of a source file, each in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) comments: Vec<Comment>,
    /// Line numbers from 1, each with an identifier or keyword.
    pub(crate) identifiers: Vec<(usize, String)>,
}

impl Source {
    /// Reads a file. Invalid Rust is read as far as its comments can be recognized.
    pub(crate) fn read(text: &str) -> Self {
        let mut reader = Reader {
            text,
            rest: text.char_indices().peekable(),
            line: 1,
            is_line_start: true,
            found: Self::default(),
        };
        while reader.step() {}
        reader.found
    }
}

/// Position in a file.
struct Reader<'t> {
    text: &'t str,
    rest: Peekable<CharIndices<'t>>,
    line: usize,
    /// True until the current line has code.
    is_line_start: bool,
    found: Source,
}

impl Reader<'_> {
    /// Reads one character, comment, string or identifier; returns false at the end of the file.
    fn step(&mut self) -> bool {
        let Some(&(at, next)) = self.rest.peek() else { return false };
        match next {
            '/' if self.text[at..].starts_with("//") => self.line_comment(at),
            '/' if self.text[at..].starts_with("/*") => self.block_comment(at),
            '"' => self.string(),
            '\'' => self.quote(at),
            _ if next.is_alphabetic() || next == '_' => self.identifier(at),
            _ => {
                self.is_line_start &= next.is_whitespace();
                self.advance();
            }
        }
        true
    }

    fn advance(&mut self) -> Option<char> {
        let (_, next) = self.rest.next()?;
        if next == '\n' {
            self.line += 1;
            self.is_line_start = true;
        }
        Some(next)
    }

    /// Advances up to the byte offset `end`.
    fn advance_to(&mut self, end: usize) {
        while self.rest.peek().is_some_and(|(at, _)| *at < end) {
            self.advance();
        }
    }

    fn line_comment(&mut self, at: usize) {
        let end = self.text[at..].find('\n').map_or(self.text.len(), |length| at + length);
        let comment = &self.text[at..end];
        let kind = Kind::of(comment);
        let marks = if kind == Kind::Plain { 2 } else { 3 };
        let line = (self.line, comment[marks..].trim().to_owned());
        let before = self.found.comments.last_mut().filter(|before| {
            before.kind == kind
                && self.is_line_start
                && before.lines.last().is_some_and(|(line, _)| line + 1 == self.line)
        });
        match before {
            Some(before) => before.lines.push(line),
            None => self.found.comments.push(Comment { kind, lines: vec![line] }),
        }
        self.advance_to(end);
    }

    fn block_comment(&mut self, at: usize) {
        let first = self.line;
        let mut depth = 0_usize;
        let end = loop {
            let Some(&(here, _)) = self.rest.peek() else { break self.text.len() };
            let rest = &self.text[here..];
            if rest.starts_with("/*") {
                depth += 1;
                self.advance_to(here + 2);
            } else if rest.starts_with("*/") {
                depth -= 1;
                self.advance_to(here + 2);
                if depth == 0 {
                    break here + 2;
                }
            } else {
                self.advance();
            }
        };
        let comment = &self.text[at..end];
        let lines = comment.lines().enumerate().map(|(index, line)| {
            let line = line.trim().trim_start_matches(['/', '*', '!']).trim_end_matches("*/");
            (first + index, line.trim().to_owned())
        });
        self.found.comments.push(Comment { kind: Kind::of(comment), lines: lines.collect() });
    }

    /// Skips a string with escapes, starting at its opening quote.
    fn string(&mut self) {
        self.is_line_start = false;
        self.advance();
        while let Some(next) = self.advance() {
            match next {
                '"' => break,
                '\\' => _ = self.advance(),
                _ => {}
            }
        }
    }

    /// Skips a raw string, starting at its hash signs or opening quote.
    fn raw_string(&mut self, hashes: usize) {
        let start = self.rest.peek().map_or(self.text.len(), |(at, _)| at + hashes + 1);
        let close = format!("\"{}", "#".repeat(hashes));
        let length = self.text.get(start..).and_then(|rest| rest.find(&close));
        self.advance_to(length.map_or(self.text.len(), |length| start + length + close.len()));
    }

    /// Skips a character or a lifetime.
    fn quote(&mut self, at: usize) {
        self.is_line_start = false;
        self.advance();
        let mut inside = self.text[at + 1..].chars();
        match (inside.next(), inside.next()) {
            (Some('\\'), _) => {
                self.advance();
                self.advance();
                while self.advance().is_some_and(|next| next != '\'') {}
            }
            (Some(_), Some('\'')) => {
                self.advance();
                self.advance();
            }
            _ => {}
        }
    }

    /// Reads an identifier, or the string after a prefix.
    fn identifier(&mut self, at: usize) {
        self.is_line_start = false;
        let rest = &self.text[at..];
        let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, behind) = rest.split_at(length);
        let line = self.line;
        self.advance_to(at + length);
        let unhashed = behind.trim_start_matches('#');
        match name {
            "r" | "br" | "cr" if unhashed.starts_with('"') => {
                self.raw_string(behind.len() - unhashed.len());
            }
            _ => self.found.identifiers.push((line, name.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comments(text: &str) -> Vec<(Kind, Vec<(usize, String)>)> {
        Source::read(text).comments.into_iter().map(|found| (found.kind, found.lines)).collect()
    }

    fn lines(lines: &[(usize, &str)]) -> Vec<(usize, String)> {
        lines.iter().map(|(line, text)| (*line, (*text).to_owned())).collect()
    }

    #[test]
    fn consecutive_lines_of_one_kind_are_one_comment() {
        let text = "//! a\n//! b\n\n/// c\n/// d\n// e\nfn f() {} // g\n// h\n//// i\n";
        assert_eq!(
            comments(text),
            [
                (Kind::Inner, lines(&[(1, "a"), (2, "b")])),
                (Kind::Outer, lines(&[(4, "c"), (5, "d")])),
                (Kind::Plain, lines(&[(6, "e")])),
                (Kind::Plain, lines(&[(7, "g"), (8, "h"), (9, "// i")])),
            ]
        );
    }

    #[test]
    fn block_comments_nest() {
        assert_eq!(
            comments("/* a /* b */ c */ x\n/** d\n * e\n */ y /*! f */ /**/"),
            [
                (Kind::Plain, lines(&[(1, "a /* b */ c")])),
                (Kind::Outer, lines(&[(2, "d"), (3, "e"), (4, "")])),
                (Kind::Inner, lines(&[(4, "f")])),
                (Kind::Plain, lines(&[(4, "")])),
            ]
        );
    }

    #[test]
    fn strings_and_characters_hold_no_comments() {
        for text in [
            r#"let a = "// b"; // c"#,
            r#"let a = "\"// b"; // c"#,
            r##"let a = r#""// b"#; // c"##,
            r##"let a = br#"// "b"#; // c"##,
            r#"let a = ['"', '/', '\'', '\u{2f}']; // c"#,
            "fn a<'a>(b: &'a str) {} // c",
            "fn r#fn() {} // c",
        ] {
            assert_eq!(comments(text), [(Kind::Plain, lines(&[(1, "c")]))], "{text}");
        }
    }

    #[test]
    fn identifiers_are_those_of_code() {
        let text = "struct Told; // Heard\nlet s = \"Seen\";\n";
        let found = Source::read(text).identifiers;
        assert_eq!(found, lines(&[(1, "struct"), (1, "Told"), (2, "let"), (2, "s")]));
    }

    #[test]
    fn truncated_source_is_read_to_its_end() {
        for text in ["/* a", "\"a", "r#\"a", "'", "'\\", "/", "r#", "/** a", "é'", "\"\\"] {
            Source::read(text);
        }
        assert_eq!(comments("/* a"), [(Kind::Plain, lines(&[(1, "a")]))]);
    }
}
