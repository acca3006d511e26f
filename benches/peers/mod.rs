//! The benchmark's messages for other libraries, as their generators make them from
//! `messages.proto`: in `generated/`, pb-rs the file `quick.rs`, buffa-codegen the rest. `cargo
//! xtask peers` makes them.

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
