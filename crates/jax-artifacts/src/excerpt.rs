//! Excerpts of texts from untrusted files.

/// Returns the beginning of a text, at most `longest` bytes.
pub(crate) fn excerpt(text: &str, longest: usize) -> &str {
    let mut end = longest.min(text.len());
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpt_ends_between_letters() {
        assert_eq!(excerpt("aé", 2), "a");
        assert_eq!(excerpt("aé", 3), "aé");
        assert_eq!(excerpt("", 3), "");
    }
}
