//! Tests of verdicts on files of real builds, and on damaged or untrusted files.

mod corpus_replay;
mod hostile;
mod verdicts;
