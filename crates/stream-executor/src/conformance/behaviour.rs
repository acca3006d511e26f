//! A behaviour of the suite, and the device that it is tried on.

pub(super) use serdes_library_file::conformance::{
    Failure, Verdict, counted, expect, failed, pattern, same_bytes,
};

use crate::{device::Device, error::Error, plugin::Plugin};

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        if error.is_unsupported() {
            Self::Unsupported(error.to_string())
        } else {
            Self::Failed(error.to_string())
        }
    }
}

/// One behaviour.
#[derive(Clone, Copy)]
pub(super) struct Behaviour {
    pub(super) name: &'static str,
    /// The requirement on the plug-in, in one sentence.
    pub(super) demand: &'static str,
    pub(super) run: fn(&Plugin) -> Verdict,
}

/// Returns the first device, whose allocations call the plug-in directly, even if its platform uses
/// the host's allocator.
pub(super) fn first_device(plugin: &Plugin) -> Result<Device, Failure> {
    Ok(plugin.device(0)?.directly())
}
