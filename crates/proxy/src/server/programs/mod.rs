//! Programs on the devices of a PJRT client: compiled, described to a client, run.
//!
//! `module` reads what only the compiled module says; `compile` makes a [`Program`] of what a
//! client has sent, if what is `called` in it and its `options` do no harm, after a `trial` elsewhere; `describe` says of it what
//! a client asks, `launch` runs it, and `callback`, `exchange` and `host_callbacks` carry what it
//! sends to functions of its client and receives from them. This part must never know a handle, a
//! session or a request.

mod callback;
mod called;
mod compile;
mod describe;
mod endless;
mod exchange;
mod host_callbacks;
mod launch;
mod module;
mod options;
mod parameter;
mod program;
mod readable;
mod sorts;
mod trial;
mod waiting;

pub use self::trial::{TrialCompiler, TrialFailure};
pub(crate) use self::{
    callback::{Call, HostCallback},
    called::CallRules,
    compile::{Compiler, Source, compile},
    host_callbacks::HostCallbacks,
    launch::{Argument, Completion, Launch, Launched, Running},
    options::{OptionRules, Target},
    program::Program,
    trial::{Deadline, Trials},
};
