//! Registers a plug-in: calls `SE_InitPlugin`, and checks the structs that it filled.
//!
//! The order is TensorFlow's: the parameters, the platform, its functions, the device functions,
//! the executor. All problems of one step are reported together; the next step follows only if
//! there were none. Otherwise everything that the plug-in created is destroyed.

use std::ptr;

use serdes_abi::{
    Family, Layout, SE_CreateDeviceFnsParams, SE_CreateStreamExecutorParams, SE_MAJOR, SP_Platform,
    SP_PlatformFns, SP_StreamExecutor, TENSORFLOW_2_14, rfc,
};

use super::{
    allocators::{RfcAllocator, executor_memory, rfc_allocator},
    detect::{self, LayoutChoice},
    initialise::{InitPlugin, Initialised, initialise},
    platform_facts::{PlatformFacts, platform_facts},
    requirements::{self, ExecutorUse},
    struct_checks::{check_struct, succeeded, warn_of_oddities},
};
use crate::{
    border::{
        FunctionTable, Status, StructMemory, StructView, device_functions, enter,
        executor_functions, platform_functions, rfc_platform_functions, timer_functions, view,
    },
    error::Error,
    report::Report,
};

/// The size of SP_StreamExecutor in TensorFlow 2.5 and 2.6, the only one in which the slot of a
/// function has another meaning in later headers.
const TENSORFLOW_2_5_EXECUTOR: usize = 264;

/// Everything that a registered plug-in filled. Destroyed in the order of TensorFlow.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) layout: &'static Layout,
    pub(crate) facts: PlatformFacts,
    /// Functions of the plug-in.
    pub(crate) functions: FunctionTable,
    platform: StructMemory,
    platform_functions: StructMemory,
    destroy_platform: Option<unsafe extern "C" fn(*mut SP_Platform)>,
    destroy_platform_fns: Option<unsafe extern "C" fn(*mut SP_PlatformFns)>,
    device_functions: Option<StructMemory>,
    executor: Option<StructMemory>,
    timer_functions: Option<StructMemory>,
    allocator: Option<RfcAllocator>,
}

// SAFETY: after registration the structs and tables are only read; the plug-in's functions may be
// called by any thread, as the C API is used by hosts with many threads; what a bound function
// holds besides is the address of a struct that is only handed to the plug-in.
unsafe impl Send for Registration {}
// SAFETY: see above.
unsafe impl Sync for Registration {}

impl Registration {
    /// Calls `entry` and checks its results. The report is complete in both cases.
    pub(crate) fn new(
        entry: InitPlugin<'_>,
        choice: LayoutChoice,
        report: &mut Report,
    ) -> Option<Self> {
        let (initialised, layout) = initialise(entry, choice, report)?;
        report.set_layout(layout);
        let Some(platform) = Platform::check(&initialised, layout, report) else {
            initialised.destroy();
            return None;
        };
        let Platform { facts, functions, allocators } = platform;
        let parameters = initialised.parameters();
        let mut registration = Self {
            layout,
            facts,
            functions: FunctionTable::of_platform(functions),
            // SAFETY: the type is that of the field.
            destroy_platform: unsafe { parameters.function("destroy_platform") },
            // SAFETY: the type is that of the field.
            destroy_platform_fns: unsafe { parameters.function("destroy_platform_fns") },
            platform: initialised.platform,
            platform_functions: initialised.functions,
            device_functions: None,
            executor: None,
            timer_functions: None,
            allocator: None,
        };
        registration.create_device_functions(report);
        if report.accepted() {
            registration.create_executor(choice, report);
        }
        if report.accepted() {
            registration.bind_memory(&allocators, report);
        }
        if report.accepted() {
            let use_of_it = ExecutorUse {
                allocates: registration.allocator.is_none(),
                unified: registration.facts.supports_unified_memory,
                size: registration.executor.as_ref().map_or(0, StructMemory::struct_size),
            };
            requirements::executor(&registration.functions, registration.layout, use_of_it, report);
        }
        if report.accepted() {
            registration.create_timer_functions(report);
        }
        report.accepted().then_some(registration)
    }

    /// Returns the platform, for calls of its functions.
    pub(crate) fn platform(&self) -> *const SP_Platform {
        self.platform.as_ptr::<SP_Platform>().cast_const()
    }

    /// Binds the functions that allocate and free memory: those of an allocator of RFC #257, or the
    /// executor's.
    fn bind_memory(&mut self, allocators: &rfc::SP_PlatformFns, report: &mut Report) {
        match rfc_allocator(self.platform(), allocators, report) {
            Some((memory, allocator)) => {
                self.facts.supports_unified_memory = allocator.supports_unified_memory;
                self.functions.memory = memory;
                self.allocator = Some(allocator);
            }
            None => {
                let unified = self.facts.supports_unified_memory;
                self.functions.memory = executor_memory(&self.functions.executor, unified);
            }
        }
    }

