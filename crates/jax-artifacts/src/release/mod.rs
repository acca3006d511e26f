//! Releases of jaxlib, as data.

mod day;
mod find;
mod generated;
mod row;
mod stablehlo;
mod table;

pub use self::{
    day::Day,
    find::releases,
    row::{Deserializer, DeviceField, Release},
    stablehlo::StableHlo,
};
