//! The form in which functions of the C API are written.

use serdes_abi::pjrt::args::{Arguments, PJRT_Error};

/// A function of the table: its name in C, and where it is.
pub(super) type Entry = (&'static str, *const ());

/// Returns the entry of a function: the type of its arguments says which one it is.
pub(super) fn entry<A: Arguments>(
    function: unsafe extern "C" fn(*mut A) -> *mut PJRT_Error,
) -> Entry {
    (A::FUNCTION, function as *const ())
}

/// Like [`entry`], for a function that answers nothing.
pub(super) fn silent_entry<A: Arguments>(function: unsafe extern "C" fn(*mut A)) -> Entry {
    (A::FUNCTION, function as *const ())
}

/// Functions of the C API: `name<P>(STRUCT: arguments, field: kind::<P>) { what it does }`. The
/// field, if there is one, is what is behind its handle, of a kind in `handles`. All of them are
/// listed by a function `entries`.
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident $(<$plugin:ident>)? ($type:ident: $arguments:ident $(, $field:ident: $kind:ident $(::<$of:ident>)?)?) { $($body:tt)* })*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// `raw` is NULL or the call's own arguments, and what they name is as the C API says:
            /// handles are NULL or alive and of this plug-in, of their kind, and memory is there.
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
