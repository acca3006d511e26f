//! A plug-in: opening one, and its devices.

use std::{
    ffi::c_int,
    path::Path,
    sync::{Arc, PoisonError},
    time::Duration,
};

use serdes_abi::Layout;

use super::{
    border::{FUNCTIONS, Status, enter, with_time_limit},
    device::{Device, DeviceInner},
    error::Error,
    load::{FileClaim, InitPlugin, LayoutChoice, Library, PlatformClaim, Registration},
    plugin_inner::PluginInner,
    report::Report,
};

/// A registered plug-in. Clones are the same plug-in; it is unloaded when the last clone, and the
/// last object created through it, is gone.
#[derive(Clone, Debug)]
pub struct Plugin {
    inner: Arc<PluginInner>,
}

/// Options for opening a plug-in.
#[derive(Clone, Copy, Debug, Default)]
pub struct PluginOptions {
    layout: LayoutChoice,
    time_limit: Option<Duration>,
}

impl PluginOptions {
    /// Creates options with a detected layout and no time limit.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the layout, or its detection.
    #[must_use]
    pub fn with_layout(mut self, layout: LayoutChoice) -> Self {
        self.layout = layout;
        self
    }

    /// Sets the time limit of opening; without one, opening waits as long as it takes.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// Opens `plugin`: the path of a shared library, or `host` with options, as in
    /// [`Plugin::open`].
    ///
    /// # Errors
    /// As [`Plugin::open`]; [`Error::TimedOut`] if it takes longer than the limit.
    pub fn open(self, plugin: &str) -> Result<Plugin, Error> {
        let Some(limit) = self.time_limit else { return Plugin::open(plugin, self.layout) };
        let plugin = plugin.to_owned();
        with_time_limit(limit, move || Plugin::open(&plugin, self.layout))?
    }

    /// Loads the plug-in in the shared library at `path`, which may have any file name.
    ///
    /// # Errors
    /// As [`Plugin::load`]; [`Error::TimedOut`] if it takes longer than the limit.
    pub fn load(self, path: impl AsRef<Path>) -> Result<Plugin, Error> {
        let path = path.as_ref().to_owned();
        let Some(limit) = self.time_limit else { return Plugin::load_as(&path, self.layout) };
        with_time_limit(limit, move || Plugin::load_as(&path, self.layout))?
    }
}

impl Plugin {
    /// Returns the reference plug-in over host memory, which is part of this library: one device,
    /// with no memory limit except the machine's.
    ///
    /// Each call creates a separate plug-in.
    #[must_use]
    #[expect(
        clippy::unreachable,
        reason = "what it registers depends on nothing outside of this library; tests open it"
    )]
    pub fn host() -> Self {
        Self::embedded("", LayoutChoice::Detect)
            .unwrap_or_else(|error| unreachable!("the embedded plug-in registers: {error}"))
    }

    /// Loads the plug-in in the shared library at `path`.
    ///
    /// # Errors
    /// [`Error::NotLoadable`] and [`Error::NotAPlugin`] for an unsuitable file; [`Error::Refused`]
    /// with a report on its registration; [`Error::AlreadyRegistered`] if the library or its
    /// platform's name is open in this process; [`Error::ForeignStatusFunctions`];
    /// [`Error::UnsupportedTarget`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::load_as(path.as_ref(), LayoutChoice::Detect)
    }

    /// Opens a plug-in by its description: `host`, `host:devices=2,memory=1048576` (bytes per
    /// device), or the path of a shared library.
    ///
    /// # Errors
    /// As [`Self::load`]; [`Error::InvalidArgument`] for unknown options of `host`.
    pub fn open(plugin: &str, layout: LayoutChoice) -> Result<Self, Error> {
        match plugin.split_once(':') {
            Some(("host", options)) => Self::embedded(options, layout),
            None if plugin == "host" => Self::embedded("", layout),
            _ => Self::load_as(Path::new(plugin), layout),
        }
    }

    fn load_as(path: &Path, layout: LayoutChoice) -> Result<Self, Error> {
        let file = FileClaim::new(path)?;
        let library = Library::open(path)?;
        let entry = library.entry(path)?;
        let call = move |parameters, status| {
            // SAFETY: the C API's own call: parameters and status are ours and live through it; the
            // library is open.
            unsafe { entry(parameters, status) }
        };
        let (registration, report) = register(&call, layout)?;
        let platform = PlatformClaim::new(&registration.facts.name)?;
        Ok(Self::new(registration, report, Some(library), Some((file, platform))))
    }

    fn embedded(options: &str, layout: LayoutChoice) -> Result<Self, Error> {
        let options = serdes_host_memory::Options::parse(options).map_err(|error| {
            Error::InvalidArgument {
                what: "what follows `host:`",
                found: format!("`{options}` ({error})"),
                expected: "devices=N and memory=BYTES, separated by commas",
            }
        })?;
        let call = move |parameters, status| {
            // SAFETY: the C API's own call: parameters and status are ours and live through it; the
            // functions are those of our statuses.
            unsafe {
                serdes_host_memory::init_plugin(
                    parameters,
                    status,
                    FUNCTIONS,
                    options.clone(),
                    None,
                );
            }
        };
        let (registration, report) = register(&call, layout)?;
        Ok(Self::new(registration, report, None, None))
    }

    fn new(
        registration: Registration,
        report: Report,
        library: Option<Library>,
        claims: Option<(FileClaim, PlatformClaim)>,
    ) -> Self {
        Self { inner: Arc::new(PluginInner::new(registration, report, library, claims)) }
    }

    /// Returns the platform that the plug-in registered.
    #[must_use]
    pub fn platform(&self) -> Platform {
        Platform { plugin: self.clone() }
    }

    /// Returns the report of the registration, including warnings.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.inner.report
    }

    /// Returns the layout that is used for the plug-in.
    #[must_use]
    pub fn layout(&self) -> &'static Layout {
        self.inner.registration.layout
    }

    /// Returns the number of devices at the time of the registration.
    #[must_use]
    pub fn device_count(&self) -> usize {
        self.inner.report.devices.unwrap_or_default()
    }

    /// Returns the device with this ordinal. The same ordinal always returns the same device.
    ///
    /// # Errors
    /// [`Error::NoSuchDevice`]; what the plug-in reports; [`Error::BadStruct`] if it does not fill
    /// the device.
    pub fn device(&self, ordinal: usize) -> Result<Device, Error> {
        let count = self.device_count();
        let missing = || Error::NoSuchDevice { ordinal, count };
        if ordinal >= count {
            return Err(missing());
        }
        let number = i32::try_from(ordinal).map_err(|_| missing())?;
        let mut devices = self.inner.devices.lock().unwrap_or_else(PoisonError::into_inner);
        let state = match devices.get(&number) {
            Some(state) => Arc::clone(state),
            None => {
                let state = Arc::new(DeviceInner::create(&self.inner.registration, number)?);
                devices.insert(number, Arc::clone(&state));
                state
            }
        };
        Ok(Device::new(Arc::clone(&self.inner), state))
    }
}

