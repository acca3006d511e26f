//! The same messages for other libraries, as their generators make them from `messages.proto`.

#[allow(warnings, clippy::all, reason = "generated code")]
#[rustfmt::skip]
pub mod buffa_messages {
    include!("peers.mod.rs");
}

#[allow(warnings, clippy::all, reason = "generated code")]
#[rustfmt::skip]
pub mod quick_messages {
    include!("quick.rs");
}
