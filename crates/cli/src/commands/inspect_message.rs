//! `serdes inspect --kind ArraySpec` and the like: a bare message of IFRT, which nothing but its
//! reader's word tells the type of.

use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};
use serdes::{
    codec::{DecodeError, DeserializeOptions, FromProto},
    ifrt::{
        AbstractArraySpec, AnyDevice, ArraySpec, AttributeMap, CompactLayout, ConcreteEvenSharding,
        ConcreteSharding, DType, DeviceList, DynamicShape, ExecuteOptions, HloSharding, Index,
        IndexDomain, OpaqueSharding, PjRtLayout, RemapPlan, Shape, ShardingParam,
        ShardingParamSharding, SingleDeviceSharding, with_devices,
    },
    storage::Storage,
};

use crate::{
    commands::streams,
    failure::Failure,
    status::Status,
    terminal::{Terminal, shown_path},
};

/// The longest message in bytes that is read.
const LONGEST: u64 = 1 << 30;

type Read = fn(Vec<u8>, &DeserializeOptions) -> Result<Value, DecodeError>;

macro_rules! types {
    ($($name:ident),* $(,)?) => {
        &[$((stringify!($name), |bytes, options| Ok(value(&$name::from_bytes(bytes.into(), options)?)))),*]
    };
}

/// The types by their names.
const TYPES: &[(&str, Read)] = types![
    AbstractArraySpec,
    ArraySpec,
    AttributeMap,
    CompactLayout,
    ConcreteEvenSharding,
    ConcreteSharding,
    DType,
    DeviceList,
    DynamicShape,
    ExecuteOptions,
    HloSharding,
    Index,
    IndexDomain,
    OpaqueSharding,
    PjRtLayout,
    RemapPlan,
    Shape,
    ShardingParam,
    ShardingParamSharding,
    SingleDeviceSharding,
];

fn value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

/// The reader of messages of this type, where it is one: `ArraySpec`, or `ArraySpecProto`.
pub(super) fn reader(name: &str) -> Option<(&'static str, Read)> {
    let name = name.rsplit('.').next().unwrap_or(name);
    let name = name.strip_suffix("Proto").unwrap_or(name);
    TYPES.iter().copied().find(|(known, _)| *known == name)
}

/// Shows the message at a path.
pub(super) fn run(
    path: &Path,
    (name, read): (&'static str, Read),
    terminal: &mut Terminal,
) -> Result<Status, Failure> {
    let bytes = streams::whole(&Storage::anywhere(), path, LONGEST, "a message")?;
    let size = bytes.len();
    let value = read(bytes, &with_devices(AnyDevice))
        .map_err(|error| Failure::new(error).about(shown_path(path)))?;
    if terminal.json() {
        terminal.object(&json!({
            "path": path.to_string_lossy(),
            "kind": "ifrt_message",
            "type": name,
            "bytes": size,
            "value": value,
        }))?;
    } else {
        let text = serde_json::to_string_pretty(&value).map_err(Failure::of)?;
        terminal.line(format_args!("{} ({name}, {size} bytes)\n{text}", shown_path(path)))?;
    }
    Ok(Status::Yes)
}
