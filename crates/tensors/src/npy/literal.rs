//! Parser of Python literals, as far as npy headers can have them.
//!
//! NumPy evaluates a header with `ast.literal_eval`, so that it accepts more than it writes:
//! numbers of other bases, adjacent strings, comments, parentheses. Does not depend on the meaning
//! of a header.

/// Maximum nesting of brackets; NumPy's own types have three levels.
const DEEPEST: usize = 64;

/// A value that a header can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Literal {
    /// `True` or `False`.
    Bool(bool),
    /// An integer; `None` if it exceeds 64 bits.
    Int(Option<i64>),
    /// A string of characters.
    Text(String),
    /// `(…)`, empty or with a comma.
    Tuple(Vec<Literal>),
    /// `[…]`.
    List(Vec<Literal>),
    /// `{key: value, …}`, in the order of the text.
    Dict(Vec<(Literal, Literal)>),
    /// A literal that has no meaning in a header: `None`, a string of bytes.
    Other,
}

/// Parses a literal like `ast.literal_eval`, except for non-integer numbers and sets, which headers
/// do not have. With `python2` it also accepts Python 2 integers with the suffix `L`, as NumPy does
/// in old versions of the format.
pub(super) fn parse(text: &str, python2: bool) -> Option<Literal> {
    if text.contains('\0') {
        return None;
    }
    let mut parser = Parser { rest: text.trim_start_matches([' ', '\t']), depth: 0, python2 };
    parser.blank_lines();
    let value = parser.value()?;
    parser.skip();
    parser.blank_lines();
    parser.rest.is_empty().then_some(value)
}

struct Parser<'t> {
    rest: &'t str,
    /// Number of open brackets: outside of brackets, a line end terminates the value.
    depth: usize,
    python2: bool,
}

impl<'t> Parser<'t> {
    /// Skips blanks and comments, and line ends inside of brackets.
    fn skip(&mut self) {
        loop {
            let blanks: &[char] = match self.depth {
                0 => &[' ', '\t', '\x0c'],
                _ => &[' ', '\t', '\x0c', '\n', '\r'],
            };
            self.rest = self.rest.trim_start_matches(blanks);
            if let Some(rest) = self.rest.strip_prefix("\\\n") {
                self.rest = rest;
            } else if self.rest.starts_with('#') {
                self.rest = self.rest.trim_start_matches(|c| c != '\n' && c != '\r');
            } else {
                return;
            }
        }
    }

    /// Skips empty lines before or after the value.
    fn blank_lines(&mut self) {
        let depth = std::mem::replace(&mut self.depth, 1);
        self.skip();
        self.depth = depth;
    }

