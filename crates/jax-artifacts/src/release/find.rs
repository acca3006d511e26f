//! Looking up releases by version.

use super::{Deserializer, Release, generated::RELEASES, table::OLDEST_JUDGED};

impl Release {
    /// Returns the release with that version; `latest` is the newest one.
    #[must_use]
    pub fn find(version: &str) -> Option<&'static Self> {
        if version == "latest" {
            return Some(Self::latest());
        }
        RELEASES.iter().find(|release| release.version == version)
    }

    /// Returns the newest known release.
    #[must_use]
    pub fn latest() -> &'static Self {
        const { RELEASES.last().expect("the table has rows") }
    }

    /// Returns true if the verdicts for it were compared with the release itself. Older releases
    /// are known only as producers of files.
    #[must_use]
    pub fn is_judged(&self) -> bool {
        Self::find(OLDEST_JUDGED).is_some_and(|oldest| self >= oldest)
    }

    /// Returns true if its reader of `jax.export` files knows all dialects that its Python package
    /// knows; older readers know those that JAX writes.
    #[must_use]
    pub fn loads_all_dialects(&self) -> bool {
        self.deserializer >= Deserializer::Tables
    }
}

/// Returns every known release, oldest first.
#[must_use]
pub fn releases() -> &'static [Release] {
    RELEASES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_in_order_and_found_by_version() {
        for pair in RELEASES.windows(2) {
            assert!(pair[0] < pair[1], "{} before {}", pair[0], pair[1]);
            assert!(pair[0].stablehlo <= pair[1].stablehlo, "{}", pair[1]);
            assert!(pair[0].deserializer <= pair[1].deserializer, "{}", pair[1]);
            assert!(pair[0].week_12 <= pair[0].week_4 && pair[0].week_4 <= pair[0].stablehlo);
        }
        for release in RELEASES {
            assert_eq!(Release::find(release.version), Some(release));
        }
        assert_eq!(Release::find("latest"), Some(Release::latest()));
        assert_eq!(Release::find("0.10.3"), None);
        assert_eq!(Release::find("0.8.0").map(Release::is_judged), Some(true));
        assert_eq!(Release::find("0.7.0").map(Release::is_judged), Some(false));
    }
}
