//! Exit statuses of the library's errors.

use std::path::Path;

use serdes_tensors as tensor_io;

use crate::{commands::plugin_opening, failure::Failure, startup::INPUT};

/// Converts an error of the container: a too new state is an answer, everything else a failure.
pub(crate) fn device_state(error: serdes_device_state::Error) -> Failure {
    // Standard input has no path to show.
    let error = error.without_path(Path::new(INPUT));
    match &error {
        serdes_device_state::Error::TooNew { .. }
        | serdes_device_state::Error::TooNewFeature { .. }
        | serdes_device_state::Error::BadConsumer { .. } => Failure::no(error),
        serdes_device_state::Error::Device { source, .. } if plugin_opening::is_answer(source) => {
            Failure::no(error)
        }
        serdes_device_state::Error::NoSuchTensor { .. } => {
            Failure::of(error).with_hint("`serdes inspect` lists them")
        }
        _ => Failure::of(error),
    }
}

/// Converts an error of a source or a target of tensors.
pub(crate) fn tensor_io(error: tensor_io::Error) -> Failure {
    match error {
        tensor_io::Error::DeviceState(error) => device_state(*error),
        error @ tensor_io::Error::CannotSave { .. } => {
            Failure::of(error).with_hint("leave such values out with --skip-unsupported")
        }
        error @ tensor_io::Error::Corrupt { .. } => {
            Failure::of(error).with_hint("fetch or write the file again")
        }
        error => Failure::of(error),
    }
}