    fn accept(&mut self, mark: char) -> bool {
        self.skip();
        match self.rest.strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn value(&mut self) -> Option<Literal> {
        self.skip();
        match self.rest.chars().next()? {
            '(' => self.inside(Self::tuple),
            '[' => self.inside(|parser| parser.items(']').map(|(items, _)| Literal::List(items))),
            '{' => self.inside(Self::dict),
            '\'' | '"' => self.strings(),
            '+' | '-' | '0'..='9' => self.number(),
            _ => self.word(),
        }
    }

    /// Parses the contents between an opening bracket, which was consumed, and the closing one.
    fn inside(&mut self, read: impl FnOnce(&mut Self) -> Option<Literal>) -> Option<Literal> {
        self.rest = self.rest.get(1..)?;
        self.depth += 1;
        let value = if self.depth <= DEEPEST { read(self) } else { None };
        self.depth -= 1;
        value
    }

    /// Parses values up to the closing bracket; also returns true if a comma follows a value.
    fn items(&mut self, end: char) -> Option<(Vec<Literal>, bool)> {
        let (mut items, mut comma) = (Vec::new(), false);
        while !self.accept(end) {
            if !items.is_empty() && !comma {
                return None;
            }
            items.push(self.value()?);
            let more = self.accept(',');
            if !more && !self.closes(end) {
                return None;
            }
            comma = more || (comma && items.len() > 1);
        }
        Some((items, comma))
    }

    fn closes(&mut self, end: char) -> bool {
        self.skip();
        self.rest.starts_with(end)
    }

    /// Parses a tuple, or a value in parentheses.
    fn tuple(&mut self) -> Option<Literal> {
        let (mut items, comma) = self.items(')')?;
        match items.len() {
            1 if !comma => items.pop(),
            _ => Some(Literal::Tuple(items)),
        }
    }

    fn dict(&mut self) -> Option<Literal> {
        let mut entries = Vec::new();
        while !self.accept('}') {
            let key = self.value()?;
            if !self.accept(':') {
                return None;
            }
            entries.push((key, self.value()?));
            if !self.accept(',') && !self.closes('}') {
                return None;
            }
        }
        Some(Literal::Dict(entries))
    }

    /// Parses `True`, `False`, `None`, or a string with a prefix.
    fn word(&mut self) -> Option<Literal> {
        let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
        let end = self.rest.find(|c| !is_of_word(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if rest.starts_with(['\'', '"']) {
            return self.strings();
        }
        self.rest = rest;
        match word {
            "True" => Some(Literal::Bool(true)),
            "False" => Some(Literal::Bool(false)),
            "None" => Some(Literal::Other),
            _ => None,
        }
    }

    /// Parses adjacent strings, which are joined.
    fn strings(&mut self) -> Option<Literal> {
        let mut text = String::new();
        let mut are_bytes = None;
        loop {
            let (piece, is_bytes) = self.string()?;
            if are_bytes.replace(is_bytes).is_some_and(|before| before != is_bytes) {
                return None;
            }
            text.push_str(&piece);
            self.skip();
            let quote = self.rest.find(['\'', '"']);
            let prefix = quote.and_then(|at| self.rest.get(..at));
            if prefix.is_none_or(|prefix| string_prefix(prefix).is_none()) {
                break;
            }
        }
        Some(if are_bytes == Some(true) { Literal::Other } else { Literal::Text(text) })
    }

    /// Parses one string; also returns true if it is a bytes literal.
    fn string(&mut self) -> Option<(String, bool)> {
        let at = self.rest.find(['\'', '"'])?;
        let (prefix, rest) = self.rest.split_at(at);
        let (is_raw, is_bytes) = string_prefix(prefix)?;
        let quote = rest.get(..1)?;
        let triple = rest.get(..3).filter(|begin| *begin == quote.repeat(3));
        let quote = triple.unwrap_or(quote);
        let mut rest = rest.get(quote.len()..)?;
        let mut text = String::new();
        while !rest.starts_with(quote) {
            let c = rest.chars().next()?;
            rest = rest.get(c.len_utf8()..)?;
            match c {
                '\n' | '\r' if quote.len() == 1 => return None,
                '\\' if is_raw => {
                    // A backslash keeps the next quote from ending the string.
                    let next = rest.chars().next()?;
                    text.extend([c, next]);
                    rest = rest.get(next.len_utf8()..)?;
                }
                '\\' => rest = escape(rest, &mut text)?,
                c if is_bytes && !c.is_ascii() => return None,
                c => text.push(c),
            }
        }
        self.rest = rest.get(quote.len()..)?;
        Some((text, is_bytes))
    }

    /// Parses an integer with its sign.
    fn number(&mut self) -> Option<Literal> {
        let is_negative = self.rest.starts_with('-');
        if self.rest.starts_with(['+', '-']) {
            self.rest = self.rest.get(1..)?;
            self.skip();
        }
        let is_of_number = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let end = self.rest.find(|c| !is_of_number(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        let long = word.strip_suffix('L').filter(|_| self.python2);
        let (digits, base) = digits_of(long.unwrap_or(word))?;
        if self.python2 && long.is_none() {
            self.accept_long();
        }
        let magnitude = i64::from_str_radix(&digits, base).ok();
        let number = magnitude.map(|number| if is_negative { -number } else { number });
        Some(Literal::Int(number))
    }

    /// Skips an `L` that is separated from its number.
    fn accept_long(&mut self) {
        self.skip();
        let rest = self.rest.strip_prefix('L');
        if let Some(rest) =
            rest.filter(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        {
            self.rest = rest;
        }
    }
}

/// Parses a string prefix: returns true if the string is raw, and true if it is a bytes literal;
/// `None` if it is not a prefix.
fn string_prefix(letters: &str) -> Option<(bool, bool)> {
    match letters.to_ascii_lowercase().as_str() {
        "" | "u" => Some((false, false)),
        "r" => Some((true, false)),
        "b" => Some((false, true)),
        "br" | "rb" => Some((true, true)),
        _ => None,
    }
}

/// Appends the character of an escape sequence; returns the rest of the text.
fn escape<'t>(rest: &'t str, text: &mut String) -> Option<&'t str> {
    let c = rest.chars().next()?;
    let behind = rest.get(c.len_utf8()..)?;
    let mut coded = |digits: usize, behind: &'t str| {
        let (code, behind) = behind.split_at_checked(digits)?;
        let code = Some(code).filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        // Python accepts lone surrogates, but no name of a type has them.
        let code = u32::from_str_radix(code, 16).ok().filter(|code| *code <= 0x10_ffff)?;
        text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        Some(behind)
    };
    match c {
        'x' => return coded(2, behind),
        'u' => return coded(4, behind),
        'U' => return coded(8, behind),
        '0'..='7' => {
            let end = rest.bytes().take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
            let (octal, behind) = rest.split_at_checked(end)?;
            text.push(char::from_u32(u32::from_str_radix(octal, 8).ok()?)?);
            return Some(behind);
        }
        // A character by its name, which no type has.
        'N' => {
            let (_, behind) = behind.strip_prefix('{')?.split_once('}')?;
            text.push(char::REPLACEMENT_CHARACTER);
            return Some(behind);
        }
        '\n' => {}
        'a' => text.push('\x07'),
        'b' => text.push('\x08'),
        'f' => text.push('\x0c'),
        'n' => text.push('\n'),
        'r' => text.push('\r'),
        't' => text.push('\t'),
        'v' => text.push('\x0b'),
        '\\' | '\'' | '"' => text.push(c),
        c => text.extend(['\\', c]),
    }
    Some(behind)
}

/// Returns the digits of a Python integer without underscores, and their base.
fn digits_of(word: &str) -> Option<(String, u32)> {
    let (digits, base) = match word.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => (word.get(2..)?, 16),
        Some("0o") => (word.get(2..)?, 8),
        Some("0b") => (word.get(2..)?, 2),
        _ => (word, 10),
    };
    // One underscore is permitted between digits, and after the base prefix.
    let digits = if base == 10 { digits } else { digits.strip_prefix('_').unwrap_or(digits) };
    let is_grouped = digits.split('_').all(|group| !group.is_empty());
    let digits = digits.replace('_', "");
    let are_digits = !digits.is_empty() && digits.chars().all(|c| c.is_digit(base));
    // Octal numbers of Python 2 begin with a zero.
    let is_octal = base == 10 && digits.starts_with('0') && digits.bytes().any(|byte| byte != b'0');
    (is_grouped && are_digits && !is_octal).then_some((digits, base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_is_read_as_python_reads_it() {
        let numbers = |numbers: &[i64]| {
            Some(Literal::Tuple(numbers.iter().map(|number| Literal::Int(Some(*number))).collect()))
        };
        for (text, expected) in [
            ("()", numbers(&[])),
            ("(4,)", numbers(&[4])),
            ("(4)", Some(Literal::Int(Some(4)))),
            (" (1_0, 0x10, 0b11, 0o17, 00, -1, + 2)\n", numbers(&[10, 16, 3, 15, 0, -1, 2])),
            ("(1, # one\n2)", numbers(&[1, 2])),
            ("(4L,)", None),
            ("(04,)", None),
            ("(1__0,)", None),
            ("(_1,)", None),
            ("(1 2)", None),
            ("(,)", None),
            ("1\n2", None),
            ("(4", None),
            ("'a' \"b\"", Some(Literal::Text("ab".to_owned()))),
            (r"u'\x41\u00fc\\\q'", Some(Literal::Text("A\u{fc}\\\\q".to_owned()))),
            ("r'\\x41'", Some(Literal::Text("\\x41".to_owned()))),
            ("'''a\nb'''", Some(Literal::Text("a\nb".to_owned()))),
            ("'a\nb'", None),
            ("b'a'", Some(Literal::Other)),
            ("'a' b'b'", None),
            ("true", None),
            ("99999999999999999999", Some(Literal::Int(None))),
        ] {
            assert_eq!(parse(text, false), expected, "{text:?}");
        }
        assert_eq!(parse("(4L, 5 L)", true), numbers(&[4, 5]));
        assert_eq!(parse("(4LL,)", true), None);
        assert_eq!(parse(&"(".repeat(100_000), true), None);
    }
}
