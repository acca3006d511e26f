//! Properties of a file on a server, which must not change from one request to the next.

use std::{fmt, io, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use serdes_files::object::{changed, header_text};

const COUNT: usize = 5;

/// Headers that identify the version of a file, with their names in messages. Servers send some of
/// them or none, and need not honour conditions on them.
static NAMES: [(HeaderName, &str); COUNT] = [
    (header::ETAG, "ETag"),
    (header::LAST_MODIFIED, "Last-Modified"),
    (HeaderName::from_static("x-amz-version-id"), "x-amz-version-id"),
    (HeaderName::from_static("x-goog-generation"), "x-goog-generation"),
    (HeaderName::from_static("x-ms-version-id"), "x-ms-version-id"),
];

/// Properties of a file in the first answer; empty by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Held(Arc<[Option<HeaderValue>; COUNT]>);

impl Held {
    /// Extracts the properties from the headers of an answer.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        Self(Arc::new(NAMES.each_ref().map(|(name, _)| headers.get(name).cloned())))
    }

    /// Compares the properties with those of a later answer.
    ///
    /// # Errors
    /// If a property differs, or only one of the answers has it.
    pub(super) fn check(&self, headers: &HeaderMap) -> io::Result<()> {
        let later = Self::of(headers);
        for (((_, name), expected), found) in NAMES.iter().zip(&*self.0).zip(&*later.0) {
            if found != expected {
                return Err(changed(text(name, found.as_ref()), text(name, expected.as_ref())));
            }
        }
        Ok(())
    }

    /// Returns the condition for later requests that the file is unchanged.
    pub(super) fn condition(&self) -> Option<(HeaderName, HeaderValue)> {
        let [tag, modified, ..] = &*self.0;
        // A weak tag cannot fulfil this condition.
        match tag.as_ref().filter(|tag| tag.as_bytes().starts_with(b"\"")) {
            Some(tag) => Some((header::IF_MATCH, tag.clone())),
            None => Some((header::IF_UNMODIFIED_SINCE, modified.clone()?)),
        }
    }
}

fn text(name: &str, value: Option<&HeaderValue>) -> String {
    header_text(name, value.map(HeaderValue::as_bytes))
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = NAMES.iter().zip(&*self.0).filter(|(_, value)| value.is_some());
        let words: Vec<String> =
            values.map(|((_, name), value)| text(name, value.as_ref())).collect();
        f.write_str(if words.is_empty() { "no ETag" } else { "" })?;
        f.write_str(&words.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[(&'static str, &'static str)]) -> HeaderMap {
        values
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn held_takes_no_answer_that_says_more_less_or_something_else() {
        const TIME: &str = "Wed, 21 Oct 2015 07:28:00 GMT";
        let all = [("etag", "\"a\""), ("last-modified", TIME), ("x-amz-version-id", "1")];
        let held = Held::of(&headers(&all));
        assert!(held.check(&headers(&all)).is_ok());
        for other in [
            &[("etag", "\"b\""), all[1], all[2]][..],
            &[("etag", "W/\"a\""), all[1], all[2]],
            &[all[0], ("last-modified", "Wed, 21 Oct 2015 07:28:01 GMT"), all[2]],
            &[all[0], all[1], ("x-amz-version-id", "2")],
            &[all[1], all[2]],
            &[all[0], all[2]],
            &[all[0], all[1]],
            &[],
            &[all[0], all[1], all[2], ("x-goog-generation", "7")],
        ] {
            let error = held.check(&headers(other)).unwrap_err().to_string();
            assert!(error.contains("changed while it was read"), "{error}");
        }
        let nothing = Held::default();
        assert!(nothing.check(&headers(&[])).is_ok() && nothing.check(&headers(&all)).is_err());
    }

    #[test]
    fn condition_is_of_a_strong_tag_or_of_the_time() {
        let time = ("last-modified", "Wed, 21 Oct 2015 07:28:00 GMT");
        let name = |values: &[(&'static str, &'static str)]| {
            Held::of(&headers(values)).condition().map(|(name, _)| name)
        };
        assert_eq!(name(&[("etag", "\"a\""), time]), Some(header::IF_MATCH));
        assert_eq!(name(&[("etag", "W/\"a\""), time]), Some(header::IF_UNMODIFIED_SINCE));
        assert_eq!(name(&[time]), Some(header::IF_UNMODIFIED_SINCE));
        assert_eq!(name(&[("etag", "W/\"a\"")]), None);
    }
}
