//! The C side: every function of the table, and how handles, arguments, errors and values cross.
//!
//! What a host promises is the C API: arguments that are the call's own, handles of this plug-in
//! that are alive, memory where it says that there is some. All that does not follow from it is
//! checked.

/// Functions of the C API: `name<P>(STRUCT: arguments, field: kind::<P>) { what it does }`. The field,
/// if there is one, is what is behind its handle, of a kind in `handles`.
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident $(<$plugin:ident>)? ($type:ident: $arguments:ident $(, $field:ident: $kind:ident $(::<$of:ident>)?)?) { $($body:tt)* })*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// `raw` is NULL or the call's own arguments, and what they name is as the C API says:
        /// handles are NULL or alive and of this plug-in, of their kind, and memory is there.
        pub(super) unsafe extern "C" fn $name $(<$plugin: $crate::pjrt::Plugin>)? (raw: *mut $type) -> *mut PJRT_Error {
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
    )*};
}

mod arguments;
mod arrays;
mod clients;
mod devices;
mod errors;
mod events;
mod handles;
mod layouts;
mod refusals;
mod table;
mod topologies;
mod transfers;
mod values;

pub(super) use handles::Handles;
pub use table::ApiTable;
pub(super) use values::NamedValues;

#[cfg(test)]
mod tests;
