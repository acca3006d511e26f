//! The same messages for other libraries, as their generators make them from `messages.proto`: in
//! `generated/`, pb-rs 0.10 (`pb-rs messages.proto`) the file `quick.rs`, buffa-codegen 0.9 the rest.

#[allow(warnings, clippy::all, reason = "generated code")]
#[rustfmt::skip]
pub mod buffa_messages {
    include!("generated/peers.mod.rs");
}

#[allow(warnings, clippy::all, reason = "generated code")]
#[rustfmt::skip]
pub mod quick_messages {
    include!("generated/quick.rs");
}
