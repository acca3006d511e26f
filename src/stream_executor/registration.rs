//! Registering a plug-in: `SE_InitPlugin`, and the checks of what it filled in.
//!
//! The order is TensorFlow's: the parameters, the platform, its functions, the device functions, the executor. Everything that is wrong
//! in one step is reported together; the next step is only taken if nothing was. What the plug-in made until then is destroyed again.

use std::ffi::{CStr, CString, c_char};

use serdes_abi::{
    Family, Layout, SE_CreateDeviceFnsParams, SE_CreateStreamExecutorParams, SE_MAJOR, SE_MINOR,
    SE_PATCH, SE_PlatformRegistrationParams, SP_DeviceFns, SP_Platform, SP_PlatformFns,
    SP_StreamExecutor, SP_TimerFns, StructLayout, TENSORFLOW_2_14, TF_Status,
};

use super::allocation::Allocation;
use super::block::{Block, View};
use super::call::enter;
use super::detect::{self, Detected, LayoutChoice};
use super::error::{Error, StatusError};
use super::report::Report;
use super::requirements;
use super::status::Status;
use super::table::{self, PlatformTable};

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

/// What SP_Platform says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlatformFacts {
    pub(crate) name: String,
    pub(crate) device_type: String,
    pub(crate) supports_unified_memory: bool,
    pub(crate) use_bfc_allocator: bool,
    pub(crate) force_memory_growth: bool,
    /// The number of devices where the platform itself says it.
    pub(crate) visible_device_count: Option<usize>,
}

/// What `SE_InitPlugin` left.
struct Initialised {
    parameters: Block,
    platform: Block,
    functions: Block,
}

impl Initialised {
    /// Calls `SE_InitPlugin` with fresh blocks and these sizes preset.
    fn new(entry: Entry<'_>, platform: usize, functions: usize) -> Result<Self, StatusError> {
        let parameters = Block::new(SE_PlatformRegistrationParams::STRUCT_SIZE);
        let platform = Block::new(platform);
        let functions = Block::new(functions);
        let at = |field: &str| {
            SE_PlatformRegistrationParams::LAYOUT.field(field).map_or(0, |field| field.offset)
        };
        parameters.write(at("major_version"), SE_MAJOR);
        parameters.write(at("minor_version"), SE_MINOR);
        parameters.write(at("patch_version"), SE_PATCH);
        parameters.write(at("platform"), platform.as_ptr::<SP_Platform>());
        parameters.write(at("platform_fns"), functions.as_ptr::<SP_PlatformFns>());
        let mut status = Status::new();
        {
            let _call = enter(&"SE_InitPlugin");
            entry(parameters.as_ptr(), status.as_mut_ptr());
        }
        match status.into_result("SE_InitPlugin") {
            Ok(()) => Ok(Self { parameters, platform, functions }),
            Err(Error::Status(error)) => Err(error),
            Err(other) => Err(StatusError {
                call: "SE_InitPlugin",
                code: serdes_abi::TF_Code::UNKNOWN,
                message: other.to_string(),
            }),
        }
    }

