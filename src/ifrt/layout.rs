//! Layouts: the order of array dimensions in memory, and the envelope that holds any registered
//! layout.

mod compact;
mod pjrt;

pub use compact::CompactLayout;
pub use pjrt::PjRtLayout;

use super::kinds::kinds;
use crate::proto::xla::ifrt;

kinds! {
    ($) by for_each_kind
    /// A layout of any kind (`xla::ifrt::Layout`). The envelope has no version; the layout inside
    /// has one.
    enum Layout {
        /// A dense layout.
        Compact(CompactLayout),
        /// A layout as XLA describes it.
        PjRt(PjRtLayout),
    }
    /// The envelope has no version: the layout inside is written at the requested one.
    ToProto,
    /// The envelope has no version: the layout inside records its own. No options are needed.
    FromProto as ifrt::LayoutProto
}

#[cfg(test)]
mod tests;
