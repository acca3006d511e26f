//! The macro that defines functions of the C API.

use serdes_abi::pjrt::args::{Arguments, PJRT_Error};

/// A function of the table: its name in C, and its address.
pub(super) type Entry = (&'static str, *const ());

/// Returns the entry of a function, which the type of its arguments identifies.
pub(super) fn entry<A: Arguments>(
    function: unsafe extern "C" fn(*mut A) -> *mut PJRT_Error,
) -> Entry {
    (A::FUNCTION, function as *const ())
}

/// Like [`entry`], for a function without a return value.
pub(super) fn silent_entry<A: Arguments>(function: unsafe extern "C" fn(*mut A)) -> Entry {
    (A::FUNCTION, function as *const ())
}

/// Defines functions of the C API: `name<P>(STRUCT: arguments, field: kind::<P>) { body }`. The
/// optional field is a handle, and the body gets the object behind it, of a kind in `handles`. The
/// function `entries` lists all of them.
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident $(<$plugin:ident>)? ($type:ident: $arguments:ident $(, $field:ident: $kind:ident $(::<$of:ident>)?)?) { $($body:tt)* })*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// `raw` is NULL or the call's own arguments, and the objects in them are as the C API
            /// says: handles are NULL or live handles of this plug-in and of their kind, and memory
            /// exists.
            unsafe extern "C" fn $name $(<$plugin: $crate::pjrt::Plugin>)? (raw: *mut $type) -> *mut PJRT_Error {
                let body = |$arguments: &mut $type| -> Result<()> {
                    $(
                        // SAFETY: the caller's promise.
                        let $field = unsafe { super::handles::$kind $(::<$of>)? ($arguments.$field) }?;
                    )?
                    $($body)*
                    Ok(())
                };
                // SAFETY: the caller's promise.
                unsafe { super::arguments::call(raw, body) }
            }
        )*

        /// Returns the functions above, for the table of a plug-in.
        #[allow(clippy::extra_unused_type_parameters, reason = "some tables are the same for every plug-in")]
        pub(super) fn entries<P: $crate::pjrt::Plugin>() -> Vec<super::calls::Entry> {
            vec![$(super::calls::entry($name $(::<$plugin>)?)),*]
        }
    };
}
