//! The tests of the crate from outside, one module a subject. They are one program, because each
//! further one links the crate once more.

mod announced;
mod hostile_addresses;
