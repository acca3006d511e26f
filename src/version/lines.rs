//! The lines that `versions.toml` declares, as the build generates them.

use super::Registry;

include!(concat!(env!("OUT_DIR"), "/serdes_lines.rs"));

/// Returns every line with its entries, the release tables and the named layouts.
///
/// ```
/// use serdes::version::{registry, Date};
///
/// let day = Date::from_ymd(2026, 6, 14).unwrap();
/// let line = registry().line("ifrt_serdes").unwrap();
/// assert_eq!((line.current(day), line.week_4_old(day)), (Some(3), Some(2)));
/// ```
pub fn registry() -> &'static Registry {
    &REGISTRY
}
