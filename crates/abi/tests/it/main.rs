//! The layouts against what was measured, the tables of PJRT against their data, and the comparison
//! of layouts.

#[cfg(feature = "diff")]
mod diff_properties;
mod layout_data;
#[cfg(feature = "pjrt")]
mod pjrt_tables;
