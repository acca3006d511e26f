//! Findings about artifacts as data, and the reports that tools and people read.
//!
//! ```
//! use serdes_report::{Artifact, Cell, Class, Finding, Format, Level, Levels, Report, Tool};
//!
//! let missing = Finding::new("unknown_op", "2.12 has no operation SegmentMaxV2")
//!     .of_class(Class::Refusal)
//!     .at("SegmentMaxV2")
//!     .with_remedy("load it with TensorFlow 2.13 or newer");
//!
//! let mut model = Artifact::new("exported/model");
//! model.add_release("2.12", [missing]);
//! model.add_release("2.13", []);
//! assert_eq!(model.answers()[0].cell, Cell::No);
//!
//! let mut report = Report::new(Tool::new("serdes", "0.1.0"));
//! report.add(model);
//! report.apply(&Levels::default().with("attribute_dropped", Level::Deny));
//! assert!(!report.is_clean());
//!
//! let mut sarif = Vec::new();
//! report.write(Format::Sarif, &mut sarif)?;
//! # assert!(sarif.starts_with(b"{"));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! A [`Report`] has artifacts and releases; each pair has a [`Cell`] and its [`Finding`]s.
//! [`Levels`] and a [`Baseline`] are applied before it is written; each [`Format`] is a function in
//! its own file, independent of the others.
//!
//! Names and messages may come from hostile files: they cannot break a report or insert markup.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::get_unwrap,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

mod artifact;
mod baseline;
mod cell;
mod finding;
mod fingerprint;
mod format;
mod github;
mod gitlab;
mod grouped;
mod html;
mod junit;
mod level;
mod markdown;
mod names;
mod report;
mod sarif;
mod summary;
mod text;

pub use artifact::{Answer, Artifact};
pub use baseline::{Baseline, BaselineError, Comparison, Entry, Unmatched};
pub use cell::Cell;
pub use finding::{Class, Finding};
pub use fingerprint::Fingerprint;
pub use format::{Format, UnknownFormat};
pub use level::{Level, Levels};
pub use report::{Report, Rule, Tool};
pub use summary::Summary;
pub use text::TextOptions;
