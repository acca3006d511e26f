//! The extension through which a framework queries the layouts of arrays on a device, which always
//! follow the order of the dimensions.

use std::ptr;

use serdes_abi::pjrt::args::*;

use super::{arguments::call_extension, handles, pointers, values};
use crate::{
    Result, Status,
    panic::contain_drop,
    pjrt::{Plugin, Shape},
};

/// The number of the extension.
const LAYOUTS: i32 = 4;

/// The memory layout of the extension.
#[repr(C)]
pub(super) struct Extension {
    struct_size: usize,
    number: i32,
    next: *const Self,
    functions: [*const (); 7],
}

// SAFETY: it contains addresses of functions, and NULL.
unsafe impl Send for Extension {}
// SAFETY: as above.
unsafe impl Sync for Extension {}

/// Returns the address of a function.
macro_rules! address {
    ($function:expr) => {
        $function as unsafe extern "C" fn(_) -> _ as *const ()
    };
}

impl Extension {
    /// Creates the extension of a plug-in.
    pub(super) fn new<P: Plugin>() -> Self {
        Self {
            struct_size: size_of::<Self>(),
            number: LAYOUTS,
            next: ptr::null(),
            functions: [
                address!(destroy),
                address!(serialize),
                address!(of_client::<P>),
                address!(of_buffer::<P>),
                address!(of_topology::<P>),
                address!(of_outputs::<P>),
                address!(of_parameters::<P>),
            ],
        }
    }
}

/// Returns the text of a layout in XLA's notation: `{1,0}`, with an element's bits if several share
/// a byte.
fn text(shape: &Shape) -> String {
    let order: Vec<String> = shape.minor_to_major().iter().map(i64::to_string).collect();
    let order = order.join(",");
    match shape.element_type() {
        packed if packed.is_packed() => format!("{{{order}:E({})}}", packed.device_bits()),
        _ => format!("{{{order}}}"),
    }
}

/// Defines functions of the extension, like `calls` in the module above.
macro_rules! extension_calls {
    ($($(#[$doc:meta])* $name:ident $(<$plugin:ident>)? ($type:ident: $arguments:ident) { $($body:tt)* })*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// `raw` is NULL or the call's own arguments, and the objects in them are as the C API
        /// says.
        unsafe extern "C" fn $name $(<$plugin: Plugin>)? (raw: *mut $type) -> *mut PJRT_Error {
            let body = |$arguments: &mut $type| -> Result<()> {
                $($body)*
                Ok(())
            };
            // SAFETY: the caller's promise.
            unsafe { call_extension(raw, body) }
        }
    )*};
}

extension_calls! {
    destroy(PJRT_Layouts_MemoryLayout_Destroy_Args: arguments) {
        // SAFETY: the host destroys a layout once.
        drop(unsafe { pointers::take::<Shape, _>(arguments.layout, "a layout") }?);
    }

    serialize(PJRT_Layouts_MemoryLayout_Serialize_Args: arguments) {
        // SAFETY: NULL, or a layout of this plug-in.
        let shape = unsafe { arguments.layout.cast::<Shape>().as_ref() };
        let shape = shape.ok_or_else(|| Status::invalid_argument("found NULL, expected a layout"))?;
        let text = Box::new(text(shape));
        arguments.serialized_bytes = text.as_ptr().cast();
        arguments.serialized_bytes_size = text.len();
        arguments.serialized_layout = Box::into_raw(text).cast();
        arguments.serialized_layout_deleter = Some(free);
    }

    of_client<P>(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args: arguments) {
        // SAFETY: the caller's promise.
        unsafe { handles::client::<P>(arguments.client) }?;
        // SAFETY: the caller's promise.
        let shape = unsafe { values::shape(arguments.r#type, arguments.dims, arguments.num_dims) }?;
        arguments.layout = pointers::give(shape);
    }

    of_buffer<P>(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args: arguments) {
        // SAFETY: the caller's promise.
        let array = unsafe { handles::array::<P>(arguments.buffer) }?;
        arguments.layout = pointers::give(array.shape().clone());
    }

    of_topology<P>(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args: arguments) {
        // SAFETY: the caller's promise.
        unsafe { handles::topology::<P>(arguments.topology_description) }?;
        // SAFETY: the caller's promise.
        let shape = unsafe { values::shape(arguments.r#type, arguments.dims, arguments.num_dims) }?;
        arguments.layout = pointers::give(shape);
    }

    /// Returns the layouts of the outputs, which belong to the program.
    of_outputs<P>(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args: arguments) {
        // SAFETY: the caller's promise.
        let executable = unsafe { handles::executable::<P>(arguments.executable) }?;
        let layouts = executable.outputs.layouts.all();
        (arguments.layouts, arguments.num_outputs) = (layouts.as_ptr(), layouts.len());
    }

    /// Returns the layouts of the parameters, which belong to the program.
    of_parameters<P>(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args: arguments) {
        // SAFETY: the caller's promise.
        let executable = unsafe { handles::executable::<P>(arguments.executable) }?;
        let layouts = executable.parameters.layouts.all();
        (arguments.layouts, arguments.num_parameters) = (layouts.as_ptr(), layouts.len());
    }
}

/// Frees the text that [`serialize`] handed out.
///
/// # Safety
/// [`serialize`] handed it out, and it is freed once.
unsafe extern "C" fn free(raw: *mut PJRT_Layouts_SerializedLayout) {
    // SAFETY: the caller's promise.
    contain_drop(unsafe { pointers::take::<String, _>(raw, "a layout's text") });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pjrt::ElementType;

    #[test]
    fn a_layout_is_written_as_xla_writes_it() {
        let shape = |element_type, rank| Shape::new(element_type, vec![2; rank]).unwrap();
        assert_eq!(text(&shape(ElementType::F32, 3)), "{2,1,0}");
        assert_eq!(text(&shape(ElementType::F32, 0)), "{}");
        assert_eq!(text(&shape(ElementType::S4, 1)), "{0:E(4)}");
    }

    #[test]
    fn the_extension_lies_as_frameworks_read_it() {
        assert_eq!(size_of::<Extension>(), 80);
        let offset = std::mem::offset_of!(Extension, functions);
        let places = [
            PJRT_Layouts_MemoryLayout_Destroy_Args::OFFSET,
            PJRT_Layouts_MemoryLayout_Serialize_Args::OFFSET,
            PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args::OFFSET,
            PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args::OFFSET,
            PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args::OFFSET,
            PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args::OFFSET,
            PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args::OFFSET,
        ];
        assert!(places.into_iter().eq((0..7).map(|index| offset + index * 8)));
    }
}
