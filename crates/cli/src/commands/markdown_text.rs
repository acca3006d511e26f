//! Texts in Markdown that mean nothing but themselves.

use std::fmt::Write as _;

use crate::terminal::shown;

/// Returns a name as code, in a table as well.
pub(super) fn code(text: &str) -> String {
    // In the element of HTML, where no letter ends the code but those that are escaped.
    format!("<code>{}</code>", plain(text))
}

/// Words on one line, with everything escaped that Markdown, HTML or a table could read.
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
