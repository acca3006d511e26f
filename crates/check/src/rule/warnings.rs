//! The rules that warn: their findings refuse nothing by themselves.

use super::Rule;

impl Rule {
    /// Returns true if the consumer takes an artifact that breaks the rule, so that it is always a
    /// warning, unless the caller takes none. What other rules find refuses an artifact, and is a
    /// warning only where it is about a part that is not loaded.
    #[must_use]
    pub const fn is_warning(self) -> bool {
        matches!(
            self,
            Self::AttributeDropped
                | Self::CallCrashes
                | Self::CustomCall
                | Self::DerivativeRefused
                | Self::Empty
                | Self::Expires
                | Self::ForwardCompatibility
                | Self::LoaderDiffers
                | Self::NotCallable
                | Self::UnlistedCheckpoint
        )
    }
}
