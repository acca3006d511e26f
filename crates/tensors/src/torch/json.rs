//! Plain values in JSON, as Python's `json` writes and reads them.

/// Returns a float in JSON; whole numbers have a point, so that they are read as floats.
pub(super) fn number_in_json(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() }
    } else {
        format!("{number:?}")
    }
}

/// Returns a text in JSON.
pub(super) fn text_in_json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_stay_floats_in_json() {
        for (number, text) in [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e300, "1e300"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(number_in_json(number), text);
        }
    }
}
