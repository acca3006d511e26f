//! The tests of the library from outside, one module a subject. They are one program, because each
//! further one links the library once more.
//!
//! What needs a process of its own is beside it: `memory`, `working_directory`, and the programs
//! that load plug-ins.

mod captured_vectors;
#[cfg(all(feature = "artifact", feature = "device"))]
mod check_device_state;
#[cfg(all(feature = "artifact", feature = "device", feature = "npz"))]
mod check_kinds;
#[cfg(all(feature = "artifact", feature = "device"))]
mod check_npy_headers;
mod circles;
#[cfg(all(feature = "artifact", feature = "device"))]
mod corpus_replay;
#[cfg(feature = "device")]
mod device_state_durability;
mod device_state_golden;
#[cfg(feature = "addresses")]
mod hostile_addresses;
mod ifrt_golden;
mod ifrt_properties;
mod ifrt_vectors;
mod messages;
mod pages_and_tree;
mod proto_descriptors;
mod proto_generated;
mod rooms;
#[cfg(all(feature = "artifact", feature = "device"))]
mod rules;
#[cfg(all(feature = "artifact", feature = "device"))]
mod saved_model_variables;
#[cfg(feature = "device")]
mod scale;
#[cfg(feature = "artifact")]
mod tensorflow_checkpoints;
#[cfg(all(feature = "artifact", feature = "device"))]
mod tensorflow_hostile;
#[cfg(feature = "artifact")]
mod tensorflow_operations;
#[cfg(feature = "artifact")]
mod tensorflow_operations_hostile;
#[cfg(feature = "artifact")]
mod tensorflow_ops;
#[cfg(all(feature = "artifact", feature = "device"))]
mod tensorflow_verdicts;
mod versions_lock;
#[cfg(feature = "proxy")]
mod wire_vectors;
