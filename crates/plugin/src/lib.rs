//! SDK for writing StreamExecutor plug-ins in Rust.
