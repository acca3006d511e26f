//! A reader of bytes with their positions in the text, and the tokens made of them.

use serdes_files::ReadAt;

use super::{ScanError, TextError, TextErrorKind};

/// Size of a read in bytes.
const WINDOW: usize = 64 * 1024;

/// The longest name or number in bytes; a longer token is neither.
const LONGEST_TOKEN: usize = 4096;

/// A token of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A letter or `_`, followed by letters, digits and `_+-`, in [`Reader::word`].
    Identifier,
    /// A digit, a sign, or `.` with a digit, followed by letters, digits and `_.+-`, in
    /// [`Reader::word`].
    Number,
    /// The quote that opens a string; the reader is positioned after it.
    Quote(u8),
    /// Any other character.
    Symbol(char),
    /// The end of the text.
    End,
}

/// Cuts text to a length that fits a message.
pub(super) fn shorten(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Reads a text through a window.
pub(super) struct Reader<'a> {
    source: &'a dyn ReadAt,
    size: u64,
    /// The end of the window, as an offset in bytes from the start of the text.
    read: u64,
    window: Vec<u8>,
    position: usize,
    /// Bytes of the window that are known to be UTF-8.
    checked: usize,
    line: u64,
    column: u64,
    /// The start of the current token, as an offset in bytes from the start of the text.
    token_at: u64,
    token_line: u64,
    token_column: u64,
    /// The latest name or number; one allocation is reused for all tokens.
    word: String,
}

impl<'a> Reader<'a> {
    pub(super) fn new(source: &'a dyn ReadAt) -> Result<Self, ScanError> {
        let size = source.size()?;
        Ok(Self {
            source,
            size,
            read: 0,
            window: Vec::new(),
            position: 0,
            checked: 0,
            line: 1,
            column: 1,
            token_at: 0,
            token_line: 1,
            token_column: 1,
            word: String::new(),
        })
    }

    /// Returns an error at the place where the current token begins.
    pub(super) fn error(&self, kind: TextErrorKind) -> ScanError {
        TextError { line: self.token_line, column: self.token_column, kind }.into()
    }

    /// Returns the current token's text, if it is a name or a number.
    pub(super) fn word(&self) -> &str {
        &self.word
    }

    /// Formats the current token for a message.
    pub(super) fn show(&self, token: Token) -> String {
        match token {
            Token::Identifier | Token::Number => format!("\"{}\"", shorten(&self.word)),
            Token::Quote(_) => "a string".to_owned(),
            Token::Symbol(symbol) => format!("\"{}\"", symbol.escape_default()),
            Token::End => "the end of the text".to_owned(),
        }
    }

    /// Returns the start of the current token, in bytes from the start of the text.
    pub(super) fn token_at(&self) -> u64 {
        self.token_at
    }

    /// Returns the number of bytes read so far.
    fn offset(&self) -> u64 {
        self.read.saturating_sub(self.window.len().saturating_sub(self.position) as u64)
    }

    /// Returns the next byte, if there is one.
    #[inline]
    pub(super) fn peek(&mut self) -> Result<Option<u8>, ScanError> {
        if self.position == self.checked && !self.fill()? {
            return Ok(None);
        }
        Ok(self.window.get(self.position).copied())
    }

    /// Consumes the byte that [`peek`](Self::peek) returned.
    #[inline]
    pub(super) fn step(&mut self) {
        if self.window.get(self.position) == Some(&b'\n') {
            self.line += 1;
            self.column = 0;
        }
        self.position += 1;
        self.column += 1;
    }

