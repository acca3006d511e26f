//! Tests of the crate's public API, one module per subject.

mod tensorflow_ops;
