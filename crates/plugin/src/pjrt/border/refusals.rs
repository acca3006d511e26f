//! Functions for the slots of the table that a plug-in does not implement: each returns
//! UNIMPLEMENTED with its name.

use serdes_abi::{
    TF_Code,
    pjrt::{self, Minor, args::PJRT_Error},
};

use super::errors;
use crate::Status;

/// The number of functions in the newest table.
pub(super) const SLOTS: usize = match pjrt::table_size(Minor::NEWEST) {
    Some(size) => (size.size_of - FIRST_SLOT) / size_of::<*const ()>(),
    None => panic!("the newest minor has a table"),
};

/// The offset of the first function in the table, in bytes.
pub(super) const FIRST_SLOT: usize = 40;

/// A function that returns UNIMPLEMENTED for every call.
pub(super) type Refusal = unsafe extern "C" fn(*mut ()) -> *mut PJRT_Error;

/// Returns UNIMPLEMENTED with the name of the function in this slot. It does not read its
/// arguments.
///
/// # Safety
/// None is needed.
unsafe extern "C" fn refuse<const SLOT: usize>(_arguments: *mut ()) -> *mut PJRT_Error {
    let is_in_slot = |function: &&pjrt::Function| function.slot(Minor::NEWEST) == Some(SLOT);
    let name = pjrt::functions().iter().find(is_in_slot).map_or("the function", |found| found.name);
    errors::give(Err(Status::new(
        TF_Code::UNIMPLEMENTED,
        format!("{name}: this plug-in does not have it"),
    )))
}

macro_rules! refusals {
    ($($slot:literal)*) => {
        [$(refuse::<$slot>),*]
    };
}

/// The refusal of each slot, by index.
pub(super) const REFUSALS: [Refusal; SLOTS] = refusals! {
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33
    34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64
    65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84 85 86 87 88 89 90 91 92 93 94 95
    96 97 98 99 100 101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116 117 118 119
    120 121 122 123 124 125 126 127 128 129 130 131 132 133 134 135 136 137
};
