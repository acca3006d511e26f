//! Programs on the devices of a PJRT client: compiled, described to a client, run.
//!
//! `module` reads facts that only the compiled module has; `compile` creates a [`Program`] from a
//! client's program, after checking its calls (`called`) and its `options` and after a `trial`
//! elsewhere; `describe` answers a client's questions about it, `launch` runs it, and `callback`,
//! `exchange` and `host_callbacks` exchange data with functions of its client. Does not depend on
//! handles, sessions or requests.

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
