//! Places that addresses lead to: object storage and the web.

mod address;
mod bucket;
mod client;
mod held;
mod http_proxy;
mod object;
mod page;
mod profiles;
mod remote;
mod resolve;
mod stores;
#[cfg(test)]
mod tests;
mod web;

pub(super) use remote::Remote;
