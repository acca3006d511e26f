//! Callbacks of a running program on the host: to send to it, and to receive from it.

use core::ffi::{c_char, c_int, c_void};

use super::*;

/// A piece of data with its deleter, which the receiver calls once.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PJRT_Chunk {
    /// The data.
    pub data: *mut c_void,
    /// Its length in bytes.
    pub size: usize,
    /// Frees it.
    pub deleter: Option<unsafe extern "C" fn(data: *mut c_void, deleter_arg: *mut c_void)>,
    /// The second argument of the deleter, besides the data.
    pub deleter_arg: *mut c_void,
}

described!(PJRT_Chunk {
    data: *mut c_void,
    size: usize,
    deleter: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    deleter_arg: *mut c_void,
});

/// Makes an error of the plug-in's out of a code and a message, for a callback to answer.
pub type PJRT_CallbackError = unsafe extern "C" fn(
    code: c_int,
    message: *const c_char,
    message_size: usize,
) -> *mut PJRT_Error;

/// The callback for each piece that a program sends: the piece, which is handed over, the length of
/// everything, and whether it is the last.
pub type PJRT_SendCallback = unsafe extern "C" fn(
    chunk: *mut PJRT_Chunk,
    callback_error: *mut Option<PJRT_CallbackError>,
    total_size_in_bytes: usize,
    done: bool,
    user_arg: *mut c_void,
) -> *mut PJRT_Error;

/// The callback for a program that receives: it gets a stream, which is handed over.
pub type PJRT_RecvCallback =
    unsafe extern "C" fn(stream: *mut PJRT_CopyToDeviceStream, user_arg: *mut c_void);

/// The callback of one channel of a program that sends. It stands in arrays.
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

/// The callback of one channel of a program that receives. It stands in arrays.
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
