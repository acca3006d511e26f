//! The grammar of symbolic shapes, as `jax.export` parses them with Python's tokenizer.

use std::{iter::Peekable, str::CharIndices};

/// Limit on the nesting of operations: Python's recursion fails beyond it.
const DEEPEST: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'t> {
    Name(&'t str),
    Integer,
    Sign(char),
    End,
}

/// Returns true if the text, dimensions separated by commas, is a shape.
pub(super) fn is_shape(text: &str) -> bool {
    let mut parser = Parser { text, letters: text.char_indices().peekable(), token: Token::End };
    parser.shape().is_some() && parser.token == Token::End
}

struct Parser<'t> {
    text: &'t str,
    letters: Peekable<CharIndices<'t>>,
    token: Token<'t>,
}

impl<'t> Parser<'t> {
    /// Goes to the next token; returns `None` if Python knows no token here.
    fn next(&mut self) -> Option<()> {
        while self.letters.next_if(|(_, letter)| " \t\r\n\x0c".contains(*letter)).is_some() {}
        let Some((begin, letter)) = self.letters.next() else {
            self.token = Token::End;
            return Some(());
        };
        self.token = if letter.is_alphabetic() || letter == '_' {
            let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
            Token::Name(self.word(begin, is_name))
        } else if letter.is_ascii_digit() {
            let is_number = |letter: char| letter.is_alphanumeric() || "._".contains(letter);
            is_integer(self.word(begin, is_number)).then_some(Token::Integer)?
        } else {
            "+-*^,()".contains(letter).then_some(Token::Sign(letter))?
        };
        Some(())
    }

    fn word(&mut self, begin: usize, goes_on: impl Fn(char) -> bool) -> &'t str {
        let mut end = self.text.len();
        while let Some((at, letter)) = self.letters.peek().copied() {
            if !goes_on(letter) {
                end = at;
                break;
            }
            self.letters.next();
        }
        self.text.get(begin..end).unwrap_or_default()
    }

    fn sign(&mut self, sign: char) -> Option<()> {
        if self.token == Token::Sign(sign) { self.next() } else { None }
    }

    fn ends_shape(&self) -> bool {
        matches!(self.token, Token::End | Token::Sign(')'))
    }

    fn shape(&mut self) -> Option<()> {
        self.next()?;
        let mut open = 0_usize;
        while self.token == Token::Sign('(') {
            open = open.checked_add(1).filter(|open| *open < DEEPEST)?;
            self.next()?;
        }
        while !self.ends_shape() {
            self.sum(0)?;
            if self.ends_shape() {
                break;
            }
            self.sign(',')?;
        }
        (0..open).try_for_each(|_| self.sign(')'))
    }

    fn sum(&mut self, depth: usize) -> Option<()> {
        if matches!(self.token, Token::Sign('+' | '-')) {
            self.next()?;
        }
        loop {
            self.product(depth)?;
            match self.token {
                Token::End | Token::Sign(')' | ',') => return Some(()),
                Token::Sign('+' | '-') => self.next()?,
                _ => return None,
            }
        }
    }

    fn product(&mut self, depth: usize) -> Option<()> {
        loop {
            self.factor(depth)?;
            if self.token == Token::Sign('^') {
                self.next()?;
                (self.token == Token::Integer).then(|| self.next())??;
            }
            match self.token {
                Token::End | Token::Sign(')' | ',' | '+' | '-') => return Some(()),
                _ => self.sign('*')?,
            }
        }
    }

    fn factor(&mut self, depth: usize) -> Option<()> {
        match self.token {
            Token::Name("mod" | "floordiv" | "max" | "min") => {
                if depth >= DEEPEST {
                    return None;
                }
                let inside = depth.saturating_add(1);
                self.next()?;
                self.sign('(')?;
                self.sum(inside)?;
                self.sign(',')?;
                self.sum(inside)?;
                self.sign(')')
            }
            // A placeholder without a definition.
            Token::Name("_") => None,
            Token::Name(_) | Token::Integer => self.next(),
            Token::Sign('-') => {
                self.next()?;
                (self.token == Token::Integer).then(|| self.next())?
            }
            _ => None,
        }
    }
}

/// Returns true if Python parses a word that begins with a digit as an integer.
fn is_integer(word: &str) -> bool {
    let is_one = word
        .split('_')
        .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    is_one && (!word.starts_with('0') || word.bytes().all(|byte| matches!(byte, b'0' | b'_')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_shape_takes_what_jax_parses() {
        for text in [
            "",
            "3",
            "3,4,",
            "b, 2*b",
            "(a, b)",
            "-4",
            "a - -4",
            "mod(a + 1, 3)",
            "00",
            "1_000",
            "max(a, min(b, 2))^2",
            "-1*a",
            "+a",
            "a\n, b",
            "a*b^2 + 3*c",
        ] {
            assert!(is_shape(text), "{text:?}");
        }
        for text in [
            "-", ",", "a b", "_", "...", "3.0", "0x10", "012", "a**2", "a^b", "max(a)", "(a",
            "mod(a, 2", "a)", "#", "é!", "a,,b", "2 3", "((a)b)",
        ] {
            assert!(!is_shape(text), "{text:?}");
        }
        let deep = format!("{}a{}", "max(1,".repeat(100_000), ")".repeat(100_000));
        assert!(!is_shape(&deep));
    }
}
