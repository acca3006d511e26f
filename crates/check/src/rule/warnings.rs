//! The rules that only warn: their findings do not refuse an artifact.

use super::Rule;

impl Rule {
    /// Returns true if the consumer accepts an artifact that breaks the rule, so that it is always
    /// a warning, unless the caller accepts none. The findings of other rules refuse an artifact,
    /// and are warnings only for parts that are not loaded.
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
