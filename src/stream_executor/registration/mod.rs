//! Registering a plug-in: `SE_InitPlugin`, and the checks of what it filled in.
//!
//! The order is TensorFlow's: the parameters, the platform, its functions, the device functions, the executor. Everything that is wrong
//! in one step is reported together; the next step is only taken if nothing was. What the plug-in made until then is destroyed again.

mod facts;
mod initialise;

use serdes_abi::{
    Family, Layout, SE_CreateDeviceFnsParams, SE_CreateStreamExecutorParams, SE_MAJOR,
    SE_PlatformRegistrationParams, SP_DeviceFns, SP_Platform, SP_PlatformFns, SP_StreamExecutor,
    SP_TimerFns, StructLayout, TENSORFLOW_2_14, TF_Status,
};

use super::allocation::Allocation;
use super::block::{BLOCK_BYTES, Block, View};
use super::call::enter;
use super::detect::{self, LayoutChoice};
use super::error::{Error, StatusError};
use super::report::Report;
use super::requirements;
use super::status::Status;
use super::table::{self, PlatformTable};
pub(crate) use facts::bounded_string;
use facts::{PlatformFacts, platform_facts};
use initialise::{Initialised, initialise};

/// The size of SP_StreamExecutor in TensorFlow 2.5 and 2.6, the only one of which a function means something else in a later header.
const TENSORFLOW_2_5_EXECUTOR: usize = 264;

/// `SE_InitPlugin` of a library, or of the embedded plug-in.
pub(crate) type Entry<'a> = &'a dyn Fn(*mut SE_PlatformRegistrationParams, *mut TF_Status);

/// Everything that a registered plug-in filled in. Destroyed in the order in which TensorFlow would.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) layout: &'static Layout,
    pub(crate) platform: Block,
    platform_functions: Block,
    destroy_platform: Option<unsafe extern "C" fn(*mut SP_Platform)>,
    destroy_platform_fns: Option<unsafe extern "C" fn(*mut SP_PlatformFns)>,
    pub(crate) table: PlatformTable,
    pub(crate) facts: PlatformFacts,
    device_functions: Option<Block>,
    pub(crate) devices: SP_DeviceFns,
    executor_block: Option<Block>,
    pub(crate) executor: SP_StreamExecutor,
    timer_functions: Option<Block>,
    pub(crate) timers: SP_TimerFns,
    /// Why there are no timer functions, if the plug-in reported an error.
    pub(crate) timers_error: Option<StatusError>,
    pub(crate) allocation: Allocation,
}

// SAFETY: after registration the blocks and tables are only read; the plug-in's functions may be called by any thread, as the C API is used
// by hosts with many threads.
unsafe impl Send for Registration {}
// SAFETY: see above.
unsafe impl Sync for Registration {}

impl Registration {
    /// Calls `entry` and checks everything that it leaves. The report is complete in both cases.
    pub(crate) fn new(entry: Entry<'_>, choice: LayoutChoice, report: &mut Report) -> Option<Self> {
        let (initialised, layout) = initialise(entry, choice, report)?;
        report.set_layout(layout);
        let Some(mut registration) = Self::platform(&initialised, layout, report) else {
            initialised.destroy();
            return None;
        };
        let Initialised { platform, functions, .. } = initialised;
        registration.platform = platform;
        registration.platform_functions = functions;
        registration.create_device_functions(report);
        if report.accepted() {
            registration.create_executor(choice, report);
        }
        if report.accepted() {
            registration.allocation = Allocation::new(&registration, report);
        }
        if report.accepted() {
            requirements::executor(&registration, report);
        }
        if report.accepted() {
            registration.create_timer_functions(report);
        }
        report.accepted().then_some(registration)
    }

