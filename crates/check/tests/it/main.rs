//! Tests of the crate's public API, one module per subject. They are one program, because each
//! further program links the crate once more.

mod addresses;
mod check_device_state;
mod check_kinds;
mod check_npy_headers;
mod corpus_replay;
mod rules;
mod saved_model_variables;
mod tensorflow_hostile;
mod tensorflow_verdicts;
