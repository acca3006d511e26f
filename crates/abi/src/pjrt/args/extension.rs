//! Functions of extensions, and the macro that defines their arguments, as in 0.114 to 0.117, the
//! only minors in which the structs of extensions were measured.

/// The argument struct of an extension's function.
///
/// # Safety
/// The type is `repr(C)` and begins with its size as `usize`; any bytes are a value of it.
pub unsafe trait ExtensionArguments: Copy {
    /// The name of the function in C.
    const FUNCTION: &'static &'static str;
    /// The number of the extension.
    const EXTENSION: i32;
    /// The offset of the function's pointer in the extension, in bytes.
    const OFFSET: usize;

    /// Creates a struct with its size set and everything else zero.
    fn new() -> Self;
}

/// The form is `STRUCT of FUNCTION at OFFSET, SIZE { field: type, … }`, without the two fields with
/// which each struct begins.
macro_rules! extension_arguments {
    ($extension:literal: $($name:ident of $function:literal at $offset:literal, $size:literal { $($field:ident: $type:ty,)* })*) => {
        $(
            #[doc = concat!("Arguments of `", $function, "`.")]
            #[repr(C)]
            #[derive(Clone, Copy, Debug)]
            pub struct $name {
                /// The size of the struct that the caller declares, in bytes.
                pub struct_size: usize,
                /// NULL, or a chain of extensions.
                pub extension_start: *mut c_void,
                $(
                    #[doc = concat!("`", stringify!($field), "`.")]
                    pub $field: $type,
                )*
            }

            #[cfg(target_pointer_width = "64")]
            const _: () = assert!(size_of::<$name>() == $size && align_of::<$name>() == 8);

            // SAFETY: the type is `repr(C)` and begins with the two fields above; every field is a
            // number or a pointer, for which all bytes are values.
            unsafe impl ExtensionArguments for $name {
                const FUNCTION: &'static &'static str = &$function;
                const EXTENSION: i32 = $extension;
                const OFFSET: usize = $offset;

                fn new() -> Self {
                    // SAFETY: zero is a value of every number and pointer.
                    let zero: Self = unsafe { core::mem::zeroed() };
                    Self { struct_size: size_of::<Self>(), ..zero }
                }
            }
        )*
    };
}
