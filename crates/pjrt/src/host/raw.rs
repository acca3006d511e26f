//! The plug-in's own pointers, for the conformance suite.

use serdes_abi::pjrt::args::{PJRT_Buffer, PJRT_Client};

use super::{buffer::Buffer, client::Client};

impl Client {
    pub(crate) fn raw(&self) -> *mut PJRT_Client {
        self.handle().raw()
    }
}

impl Buffer {
    pub(crate) fn raw(&self) -> *mut PJRT_Buffer {
        self.handle().raw()
    }
}
