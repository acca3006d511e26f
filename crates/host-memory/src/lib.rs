//! The reference StreamExecutor plug-in over host memory, as a library.
