//! The command `serdes`.
fn main() {}