    /// Checks parameters, platform and platform functions.
    fn platform(
        initialised: &Initialised,
        layout: &'static Layout,
        report: &mut Report,
    ) -> Option<Self> {
        let parameters = initialised.parameters();
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
        let platform_view = table::view(&initialised.platform, layout, "SP_Platform")?;
        let facts = platform_facts(platform_view, layout.family, report);
        let functions = table::view(&initialised.functions, layout, "SP_PlatformFns")?;
        let table = PlatformTable::new(functions);
        requirements::platform(&table, parameters, layout, report);
        for (block, name) in
            [(&initialised.platform, "SP_Platform"), (&initialised.functions, "SP_PlatformFns")]
        {
            if let Some(structure) = layout.structure(name) {
                warn_of_unknown_bytes(block, structure, report);
                warn_of_deprecated_fields(block, structure, report);
            }
        }
        if !report.accepted() {
            return None;
        }
        Some(Self {
            layout,
            platform: Block::new(0),
            platform_functions: Block::new(0),
            // SAFETY: the type is that of the field.
            destroy_platform: unsafe { parameters.function("destroy_platform") },
            // SAFETY: the type is that of the field.
            destroy_platform_fns: unsafe { parameters.function("destroy_platform_fns") },
            table,
            facts: facts?,
            device_functions: None,
            devices: table::no_device_functions(),
            executor_block: None,
            executor: table::no_executor_functions(),
            timer_functions: None,
            timers: table::no_timer_functions(),
            timers_error: None,
            allocation: Allocation::Executor,
        })
    }

    fn create_device_functions(&mut self, report: &mut Report) {
        // The RFC's layout has none.
        let (Some(create), Some(structure)) =
            (self.table.functions.create_device_fns, self.layout.structure("SP_DeviceFns"))
        else {
            return;
        };
        let block = Block::new(structure.struct_size);
        let mut parameters = SE_CreateDeviceFnsParams {
            struct_size: SE_CreateDeviceFnsParams::STRUCT_SIZE,
            ext: std::ptr::null_mut(),
            device_fns: block.as_ptr(),
        };
        let mut status = Status::new();
        {
            let _call = enter(&"create_device_fns");
            // SAFETY: the platform is the one that the plug-in filled in; parameters, block and status live through the call.
            unsafe { create(self.platform.as_ptr(), &raw mut parameters, status.as_mut_ptr()) };
        }
        if refuse_status(status, "create_device_fns", report) {
            return;
        }
        check_size(&block, structure, report);
        self.devices = table::device_functions(View::new(&block, structure, block.struct_size()));
        self.device_functions = Some(block);
    }

    fn create_executor(&mut self, choice: LayoutChoice, report: &mut Report) {
        let (Some(create), Some(structure)) = (
            self.table.functions.create_stream_executor,
            self.layout.structure("SP_StreamExecutor"),
        ) else {
            return;
        };
        let block = Block::new(structure.struct_size);
        let mut parameters = SE_CreateStreamExecutorParams {
            struct_size: SE_CreateStreamExecutorParams::STRUCT_SIZE,
            ext: std::ptr::null_mut(),
            stream_executor: block.as_ptr(),
        };
        let mut status = Status::new();
        {
            let _call = enter(&"create_stream_executor");
            // SAFETY: the platform is the one that the plug-in filled in; parameters, block and status live through the call.
            unsafe { create(self.platform.as_ptr(), &raw mut parameters, status.as_mut_ptr()) };
        }
        if refuse_status(status, "create_stream_executor", report) {
            return;
        }
        check_size(&block, structure, report);
        let size = block.struct_size();
        if choice == LayoutChoice::Detect
            && self.layout.name == TENSORFLOW_2_14.name
            && report.accepted()
        {
            if size == TENSORFLOW_2_5_EXECUTOR && detect::is_longer_than_264_bytes(&block) {
                report.refuse(
                    "SP_StreamExecutor",
                    "struct_size",
                    "264, and functions beyond it",
                    "264 and functions up to it (TensorFlow 2.5 and 2.6), or 288",
                    "set struct_size from the macro of the header that the plug-in was built with, or name the layout with `--layout`",
                );
            }
            if let Some(layout) = detect::executor(self.platform.struct_size(), size) {
                self.layout = layout;
                report.set_layout(layout);
            } else {
                report.layout = None;
                report.refuse(
                    "SP_StreamExecutor",
                    "struct_size",
                    size.to_string(),
                    "264 (TensorFlow 2.5 and 2.6), 256, or 288 and more",
                    "no known header has this size: name the plug-in's layout with `--layout`",
                );
            }
        }
        if let Some(view) = table::view(&block, self.layout, "SP_StreamExecutor") {
            self.executor = table::executor_functions(view);
        }
        if report.accepted()
            && self.layout.family == Family::Released
            && size == SP_StreamExecutor::STRUCT_SIZE
            && detect::looks_like_264_bytes(&block)
        {
            report.refuse(
                "SP_StreamExecutor",
                "struct_size",
                "288, and functions only up to byte 264",
                "functions up to byte 288",
                "this looks like the layout of TensorFlow 2.5 without its size: if it is, name `--layout tensorflow-2.5`",
            );
        }
        self.executor_block = Some(block);
    }