    fn create_device_functions(&mut self, report: &mut Report) {
        // The RFC's layout has none.
        let (Some(create), Some(structure)) =
            (self.functions.platform.create_device_fns, self.layout.structure("SP_DeviceFns"))
        else {
            return;
        };
        let memory = StructMemory::new(structure.struct_size);
        let mut parameters = SE_CreateDeviceFnsParams {
            struct_size: SE_CreateDeviceFnsParams::STRUCT_SIZE,
            ext: ptr::null_mut(),
            device_fns: memory.as_ptr(),
        };
        let mut status = Status::new();
        {
            let _call = enter(&"create_device_fns");
            // SAFETY: the platform is the one that the plug-in filled in; parameters, memory and
            // status live through the call.
            unsafe { create(self.platform.as_ptr(), &raw mut parameters, status.as_mut_ptr()) };
        }
        if !succeeded(status, "create_device_fns", report) {
            return;
        }
        check_struct(&memory, structure, report);
        let view = StructView::new(&memory, structure, memory.struct_size());
        self.functions.devices = device_functions(view);
        self.device_functions = Some(memory);
    }

    fn create_executor(&mut self, choice: LayoutChoice, report: &mut Report) {
        let (Some(create), Some(structure)) = (
            self.functions.platform.create_stream_executor,
            self.layout.structure("SP_StreamExecutor"),
        ) else {
            return;
        };
        let memory = StructMemory::new(structure.struct_size);
        let mut parameters = SE_CreateStreamExecutorParams {
            struct_size: SE_CreateStreamExecutorParams::STRUCT_SIZE,
            ext: ptr::null_mut(),
            stream_executor: memory.as_ptr(),
        };
        let mut status = Status::new();
        {
            let _call = enter(&"create_stream_executor");
            // SAFETY: the platform is the one that the plug-in filled in; parameters, memory and
            // status live through the call.
            unsafe { create(self.platform.as_ptr(), &raw mut parameters, status.as_mut_ptr()) };
        }
        if !succeeded(status, "create_stream_executor", report) {
            return;
        }
        check_struct(&memory, structure, report);
        if choice == LayoutChoice::Detect
            && self.layout.name == TENSORFLOW_2_14.name
            && report.accepted()
        {
            self.narrow_layout(&memory, report);
        }
        if let Some(view) = view(&memory, self.layout, "SP_StreamExecutor") {
            self.functions.executor = executor_functions(view);
        }
        if report.accepted()
            && self.layout.family == Family::Released
            && memory.struct_size() == SP_StreamExecutor::STRUCT_SIZE
            && detect::looks_like_264_bytes(&memory)
        {
            report.layout_may_be_named = true;
            report.refuse(
                "SP_StreamExecutor",
                "struct_size",
                "288, and functions only up to byte 264",
                "functions up to byte 288",
                "this looks like the layout of TensorFlow 2.5 without its size: if it is, name the layout tensorflow-2.5",
            );
        }
        self.executor = Some(memory);
    }

    /// Chooses among the released layouts by the size of the executor.
    fn narrow_layout(&mut self, executor: &StructMemory, report: &mut Report) {
        let size = executor.struct_size();
        if size == TENSORFLOW_2_5_EXECUTOR && detect::is_longer_than_264_bytes(executor) {
            report.layout_may_be_named = true;
            report.refuse(
                "SP_StreamExecutor",
                "struct_size",
                "264, and functions beyond it",
                "264 and functions up to it (TensorFlow 2.5 and 2.6), or 288",
                "set struct_size from the macro of the header that the plug-in was built with, or name the layout",
            );
        }
        if let Some(layout) = detect::executor(self.platform.struct_size(), size) {
            self.layout = layout;
            report.set_layout(layout);
        } else {
            report.layout = None;
            report.layout_may_be_named = true;
            report.refuse(
                "SP_StreamExecutor",
                "struct_size",
                size.to_string(),
                "264 (TensorFlow 2.5 and 2.6), 256, or 288 and more",
                "no known header has this size: name the plug-in's layout",
            );
        }
    }

