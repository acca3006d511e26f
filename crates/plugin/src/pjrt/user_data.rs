//! Data that a framework attaches to a memory, by the address of a key.

use std::{
    collections::HashMap,
    ffi::c_void,
    sync::{Mutex, PoisonError},
};

/// Data of a framework, together with its destructor.
#[derive(Debug)]
struct Kept {
    data: *mut c_void,
    destroy: Option<unsafe extern "C" fn(*mut c_void)>,
}

// SAFETY: the framework permits any thread to destroy the data; it is not read here.
unsafe impl Send for Kept {}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(destroy) = self.destroy {
            // SAFETY: the framework passed this function for this data, to be called once.
            unsafe { destroy(self.data) };
        }
    }
}

/// The data that frameworks attach to one object.
#[derive(Debug, Default)]
pub(super) struct UserData(Mutex<HashMap<usize, Kept>>);

impl UserData {
    /// Returns the data that is attached for the key, or NULL.
    pub(super) fn get(&self, key: *const c_void) -> *mut c_void {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(&key.addr()).map_or(std::ptr::null_mut(), |kept| kept.data)
    }

    /// Attaches data for a key and replaces the earlier data; NULL removes it.
    pub(super) fn set(
        &self,
        key: *const c_void,
        data: *mut c_void,
        destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    ) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = if data.is_null() {
            all.remove(&key.addr())
        } else {
            all.insert(key.addr(), Kept { data, destroy })
        };
        drop(all);
        // Dropped outside the lock: the framework's destructor runs now, and may look up other
        // data.
        drop(before);
    }
}