    /// Timer functions are optional: what goes wrong here costs the timers, not the plug-in.
    fn create_timer_functions(&mut self, report: &mut Report) {
        let (Some(create), Some(structure)) =
            (self.table.functions.create_timer_fns, self.layout.structure("SP_TimerFns"))
        else {
            return;
        };
        let block = Block::new(structure.struct_size);
        let mut status = Status::new();
        {
            let _call = enter(&"create_timer_fns");
            // SAFETY: the platform is the one that the plug-in filled in; block and status live through the call.
            unsafe { create(self.platform.as_ptr(), block.as_ptr(), status.as_mut_ptr()) };
        }
        if let Err(error) = status.into_result("create_timer_fns") {
            report.warnings.push(format!("timers cannot be read: {error}"));
            if let Error::Status(error) = error {
                self.timers_error = Some(error);
            }
            return;
        }
        report.struct_sizes.push((structure.name, block.struct_size()));
        if block.struct_size() == 0 {
            report.warnings.push("SP_TimerFns.struct_size is 0: timers cannot be read".to_owned());
        }
        self.timers = table::timer_functions(View::new(&block, structure, block.struct_size()));
        if self.timers.nanoseconds.is_none() {
            report.missing_optional.push("nanoseconds");
        }
        self.timer_functions = Some(block);
    }

    /// Whether the platform wants the host's best-fit allocator over its own allocation.
    pub(crate) fn asks_for_best_fit(&self) -> bool {
        self.facts.use_bfc_allocator || self.allocation.asks_for_bfc()
    }

    /// The block of the executor's struct, if there is one.
    pub(crate) fn executor_size(&self) -> usize {
        self.executor_block.as_ref().map_or(0, Block::struct_size)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let functions = &self.table.functions;
        let platform = self.platform.as_ptr::<SP_Platform>().cast_const();
        self.allocation.destroy(platform, &self.table);
        if let (Some(block), Some(destroy)) = (&self.device_functions, functions.destroy_device_fns)
        {
            let _call = enter(&"destroy_device_fns");
            // SAFETY: filled in by the plug-in's create_device_fns, and destroyed once, before its platform.
            unsafe { destroy(platform, block.as_ptr()) };
        }
        if let (Some(block), Some(destroy)) =
            (&self.executor_block, functions.destroy_stream_executor)
        {
            let _call = enter(&"destroy_stream_executor");
            // SAFETY: filled in by the plug-in's create_stream_executor, and destroyed once, before its platform.
            unsafe { destroy(platform, block.as_ptr()) };
        }
        if let (Some(block), Some(destroy)) = (&self.timer_functions, functions.destroy_timer_fns) {
            let _call = enter(&"destroy_timer_fns");
            // SAFETY: filled in by the plug-in's create_timer_fns, and destroyed once, before its platform.
            unsafe { destroy(platform, block.as_ptr()) };
        }
        if let Some(destroy) = self.destroy_platform {
            let _call = enter(&"destroy_platform");
            // SAFETY: filled in by SE_InitPlugin, and destroyed once, after everything that was made through it.
            unsafe { destroy(self.platform.as_ptr()) };
        }
        if let Some(destroy) = self.destroy_platform_fns {
            let _call = enter(&"destroy_platform_fns");
            // SAFETY: filled in by SE_InitPlugin, and destroyed once, last.
            unsafe { destroy(self.platform_functions.as_ptr()) };
        }
    }
}

