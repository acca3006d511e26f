//! Verdicts on files of real builds, and on files that are damaged or untrusted.

mod corpus_replay;
mod hostile;
mod verdicts;
