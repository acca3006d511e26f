//! The benchmark's messages for other libraries, generated from `messages.proto` into `generated/`
//! by `cargo xtask peers`: `quick.rs` by pb-rs, the other files by buffa-codegen.

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
