//! The requests: each is a type that is planned and run.
//!
//! [`begin`] starts requests in the order of arrival. Planning has all effects of a request on
//! handles; the rest, which waits for bytes, a device or another request, runs concurrently with
//! later requests. Does not depend on how requests arrive or answers are sent.

mod answer;
mod array_creation;
mod arrays;
mod callbacks;
mod compilation;
mod copies;
mod execution;
mod handles;
mod queries;
mod reads;
mod rearrangement;
mod refused;
mod remap;
mod request;
mod resharding;
mod table;

#[cfg(test)]
mod tests;

pub(crate) use self::{
    answer::{Asked, note, respond},
    request::{Answer, Reply},
    table::begin,
};
