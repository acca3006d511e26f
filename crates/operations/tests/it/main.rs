//! The tests of the crate from outside, one module a subject.

mod tensorflow_ops;