/// Warns of bytes that are set beyond what the layout knows: fields that were dropped, or that are newer. They are not looked at.
fn warn_of_unknown_bytes(block: &Block, structure: &'static StructLayout, report: &mut Report) {
    if let Some(at) = block.first_set_from(structure.size_of) {
        report.warnings.push(format!(
            "{} has a value at byte {at}, beyond the {} bytes that are known: a dropped or a newer field, ignored",
            structure.name, structure.size_of
        ));
    }
}

/// Warns of deprecated fields that the plug-in has set all the same (seed 000, "Conventions"). They are not used.
fn warn_of_deprecated_fields(block: &Block, structure: &StructLayout, report: &mut Report) {
    let size = block.struct_size();
    let deprecated = structure.fields.iter().filter(|field| field.deprecated);
    for field in deprecated.filter(|field| field.end() <= size && field.end() <= BLOCK_BYTES) {
        if (field.offset..field.end()).any(|at| block.read::<u8>(at) != 0) {
            report.warnings.push(format!(
                "{}.{} is deprecated, and the plug-in sets it: it is not used; leave it zero in the plug-in",
                structure.name, field.name
            ));
        }
    }
}

/// Records the size that a struct has, and refuses 0.
pub(crate) fn check_size(block: &Block, structure: &'static StructLayout, report: &mut Report) {
    report.struct_sizes.push((structure.name, block.struct_size()));
    warn_of_unknown_bytes(block, structure, report);
    warn_of_deprecated_fields(block, structure, report);
    if block.struct_size() == 0 {
        refuse_zero(structure, report);
    }
}

fn refuse_zero(structure: &'static StructLayout, report: &mut Report) {
    report.refuse(
        structure.name,
        "struct_size",
        "0",
        format!("{} ({})", structure.struct_size_macro, structure.struct_size),
        "set struct_size from the macro in the plug-in",
    );
}

fn refuse_call(error: &StatusError, report: &mut Report) {
    report.refuse(
        error.call,
        "",
        format!("{}: {}", error.code, error.told()),
        "status OK",
        "see the plug-in's message",
    );
}

/// Whether a call failed, in which case the report says so.
pub(crate) fn refuse_status(status: Status, call: &'static str, report: &mut Report) -> bool {
    match status.into_result(call) {
        Err(Error::Status(error)) => {
            refuse_call(&error, report);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serdes_abi::{FieldLayout, Zero};

    use super::*;

    /// A struct of a header to come, in which a field is deprecated.
    static LATER: StructLayout = StructLayout {
        name: "SP_Later",
        size_of: 32,
        align_of: 8,
        struct_size_macro: "SP_LATER_STRUCT_SIZE",
        macro_last_field: "last",
        struct_size: 32,
        fields: &[
            field("struct_size", 0, Zero::Required, false),
            field("ext", 8, Zero::NoOp, false),
            field("old", 16, Zero::NoOp, true),
            field("last", 24, Zero::NoOp, true),
        ],
    };

    const fn field(name: &'static str, offset: usize, zero: Zero, deprecated: bool) -> FieldLayout {
        FieldLayout { name, kind: "void*", offset, size: 8, zero, deprecated }
    }

    #[test]
    fn a_deprecated_field_that_a_plugin_sets_is_warned_of() {
        let block = Block::new(32);
        block.write(8, 1usize);
        let mut report = Report::default();
        warn_of_deprecated_fields(&block, &LATER, &mut report);
        assert_eq!(report.warnings, [""; 0]);
        block.write(16, 1usize << 40);
        block.write(24, 1usize);
        // The plug-in's own struct ends before the last one.
        block.write(0, 24usize);
        warn_of_deprecated_fields(&block, &LATER, &mut report);
        assert_eq!(report.warnings.len(), 1);
        assert!(report.warnings[0].starts_with("SP_Later.old is deprecated"), "{report:?}");
        assert!(report.accepted());
    }
}
