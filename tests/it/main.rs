//! Tests of the library's public API, one module per subject. They are one program, because each
//! further program links the library once more.
//!
//! Tests that need their own process are separate programs: `working_directory`, and those that
//! load plug-ins.

mod captured_vectors;
mod dependency_cycles;
mod device_state_durability;
mod device_state_golden;
mod ifrt_golden;
mod ifrt_properties;
mod ifrt_vectors;
mod manifests;
mod messages;
mod module_dependencies;
mod pages_and_tree;
mod proto_descriptors;
mod proto_generated;
mod publishing_order;
mod scale;
mod scope;
mod versions_lock;
mod wire_vectors;
