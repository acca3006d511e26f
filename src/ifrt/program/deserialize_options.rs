//! Inputs for reading a program, in addition to its bytes.

use std::{fmt, sync::Arc};

use crate::{
    codec::{DecodeError, DeserializeOptions},
    ifrt::{DeserializeShardingOptions, DeviceLookup},
};

/// The option with the device look-up, without which no program that names devices can be read.
#[derive(Clone)]
pub struct DeserializeProgramOptions {
    devices: Arc<dyn DeviceLookup>,
}

impl DeserializeProgramOptions {
    /// Creates the option to look devices up in `devices`.
    pub fn new(devices: impl DeviceLookup + 'static) -> Self {
        Self { devices: Arc::new(devices) }
    }

    /// Returns the look-up of devices by id.
    pub fn devices(&self) -> &dyn DeviceLookup {
        &*self.devices
    }

    /// Returns the options for the shardings inside the program `reader`.
    pub(super) fn for_nested(
        options: &DeserializeOptions,
        reader: &'static str,
    ) -> Result<DeserializeOptions, DecodeError> {
        let program: &Self = options.require(reader)?;
        let sharding = DeserializeShardingOptions::new(Arc::clone(&program.devices));
        Ok(options.clone().with(sharding))
    }
}

impl fmt::Debug for DeserializeProgramOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeserializeProgramOptions").finish_non_exhaustive()
    }
}
