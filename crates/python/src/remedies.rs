//! Remedies of exceptions in the words of this package: the library's, with the parameters that do
//! it.

use std::borrow::Cow;

use serdes_check::{Remedy, Rule};

/// Remedy for a program that uses the package.
pub(crate) fn words(remedy: &Remedy) -> Cow<'static, str> {
    match remedy {
        Remedy::ChooseTags => format!("{remedy} (`tags=`)").into(),
        Remedy::General(Rule::TooNew) => {
            "Upgrade the reader, or have the artifact written at an older version (`serdes_version=\"week-4-old\"`)."
                .into()
        }
        Remedy::General(Rule::NotFound) => {
            "Check the path and the tags; `serdes_ml.inspect` shows what is there.".into()
        }
        remedy => remedy.to_string().into(),
    }
}
