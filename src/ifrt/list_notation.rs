//! Lists in brackets, the text form of shapes, positions and device lists: `[512,128]`.
//!
//! The module does not depend on the meaning of the elements.

use std::{fmt, str::FromStr};

use super::IfrtError;

/// Writes `[a,b]`.
pub(super) fn write_list<T: fmt::Display>(
    f: &mut impl fmt::Write,
    list: impl IntoIterator<Item = T>,
) -> fmt::Result {
    f.write_char('[')?;
    for (index, element) in list.into_iter().enumerate() {
        if index > 0 {
            f.write_char(',')?;
        }
        write!(f, "{element}")?;
    }
    f.write_char(']')
}

/// Parses `[a,b]`, with blanks allowed around the elements. The error is the rest of the text, from
/// the first invalid byte.
pub(super) fn parse_list<T: FromStr>(text: &str) -> Result<Vec<T>, &str> {
    let text = text.trim();
    let inner = text.strip_prefix('[').ok_or(text)?;
    let inner = inner.strip_suffix(']').ok_or(inner.split_at(inner.len()).1)?;
    if inner.trim().is_empty() {
        return Ok(Vec::new());
    }
    let elements = inner.split(',').map(str::trim);
    elements.map(|element| element.parse().map_err(|_| element)).collect()
}

/// Returns the error of a text that does not follow the notation of `type_name`. `rest` is the part
/// of the text from the first invalid byte.
#[cold]
pub(super) fn not_in_notation(
    type_name: &'static str,
    text: &str,
    rest: &str,
    expected: &'static str,
) -> IfrtError {
    let position = rest.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    IfrtError::text(type_name, text, position.min(text.len()), expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_begins_where_the_text_is_no_list() {
        for (text, position) in [
            ("", 0),
            ("  2,3", 2),
            ("[2,3", 4),
            ("[2,,3]", 3),
            ("[2, x]", 4),
            ("[2,3]]", 3),
            ("[2,99999999999999999999]", 3),
        ] {
            let rest = parse_list::<i64>(text).unwrap_err();
            let error = not_in_notation("Shape", text, rest, "dimensions");
            assert!(error.to_string().contains(&format!("at byte {position};")), "{error}");
        }
        assert_eq!(parse_list::<i64>(" [ 2 , -3 ] "), Ok(vec![2, -3]));
        assert_eq!(parse_list::<i64>("[ ]"), Ok(vec![]));
    }
}
