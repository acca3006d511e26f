//! A trainer's snapshots, written so that older and newer builds of the trainer can read them.
//!
//! A crate needs for that: `versions.toml`, the two lines of `build.rs`, [`serdes::lines!`], one
//! `ToProto` and one `FromProto` per type, golden bytes, and the test of the lock in `tests/`.
//!
//! A new format begins with `serdes versions add snapshots --formats Snapshot --summary '…'` in
//! this folder, and ends with `serdes versions lock`; a release is `serdes versions release`.

mod run;
mod snapshot;

pub use run::{Run, RunProto};
pub use snapshot::{Snapshot, SnapshotProto};

serdes::lines!();