    /// Creates the timer functions. They are optional: an error here disables the timers, not the
    /// plug-in.
    fn create_timer_functions(&mut self, report: &mut Report) {
        let (Some(create), Some(structure)) =
            (self.functions.platform.create_timer_fns, self.layout.structure("SP_TimerFns"))
        else {
            return;
        };
        let memory = StructMemory::new(structure.struct_size);
        let mut status = Status::new();
        {
            let _call = enter(&"create_timer_fns");
            // SAFETY: the platform is the one that the plug-in filled in; memory and status live
            // through the call.
            unsafe { create(self.platform.as_ptr(), memory.as_ptr(), status.as_mut_ptr()) };
        }
        if let Err(error) = status.into_result("create_timer_fns") {
            report.warnings.push(format!("timers cannot be read: {error}"));
            if let Error::Status(error) = error {
                self.functions.timers_error = Some(error);
            }
            return;
        }
        report.struct_sizes.push((structure.name, memory.struct_size()));
        if memory.struct_size() == 0 {
            report.warnings.push("SP_TimerFns.struct_size is 0: timers cannot be read".to_owned());
        }
        let view = StructView::new(&memory, structure, memory.struct_size());
        self.functions.timers = timer_functions(view);
        if self.functions.timers.nanoseconds.is_none() {
            report.missing_optional.push("nanoseconds");
        }
        self.timer_functions = Some(memory);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let functions = &self.functions.platform;
        let platform = self.platform();
        if let Some(allocator) = self.allocator.take() {
            // SAFETY: the platform is destroyed below; this is the last owner of the registration,
            // and so of its functions.
            unsafe { allocator.destroy(platform) };
        }
        if let (Some(memory), Some(destroy)) =
            (&self.device_functions, functions.destroy_device_fns)
        {
            let _call = enter(&"destroy_device_fns");
            // SAFETY: filled in by the plug-in's create_device_fns, and destroyed once, before its
            // platform.
            unsafe { destroy(platform, memory.as_ptr()) };
        }
        if let (Some(memory), Some(destroy)) = (&self.executor, functions.destroy_stream_executor) {
            let _call = enter(&"destroy_stream_executor");
            // SAFETY: filled in by the plug-in's create_stream_executor, and destroyed once, before
            // its platform.
            unsafe { destroy(platform, memory.as_ptr()) };
        }
        if let (Some(memory), Some(destroy)) = (&self.timer_functions, functions.destroy_timer_fns)
        {
            let _call = enter(&"destroy_timer_fns");
            // SAFETY: filled in by the plug-in's create_timer_fns, and destroyed once, before its
            // platform.
            unsafe { destroy(platform, memory.as_ptr()) };
        }
        if let Some(destroy) = self.destroy_platform {
            let _call = enter(&"destroy_platform");
            // SAFETY: filled in by SE_InitPlugin, and destroyed once, after everything that was
            // made through it.
            unsafe { destroy(self.platform.as_ptr()) };
        }
        if let Some(destroy) = self.destroy_platform_fns {
            let _call = enter(&"destroy_platform_fns");
            // SAFETY: filled in by SE_InitPlugin, and destroyed once, last.
            unsafe { destroy(self.platform_functions.as_ptr()) };
        }
    }
}

/// The facts and functions of a platform that passed all checks.
struct Platform {
    facts: PlatformFacts,
    functions: SP_PlatformFns,
    /// The functions that only RFC #257 has.
    allocators: rfc::SP_PlatformFns,
}

impl Platform {
    /// Checks parameters, platform and platform functions.
    fn check(
        initialised: &Initialised,
        layout: &'static Layout,
        report: &mut Report,
    ) -> Option<Self> {
        let parameters = initialised.parameters();
        check_version(parameters, report);
        let platform_view = view(&initialised.platform, layout, "SP_Platform")?;
        let facts = platform_facts(platform_view, layout.family, report);
        let functions_view = view(&initialised.functions, layout, "SP_PlatformFns")?;
        let functions = platform_functions(functions_view);
        let allocators = rfc_platform_functions(functions_view);
        requirements::platform(&functions, &allocators, parameters, layout, report);
        for (memory, name) in
            [(&initialised.platform, "SP_Platform"), (&initialised.functions, "SP_PlatformFns")]
        {
            if let Some(structure) = layout.structure(name) {
                warn_of_oddities(memory, structure, report);
            }
        }
        let mut facts = facts.filter(|_| report.accepted())?;
        // The RFC's allocator for the default strategy, which is best fit with coalescing.
        facts.use_bfc_allocator |= allocators.create_allocator.is_some();
        Some(Self { facts, functions, allocators })
    }
}

/// Records the version that the plug-in wrote, and refuses a MAJOR other than ours.
fn check_version(parameters: StructView<'_>, report: &mut Report) {
    let version = ["major_version", "minor_version", "patch_version"]
        .map(|field| parameters.scalar::<i32>(field).unwrap_or_default());
    report.version = Some(version);
    if version[0] != SE_MAJOR {
        report.refuse(
            "SE_PlatformRegistrationParams",
            "major_version",
            format!("{}", version[0]),
            format!("{SE_MAJOR}"),
            "another MAJOR is another, incompatible API: use a plug-in built for MAJOR 0",
        );
    }
}
