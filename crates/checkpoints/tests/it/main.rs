//! Tests of the crate's public API, one module per subject. They are one program, because each
//! further program links the crate once more.

mod tensorflow_checkpoints;
