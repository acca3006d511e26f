//! The requests: a type for each, which plans and runs.
//!
//! [`begin`] takes requests up in the order in which they came. Planning does all that a request
//! does to handles; what is left, since it waits for bytes, a device or another request, runs
//! beside the requests that follow. This part must never know how requests come here, nor where
//! answers go.

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