    /// Reads more bytes, ending the window at a whole character; returns false at the end of the
    /// text.
    fn fill(&mut self) -> Result<bool, ScanError> {
        self.window.drain(..self.position);
        self.position = 0;
        let rest = self.window.len();
        let wanted = usize::try_from(self.size.saturating_sub(self.read))
            .unwrap_or(WINDOW)
            .min(WINDOW - rest);
        self.window.resize(rest + wanted, 0);
        self.source.read_exact_at(self.window.get_mut(rest..).unwrap_or_default(), self.read)?;
        self.read += wanted as u64;
        self.checked = match std::str::from_utf8(&self.window) {
            Ok(_) => self.window.len(),
            Err(error) if error.error_len().is_none() && self.read < self.size => {
                error.valid_up_to()
            }
            // The text before the bad byte is read first, so that the error is reported at its
            // position.
            Err(error) if error.valid_up_to() > 0 => error.valid_up_to(),
            Err(_) => {
                (self.token_line, self.token_column) = (self.line, self.column);
                return Err(self.error(TextErrorKind::Encoding));
            }
        };
        Ok(self.checked > 0)
    }

    /// Returns the next character.
    fn peek_char(&mut self) -> Result<Option<char>, ScanError> {
        match self.peek()? {
            None => Ok(None),
            Some(byte) if byte < 0x80 => Ok(Some(char::from(byte))),
            Some(_) => {
                let end = (self.position + 4).min(self.checked);
                let bytes = self.window.get(self.position..end).unwrap_or_default();
                let valid = match std::str::from_utf8(bytes) {
                    Ok(text) => text,
                    Err(error) => {
                        std::str::from_utf8(bytes.get(..error.valid_up_to()).unwrap_or_default())
                            .unwrap_or_default()
                    }
                };
                Ok(valid.chars().next())
            }
        }
    }

    fn skip_space(&mut self) -> Result<(), ScanError> {
        let mut comment = false;
        while let Some(character) = self.peek_char()? {
            let is_space = character.is_whitespace() || ('\x1c'..='\x1f').contains(&character);
            if character == '\n' {
                comment = false;
            } else if character == '#' {
                comment = true;
            } else if !comment && !is_space {
                break;
            }
            for _ in 0..character.len_utf8() {
                self.step();
            }
        }
        Ok(())
    }

    /// Returns the next token. A string is not read: its opening quote is the token.
    pub(super) fn token(&mut self) -> Result<Token, ScanError> {
        self.skip_space()?;
        self.token_at = self.offset();
        (self.token_line, self.token_column) = (self.line, self.column);
        let Some(character) = self.peek_char()? else { return Ok(Token::End) };
        match character {
            'a'..='z' | 'A'..='Z' | '_' => {
                self.read_word(|byte| {
                    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'+' | b'-')
                })?;
                Ok(Token::Identifier)
            }
            '0'..='9' | '+' | '-' => self.number(),
            '.' => {
                let next = self.window_byte(1)?;
                if next.is_some_and(|byte| byte.is_ascii_digit()) {
                    return self.number();
                }
                self.step();
                Ok(Token::Symbol('.'))
            }
            '"' | '\'' => {
                self.step();
                Ok(Token::Quote(if character == '"' { b'"' } else { b'\'' }))
            }
            other => {
                for _ in 0..other.len_utf8() {
                    self.step();
                }
                Ok(Token::Symbol(other))
            }
        }
    }

    /// Returns the byte that comes `distance` bytes after the next one.
    fn window_byte(&mut self, distance: usize) -> Result<Option<u8>, ScanError> {
        if self.position + distance >= self.checked {
            // The window then starts with the current byte, so that nothing is lost.
            self.fill()?;
        }
        Ok(self.window.get(self.position + distance).copied())
    }

    fn number(&mut self) -> Result<Token, ScanError> {
        self.read_word(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'+' | b'-')
        })?;
        Ok(Token::Number)
    }

    /// Reads the bytes that belong to a name or number into `word`.
    fn read_word(&mut self, belongs: impl Fn(u8) -> bool) -> Result<(), ScanError> {
        self.word.clear();
        while let Some(byte) = self.peek()? {
            if !belongs(byte) {
                break;
            }
            if self.word.len() == LONGEST_TOKEN {
                let kind = TextErrorKind::Expected {
                    found: shorten(&self.word),
                    expected: "a name or number of bearable length",
                };
                return Err(self.error(kind));
            }
            self.word.push(char::from(byte));
            self.step();
        }
        Ok(())
    }
}
