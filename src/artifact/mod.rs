//! See the design: to be written by its owner.
