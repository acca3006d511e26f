//! StreamExecutor C API layouts as data and as repr(C) types.
