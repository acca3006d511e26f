//! Remedies for exceptions: the library's, with the package's parameters.

use serdes_check::{Remedy, Rule};

/// Returns the text of a remedy for a user of the package.
pub(crate) fn words(remedy: &Remedy) -> String {
    match remedy {
        Remedy::ChooseTags => format!("{remedy} (`tags=`)"),
        Remedy::General(Rule::TooNew) => {
            "Upgrade the reader, or have the artifact written at an older version (`serdes_version=\"week-4-old\"`).".to_owned()
        }
        Remedy::General(Rule::NotFound) => {
            "Check the path and the tags; `serdes_ml.inspect` shows what is there.".to_owned()
        }
        remedy => remedy.to_string(),
    }
}
