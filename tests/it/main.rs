//! The tests of the library from outside, one module a subject. They are one program, because each
//! further one links the library once more.
//!
//! Tests that need a process of their own are beside it: `working_directory`, and the programs that
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