    fn parameters(&self) -> View<'_> {
        let layout = const { &SE_PlatformRegistrationParams::LAYOUT };
        View::new(&self.parameters, layout, self.parameters.struct_size())
    }

    /// Destroys what `SE_InitPlugin` made.
    fn destroy(&self) {
        let parameters = self.parameters();
        // SAFETY: the type is that of the field.
        let destroy: Option<unsafe extern "C" fn(*mut SP_Platform)> =
            unsafe { parameters.function("destroy_platform") };
        if let Some(destroy) = destroy {
            let _call = enter(&"destroy_platform");
            // SAFETY: the platform was filled in by this plug-in's SE_InitPlugin and is destroyed once.
            unsafe { destroy(self.platform.as_ptr()) };
        }
        // SAFETY: the type is that of the field.
        let destroy: Option<unsafe extern "C" fn(*mut SP_PlatformFns)> =
            unsafe { parameters.function("destroy_platform_fns") };
        if let Some(destroy) = destroy {
            let _call = enter(&"destroy_platform_fns");
            // SAFETY: the functions were filled in by this plug-in's SE_InitPlugin and are destroyed once.
            unsafe { destroy(self.functions.as_ptr()) };
        }
    }
}

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
        let facts = platform_facts(platform_view, report);
        let functions = table::view(&initialised.functions, layout, "SP_PlatformFns")?;
        let table = PlatformTable::new(functions);
        requirements::platform(&table, parameters, layout, report);
        for (block, name) in
            [(&initialised.platform, "SP_Platform"), (&initialised.functions, "SP_PlatformFns")]
        {
            if let Some(structure) = layout.structure(name) {
                warn_of_unknown_bytes(block, structure, report);
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

/// Calls `SE_InitPlugin` and tells the layout. On refusal everything is destroyed, and the report says why.
fn initialise(
    entry: Entry<'_>,
    choice: LayoutChoice,
    report: &mut Report,
) -> Option<(Initialised, &'static Layout)> {
    let preset = match choice {
        LayoutChoice::Detect => &TENSORFLOW_2_14,
        LayoutChoice::Named(layout) => layout,
    };
    let size = |name: &str| preset.structure(name).map_or(0, |structure| structure.struct_size);
    let (platform, functions) = (size("SP_Platform"), size("SP_PlatformFns"));
    let initialised = match Initialised::new(entry, platform, functions) {
        Ok(initialised) => initialised,
        Err(error) => {
            refuse_call(&error, report);
            return None;
        }
    };
    let sizes = [
        ("SE_PlatformRegistrationParams", initialised.parameters.struct_size()),
        ("SP_Platform", initialised.platform.struct_size()),
        ("SP_PlatformFns", initialised.functions.struct_size()),
    ];
    report.struct_sizes.extend(sizes);
    for (structure, size) in sizes {
        if size == 0
            && let Some(structure) = preset.structure(structure)
        {
            refuse_zero(structure, report);
        }
    }
    if !report.accepted() {
        initialised.destroy();
        return None;
    }
    let LayoutChoice::Named(layout) = choice else {
        return detect_layout(entry, initialised, report);
    };
    Some((initialised, layout))
}

/// The layout by what `SE_InitPlugin` left; where that is not enough, by what it leaves when it is asked again.
fn detect_layout(
    entry: Entry<'_>,
    mut initialised: Initialised,
    report: &mut Report,
) -> Option<(Initialised, &'static Layout)> {
    let mut detected = detect::platform(&initialised.platform, &initialised.functions, true);
    if detected == Detected::Ambiguous {
        // A plug-in that writes its sizes writes them over any preset: ask again as a newer host would.
        initialised.destroy();
        let newer = 64;
        let (platform, functions) =
            (SP_Platform::STRUCT_SIZE + newer, SP_PlatformFns::STRUCT_SIZE + newer);
        initialised = match Initialised::new(entry, platform, functions) {
            Ok(initialised) => initialised,
            Err(error) => {
                refuse_call(&error, report);
                return None;
            }
        };
        let left = (initialised.platform.struct_size(), initialised.functions.struct_size());
        // The size of SP_PlatformFns decides, so it must be the plug-in's own word; and 96 is RFC #257's as much as a newer header's,
        // so that the other size must be, too.
        let unwritten =
            left.1 == functions || (left.0 == platform && left.1 != SP_PlatformFns::STRUCT_SIZE);
        detected = if unwritten {
            Detected::Unknown {
                found: "sizes that the plug-in left as they were, and functions at the slots of RFC #257 or TensorFlow 2.4".to_owned(),
            }
        } else {
            detect::platform(&initialised.platform, &initialised.functions, false)
        };
    }
    match detected {
        Detected::Layout(layout) => Some((initialised, layout)),
        Detected::Ambiguous => None,
        Detected::Unknown { found } => {
            report.refuse(
                "SP_PlatformFns",
                "struct_size",
                found,
                "the sizes and functions of one known layout",
                "name the plug-in's layout with `--layout`, if you know it",
            );
            initialised.destroy();
            None
        }
    }
}

/// Reads and checks what SP_Platform says; `None` where it is refused.
fn platform_facts(view: View<'_>, report: &mut Report) -> Option<PlatformFacts> {
    let name = registered_name(view, "name", report);
    let device_type = registered_name(view, "type", report);
    report.platform.clone_from(&name);
    report.device_type.clone_from(&device_type);
    let flag = |field: &str| view.scalar::<u8>(field).is_some_and(|value| value != 0);
    Some(PlatformFacts {
        name: name?,
        device_type: device_type?,
        supports_unified_memory: flag("supports_unified_memory"),
        use_bfc_allocator: flag("use_bfc_allocator"),
        force_memory_growth: flag("force_memory_growth"),
        visible_device_count: view.scalar::<usize>("visible_device_count"),
    })
}

/// The longest platform name or type that is read, in bytes.
const LONGEST_NAME: usize = 4096;

/// A name in SP_Platform, checked against the pattern that TensorFlow has for it.
fn registered_name(view: View<'_>, field: &'static str, report: &mut Report) -> Option<String> {
    let pattern = "a name that matches [A-Z][A-Z_]*";
    let pointer = view.scalar::<*const c_char>(field).unwrap_or(std::ptr::null());
    // SAFETY: the plug-in's own string, which it keeps until destroy_platform.
    let Some(name) = (unsafe { bounded_string(pointer, LONGEST_NAME) }) else {
        report.refuse("SP_Platform", field, "NULL", pattern, "set it in SE_InitPlugin");
        return None;
    };
    let name = name.to_string_lossy().into_owned();
    let mut characters = name.chars();
    let valid = characters.next().is_some_and(|first| first.is_ascii_uppercase())
        && characters.all(|rest| rest.is_ascii_uppercase() || rest == '_');
    if !valid {
        report.refuse(
            "SP_Platform",
            field,
            format!("`{}`", name.escape_debug()),
            pattern,
            "use upper-case letters and underscores only",
        );
    }
    Some(name)
}

/// The string at `pointer`, cut after `longest` bytes; `None` for NULL.
///
/// # Safety
/// `pointer` is NULL or points to a NUL-terminated string.
pub(crate) unsafe fn bounded_string(pointer: *const c_char, longest: usize) -> Option<CString> {
    if pointer.is_null() {
        return None;
    }
    let mut bytes = Vec::new();
    for index in 0..longest {
        // SAFETY: all bytes before this one were not NUL, so that this one is still in the string.
        let byte = unsafe { pointer.add(index).read() }.cast_unsigned();
        bytes.push(byte);
        if byte == 0 {
            break;
        }
    }
    if bytes.last() != Some(&0) {
        bytes.push(0);
    }
    CStr::from_bytes_until_nul(&bytes).ok().map(CStr::to_owned)
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

/// Records the size that a struct has, and refuses 0.
pub(crate) fn check_size(block: &Block, structure: &'static StructLayout, report: &mut Report) {
    report.struct_sizes.push((structure.name, block.struct_size()));
    warn_of_unknown_bytes(block, structure, report);
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
        format!("{}: {}", error.code, error.message),
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
