//! Escapes text from files and messages before it is shown, so that it cannot affect a terminal, a
//! page or a parser.

use std::borrow::Cow;

/// Maximum length of a shown name or message, in characters.
const LONGEST: usize = 2_000;

/// Escapes text for one line, and removes the middle of a very long one.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    let text = shortened(text, LONGEST);
    if !text.contains(acts) {
        return text;
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if acts(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// Shortens a text to at most `longest` characters, with a mark in place of its removed middle.
pub(crate) fn shortened(text: &str, longest: usize) -> Cow<'_, str> {
    if text.len() <= longest || text.chars().nth(longest).is_none() {
        return Cow::Borrowed(text);
    }
    let half = longest.saturating_sub(1) / 2;
    let start: String = text.chars().take(half).collect();
    let end: Vec<char> = text.chars().rev().take(half).collect();
    Cow::Owned(start + "…" + &end.into_iter().rev().collect::<String>())
}

/// Returns true if a character must be escaped: control characters, those that change the text
/// direction or separate lines, and those that XML cannot represent.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(c, '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        || matches!(u32::from(c) & 0xffff, 0xfffe | 0xffff)
        || matches!(c, '\u{fdd0}'..='\u{fdef}' | '\u{e0000}'..='\u{e007f}')
}

/// Formats a number with its noun: `1 artifact`, `2 artifacts`.
pub(crate) fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_what_acts_are_escaped() {
        assert_eq!(
            shown("a\u{1b}[2J\n\u{202e}\u{9b}\u{ffff}"),
            r"a\u{1b}[2J\n\u{202e}\u{9b}\u{ffff}"
        );
        assert_eq!(shown("ümläut 🎉 %0A ]]>"), "ümläut 🎉 %0A ]]>");
    }

    #[test]
    fn long_names_keep_their_ends() {
        assert_eq!(shortened("abcdefg", 7), "abcdefg");
        assert_eq!(shortened("abcdefgh", 7), "abc…fgh");
        assert_eq!(shortened(&"ä".repeat(7), 7), "ä".repeat(7));
        let long = shown(&"x".repeat(1 << 20)).into_owned();
        assert!(long.chars().count() <= LONGEST && long.contains('…'));
    }
}
