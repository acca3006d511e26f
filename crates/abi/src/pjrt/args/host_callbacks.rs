//! Callbacks on the host for a running program: for its sends and for its receives.

use core::ffi::{c_char, c_int, c_void};

use super::*;

/// A piece of data with its deleter, which the receiver calls once.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PJRT_Chunk {
    /// The data.
    pub data: *mut c_void,
    /// The size of the data in bytes.
    pub size: usize,
    /// Frees the data.
    pub deleter: Option<unsafe extern "C" fn(data: *mut c_void, deleter_arg: *mut c_void)>,
    /// The second argument of the deleter, after the data.
    pub deleter_arg: *mut c_void,
}

described!(PJRT_Chunk {
    data: *mut c_void,
    size: usize,
    deleter: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    deleter_arg: *mut c_void,
});

/// Creates an error of the plug-in from a code and a message, for a callback to return.
pub type PJRT_CallbackError = unsafe extern "C" fn(
    code: c_int,
    message: *const c_char,
    message_size: usize,
) -> *mut PJRT_Error;

/// The callback for each piece that a program sends. It gets ownership of the piece, the total
/// size, and a flag for the last piece.
pub type PJRT_SendCallback = unsafe extern "C" fn(
    chunk: *mut PJRT_Chunk,
    callback_error: *mut Option<PJRT_CallbackError>,
    total_size_in_bytes: usize,
    done: bool,
    user_arg: *mut c_void,
) -> *mut PJRT_Error;

/// The callback for a program that receives. It gets ownership of a stream.
pub type PJRT_RecvCallback =
    unsafe extern "C" fn(stream: *mut PJRT_CopyToDeviceStream, user_arg: *mut c_void);

/// The callback of one channel on which a program sends; an element of arrays.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PJRT_SendCallbackInfo {
    /// The channel.
    pub channel_id: i64,
    /// The argument of the callback.
    pub user_arg: *mut c_void,
    /// The callback.
    pub send_callback: Option<PJRT_SendCallback>,
}

described!(PJRT_SendCallbackInfo {
    channel_id: i64,
    user_arg: *mut c_void,
    send_callback: Option<PJRT_SendCallback>,
});

/// The callback of one channel on which a program receives; an element of arrays.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PJRT_RecvCallbackInfo {
    /// The channel.
    pub channel_id: i64,
    /// The argument of the callback.
    pub user_arg: *mut c_void,
    /// The callback.
    pub recv_callback: Option<PJRT_RecvCallback>,
}

described!(PJRT_RecvCallbackInfo {
    channel_id: i64,
    user_arg: *mut c_void,
    recv_callback: Option<PJRT_RecvCallback>,
});
