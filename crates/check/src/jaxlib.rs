//! Releases of jaxlib as consumers.
//!
//! Depends on their names and on which of them are judged, but not on what they read.

use serdes_jax_artifacts::{Release, releases};

use super::{Consumer, ConsumerError, Kind, consumer::range};

impl Consumer {
    /// Creates the consumer for a release of jaxlib, with the jax of the same version: `0.10.2`, or
    /// `0.10` for the newest patch. It is used for files of `jax.export` and StableHLO portable
    /// artifacts; for anything else the consumer is the newest TensorFlow.
    ///
    /// ```
    /// use serdes_check::Consumer;
    ///
    /// assert_eq!(Consumer::jax("0.10")?, Consumer::jax("0.10.2")?);
    /// assert_eq!(Consumer::jax("0.10.2")?.jaxlib(), Some("0.10.2"));
    /// assert!(Consumer::jax("0.4.35").is_err());
    /// # Ok::<(), serdes_check::ConsumerError>(())
    /// ```
    ///
    /// # Errors
    /// [`ConsumerError::UnknownJaxlib`], which lists the known ones.
    pub fn jax(release: &str) -> Result<Self, ConsumerError> {
        find(release).map(Self::of_jaxlib)
    }

    /// Creates consumers for several releases of jaxlib, oldest first: `all` with known verdicts,
    /// `latest`, the releases of a range (`0.9.0..0.10.2`, both ends included; `0.10..` or `>=0.10`
    /// up to the newest; `..0.10.2` from the oldest of `all`), or one. If the ends of a range have
    /// no patch, it begins with the first patch and ends with the last: `0.8..0.9` includes 0.8.0
    /// and 0.9.2.
    ///
    /// ```
    /// use serdes_check::Consumer;
    ///
    /// assert_eq!(Consumer::jax_releases("0.10.0..0.11.0")?.len(), 4);
    /// assert_eq!(Consumer::jax_releases(">=0.8")?[0], Consumer::jax("0.8.0")?);
    /// assert_eq!(Consumer::jax_releases("all")?[0], Consumer::jax("0.8.0")?);
    /// assert!(Consumer::jax_releases("0.11.0..0.10.0").is_err());
    /// # Ok::<(), serdes_check::ConsumerError>(())
    /// ```
    ///
    /// # Errors
    /// [`ConsumerError`] for an unknown release, and for an empty range.
    pub fn jax_releases(text: &str) -> Result<Vec<Self>, ConsumerError> {
        if text == "all" {
            return Ok(judged().map(Self::of_jaxlib).collect());
        }
        let Some((oldest, newest)) = range(text) else {
            return Ok(vec![Self::jax(text)?]);
        };
        let oldest_known = judged().next().map(|release| release.version);
        let oldest = oldest.or(oldest_known).unwrap_or_default();
        let newest = newest.unwrap_or(Release::latest().version);
        let ends = first(oldest)?..=find(newest)?;
        let within: Vec<Self> =
            judged().filter(|release| ends.contains(release)).map(Self::of_jaxlib).collect();
        if within.is_empty() {
            let (oldest, newest) = (oldest.to_owned(), newest.to_owned());
            return Err(ConsumerError::NoRelease { oldest, newest });
        }
        Ok(within)
    }

    /// Returns the version of jaxlib, if the consumer was created as one.
    #[must_use]
    pub fn jaxlib(&self) -> Option<&'static str> {
        self.jaxlib.map(|release| release.version)
    }

    /// Returns the release to which the consumer corresponds for artifacts of a kind.
    pub(super) fn release_for(&self, kind: Kind) -> Option<&'static str> {
        if kind.of_jax().is_some() { Some(self.reader_of_jax().version) } else { self.release() }
    }

    /// Returns the jaxlib that loads artifacts of JAX: the consumer's own, or the newest one.
    pub(super) fn reader_of_jax(&self) -> &'static Release {
        self.jaxlib.unwrap_or_else(|| Release::latest())
    }

    fn of_jaxlib(release: &'static Release) -> Self {
        let mut consumer = Self::newest();
        consumer.jaxlib = Some(release);
        consumer
    }
}

/// Returns the releases with known verdicts, oldest first.
fn judged() -> impl Iterator<Item = &'static Release> {
    releases().iter().filter(|release| release.is_judged())
}

/// Returns the release of this version; for `0.10` the newest patch.
fn find(text: &str) -> Result<&'static Release, ConsumerError> {
    named(text).last().ok_or_else(|| unknown(text))
}

/// Returns the first release of a range that starts at this version; for `0.10` the oldest patch.
fn first(text: &str) -> Result<&'static Release, ConsumerError> {
    named(text).next().ok_or_else(|| unknown(text))
}

/// Returns the releases that a version matches, oldest first: one, or those of a MAJOR.MINOR.
fn named(text: &str) -> impl Iterator<Item = &'static Release> {
    let own = Release::find(text).filter(|release| release.is_judged());
    let of_minor = judged().filter(move |release| {
        let is_minor = own.is_none() && text.split('.').count() == 2;
        is_minor && release.version.strip_prefix(text).is_some_and(|rest| rest.starts_with('.'))
    });
    own.into_iter().chain(of_minor)
}

fn unknown(text: &str) -> ConsumerError {
    let known: Vec<&str> = judged().map(|release| release.version).collect();
    ConsumerError::UnknownJaxlib { found: text.chars().take(60).collect(), known: known.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_jaxlib_are_named_by_ranges_and_words() {
        let names = |text: &str| {
            let releases = Consumer::jax_releases(text).unwrap();
            releases.iter().map(|one| one.jaxlib().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(names("0.11"), ["0.11.2"]);
        assert_eq!(names("0.11.0..0.11"), ["0.11.0", "0.11.1", "0.11.2"]);
        assert_eq!(names("0.11.0.."), names(">=0.11.0"));
        assert_eq!(names("0.11.0..").last(), Some(&Release::latest().version));
        assert_eq!(names("..0.9.0"), names("0.8.0..0.9.0"));
        assert_eq!(names("0.8..0.9").first(), Some(&"0.8.0"));
        assert_eq!(names(">=0.8"), names("0.8.0.."));
        assert_eq!(names("0.11..0.11"), names("0.11.0..0.11.2"));
        assert_eq!(names("latest"), [Release::latest().version]);
        assert_eq!(names("all").first(), Some(&"0.8.0"));
        for text in ["", "..", "0.10.9", "0", "0.7.0", ">=", "ALL"] {
            let error = Consumer::jax_releases(text).unwrap_err().to_string();
            assert!(error.contains("0.10.2"), "{text}: {error}");
        }
        let error = Consumer::jax_releases("0.11.0..0.10.0").unwrap_err().to_string();
        assert!(error.contains("the older one first"), "{error}");
    }

    #[test]
    fn a_jaxlib_is_the_newest_tensorflow_to_graphs() {
        let consumer = Consumer::jax("0.10.2").unwrap();
        assert_eq!(consumer.release_for(Kind::GraphDef), Consumer::newest().release());
        assert_eq!(consumer.release_for(Kind::JaxExport), Some("0.10.2"));
        let newest = Consumer::newest().release_for(Kind::StableHlo);
        assert_eq!(newest, Some(Release::latest().version));
    }
}
