//! What a release may take away.

use std::fmt;

use super::EvolutionError;

/// What kind of release a step is for.
///
/// Within a MAJOR everything that was written stays readable, and within a MAJOR.MINOR the patches
/// read each other's data in both directions (seed 002, "Backward and partial forward
/// compatibility").
///
/// ```
/// use serdes::version::evolution::ReleaseKind;
///
/// assert_eq!(ReleaseKind::between("2.20.1", "2.20.2")?, ReleaseKind::Patch);
/// assert_eq!(ReleaseKind::between("2.20.1", "2.21.0")?, ReleaseKind::Minor);
/// assert_eq!(ReleaseKind::between("2.20.1", "3.0.0")?, ReleaseKind::Major);
/// # Ok::<(), serdes::version::evolution::EvolutionError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReleaseKind {
    /// MAJOR moves: what was banned may go.
    Major,
    /// MINOR moves: producers may write what is new; nothing that worked may go.
    Minor,
    /// PATCH moves: what the patch before reads is all that may be written, and what it took is
    /// taken.
    Patch,
}

impl ReleaseKind {
    /// The kind of the release `later` after `earlier`, both `MAJOR.MINOR.PATCH`.
    ///
    /// # Errors
    /// [`EvolutionError::NotARelease`], and [`EvolutionError::ReleaseGoesBack`] where `later` is
    /// not the later one.
    pub fn between(earlier: &str, later: &str) -> Result<Self, EvolutionError> {
        let (old, new) = (parse(earlier)?, parse(later)?);
        if new <= old {
            return Err(EvolutionError::ReleaseGoesBack {
                found: later.to_owned(),
                previous: earlier.to_owned(),
            });
        }
        Ok(match (new[0] > old[0], new[1] > old[1]) {
            (true, _) => Self::Major,
            (false, true) => Self::Minor,
            (false, false) => Self::Patch,
        })
    }
}

impl fmt::Display for ReleaseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Major => "major",
            Self::Minor => "minor",
            Self::Patch => "patch",
        })
    }
}

fn parse(text: &str) -> Result<[u64; 3], EvolutionError> {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let number = |part: &str| digits(part).then(|| part.parse().ok()).flatten();
    let parts: Option<Vec<u64>> = text.split('.').map(number).collect();
    let parts: Option<[u64; 3]> = parts.and_then(|parts| parts.try_into().ok());
    parts.ok_or_else(|| EvolutionError::NotARelease { found: text.chars().take(40).collect() })
}
