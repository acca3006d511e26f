//! Verdicts on files of real builds, and files that are damaged or of strangers.

mod corpus_replay;
mod hostile;
mod verdicts;
