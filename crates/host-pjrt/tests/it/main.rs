//! Tests of the shared library of this package as frameworks and this project's own host load it.

mod conformance;
mod host;
mod state;
