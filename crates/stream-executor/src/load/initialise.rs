//! Calls `SE_InitPlugin`, and detects the layout of its result.

use serdes_abi::{
    Layout, SE_MAJOR, SE_MINOR, SE_PATCH, SE_PlatformRegistrationParams, SP_Platform,
    SP_PlatformFns, TENSORFLOW_2_14, TF_Code, TF_Status,
};

use super::{
    detect::{self, Detected, LayoutChoice},
    struct_checks::{refuse_call, refuse_zero},
};
use crate::{
    border::{Status, StructMemory, StructView, enter},
    error::{Error, StatusError},
    report::Report,
};

/// `SE_InitPlugin` of a library, or of the embedded plug-in.
pub(crate) type InitPlugin<'a> = &'a dyn Fn(*mut SE_PlatformRegistrationParams, *mut TF_Status);

/// Structs that `SE_InitPlugin` filled in.
pub(super) struct Initialised {
    pub(super) parameters: StructMemory,
    pub(super) platform: StructMemory,
    pub(super) functions: StructMemory,
}

impl Initialised {
    /// Calls `SE_InitPlugin` with new blocks and these sizes preset.
    fn new(entry: InitPlugin<'_>, platform: usize, functions: usize) -> Result<Self, StatusError> {
        let parameters = StructMemory::new(SE_PlatformRegistrationParams::STRUCT_SIZE);
        let platform = StructMemory::new(platform);
        let functions = StructMemory::new(functions);
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
                code: TF_Code::UNKNOWN,
                message: other.to_string(),
            }),
        }
    }

    pub(super) fn parameters(&self) -> StructView<'_> {
        let layout = const { &SE_PlatformRegistrationParams::LAYOUT };
        StructView::new(&self.parameters, layout, self.parameters.struct_size())
    }

    /// Destroys the structs that `SE_InitPlugin` filled.
    pub(super) fn destroy(&self) {
        let parameters = self.parameters();
        // SAFETY: the type is that of the field.
        let destroy: Option<unsafe extern "C" fn(*mut SP_Platform)> =
            unsafe { parameters.function("destroy_platform") };
        if let Some(destroy) = destroy {
            let _call = enter(&"destroy_platform");
            // SAFETY: the platform was filled in by this plug-in's SE_InitPlugin and is destroyed
            // once.
            unsafe { destroy(self.platform.as_ptr()) };
        }
        // SAFETY: the type is that of the field.
        let destroy: Option<unsafe extern "C" fn(*mut SP_PlatformFns)> =
            unsafe { parameters.function("destroy_platform_fns") };
        if let Some(destroy) = destroy {
            let _call = enter(&"destroy_platform_fns");
            // SAFETY: the functions were filled in by this plug-in's SE_InitPlugin and are
            // destroyed once.
            unsafe { destroy(self.functions.as_ptr()) };
        }
    }
}

/// Calls `SE_InitPlugin` and detects the layout. On refusal everything is destroyed, and the report
/// has the reason.
pub(super) fn initialise(
    entry: InitPlugin<'_>,
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

/// Returns the layout after `SE_InitPlugin`; if its result is not sufficient, after a second call.
fn detect_layout(
    entry: InitPlugin<'_>,
    mut initialised: Initialised,
    report: &mut Report,
) -> Option<(Initialised, &'static Layout)> {
    let mut detected = detect::platform(&initialised.platform, &initialised.functions, true);
    if detected == Detected::Ambiguous {
        // A plug-in that writes its sizes overwrites any preset, so the second call has the presets
        // of a newer host.
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
        // The size of SP_PlatformFns decides, so the plug-in itself must have written it. The size
        // 96 is that of RFC #257 and of a newer header, so the plug-in must have written the other
        // size, too.
        // #257's as much as a newer header's, so that the other size must be, too.
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
            report.layout_may_be_named = true;
            report.refuse(
                "SP_PlatformFns",
                "struct_size",
                found,
                "the sizes and functions of one known layout",
                "name the plug-in's layout, if you know it",
            );
            initialised.destroy();
            None
        }
    }
}
