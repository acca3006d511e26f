//! The extension that returns the shardings of a program's arrays (number 19), and the arguments of
//! its functions.

use core::ffi::{c_char, c_void};

use super::*;

extension_arguments! { 19:
    PJRT_Shardings_PJRT_Executable_ParameterShardings_Args of "PJRT_Shardings_PJRT_Executable_ParameterShardings" at 24, 48 {
        executable: *mut PJRT_Executable,
        num_parameters: usize,
        shardings: *const *const c_char,
        sharding_sizes: *const usize,
    }
    PJRT_Shardings_PJRT_Executable_OutputShardings_Args of "PJRT_Shardings_PJRT_Executable_OutputShardings" at 32, 48 {
        executable: *mut PJRT_Executable,
        num_outputs: usize,
        shardings: *const *const c_char,
        sharding_sizes: *const usize,
    }
}