/// The platform of a plug-in: its names and its flags.
#[derive(Clone, Debug)]
pub struct Platform {
    plugin: Plugin,
}

impl Platform {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.plugin.inner.registration.facts.name
    }

    /// Returns the type of the devices.
    #[must_use]
    pub fn device_type(&self) -> &str {
        &self.plugin.inner.registration.facts.device_type
    }

    /// Returns true if the platform has memory that host and devices address alike.
    #[must_use]
    pub fn supports_unified_memory(&self) -> bool {
        self.plugin.inner.registration.facts.supports_unified_memory
    }

    /// Returns true if the platform asks the host to use its best-fit allocator for the devices'
    /// memory, as [`Device::allocate`] then does.
    #[must_use]
    pub fn uses_bfc_allocator(&self) -> bool {
        self.plugin.inner.registration.facts.use_bfc_allocator
    }

    /// Returns true if the platform asks for an allocator that grows on demand.
    #[must_use]
    pub fn forces_memory_growth(&self) -> bool {
        self.plugin.inner.registration.facts.force_memory_growth
    }
}

/// Registers a plug-in by `entry`, counts the devices, and completes the report.
fn register(entry: InitPlugin<'_>, layout: LayoutChoice) -> Result<(Registration, Report), Error> {
    let mut report = Report::default();
    let Some(registration) = Registration::new(entry, layout, &mut report) else {
        return Err(Error::Refused(Box::new(report)));
    };
    let devices = count_devices(&registration, &mut report);
    report.devices = Some(devices);
    Ok((registration, report))
}

/// Returns the number of devices. An error is a warning and means no devices, as in TensorFlow.
fn count_devices(registration: &Registration, report: &mut Report) -> usize {
    let count = match (
        registration.facts.visible_device_count,
        registration.functions.platform.get_device_count,
    ) {
        (Some(count), _) => count,
        (None, None) => 0,
        (None, Some(get_device_count)) => {
            let mut count: c_int = 0;
            let mut status = Status::new();
            {
                let _call = enter(&"get_device_count");
                // SAFETY: the platform is the plug-in's own; count and status live through the
                // call.
                unsafe {
                    get_device_count(registration.platform(), &raw mut count, status.as_mut_ptr());
                }
            }
            if let Err(error) = status.into_result("get_device_count") {
                report.warnings.push(format!("the devices cannot be counted: {error}"));
                return 0;
            }
            if count < 0 {
                report.warnings.push(format!("get_device_count gave {count}, taken as 0"));
            }
            usize::try_from(count).unwrap_or_default()
        }
    };
    // Ordinals are C ints.
    let most = i32::MAX as usize;
    if count > most {
        report.warnings.push(format!("visible_device_count is {count}, taken as {most}"));
    }
    if count == 0 {
        report.warnings.push("the plug-in has no devices; is its hardware there?".to_owned());
    }
    count.min(most)
}
