//! The state that all handles of a plug-in share.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    device::DeviceInner,
    load::{FileClaim, Library, PlatformClaim, Registration},
    report::Report,
};

/// Shared ownership of a plug-in. The fields are dropped in this order: the objects that the
/// plug-in created, its code, its claims.
#[derive(Debug)]
pub(crate) struct PluginInner {
    /// The devices that were created; they live as long as the plug-in, as in TensorFlow.
    pub(super) devices: Mutex<BTreeMap<i32, Arc<DeviceInner>>>,
    pub(crate) registration: Registration,
    pub(super) report: Report,
    _library: Option<Library>,
    _claims: Option<(FileClaim, PlatformClaim)>,
}

impl PluginInner {
    pub(super) fn new(
        registration: Registration,
        report: Report,
        library: Option<Library>,
        claims: Option<(FileClaim, PlatformClaim)>,
    ) -> Self {
        Self { devices: Mutex::default(), registration, report, _library: library, _claims: claims }
    }
}

impl Drop for PluginInner {
    fn drop(&mut self) {
        let devices = self.devices.get_mut().unwrap_or_else(PoisonError::into_inner);
        for device in std::mem::take(devices).into_values() {
            device.destroy(&self.registration);
        }
    }
}
