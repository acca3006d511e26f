//! Escapes text for Markdown.

use std::fmt::Write as _;

use crate::terminal::shown;

/// Formats a name as code, also inside a table.
pub(super) fn code(text: &str) -> String {
    // As an HTML element, whose end only escaped characters could form.
    format!("<code>{}</code>", plain(text))
}

/// Joins text to one line, and escapes everything that Markdown, HTML or a table could interpret.
pub(super) fn plain(text: &str) -> String {
    let mut found = String::with_capacity(text.len());
    for letter in shown(text).to_string().chars() {
        match letter {
            '&' | '<' | '>' | '"' | '\'' | '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '~' | '#'
            | '!' | '@' => {
                let _ = write!(found, "&#{};", u32::from(letter));
            }
            other => found.push(other),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_markup_in_a_comment() {
        let shown = code("a|b`<script>&[x](y)\n@team");
        for letter in ['|', '`', '[', '\n', '@'] {
            assert!(!shown.contains(letter), "{letter:?} in {shown}");
        }
        assert!(!shown.contains("<script>"), "{shown}");
    }
}
