//! A row of the table of releases. Its columns: version, day; StableHLO, what `WEEK_4` and
//! `WEEK_12` stand for; newest serialization version, the one that is written; the field of the
//! devices, the calling convention; the deserializer, the last element type.
//!
//! The rows are in `generated`, made from `crates/releases/data/jaxlib.json`.

use super::{Day, Deserializer, DeviceField, Release, StableHlo};

/// The oldest release whose verdicts were compared with its own reader.
pub(super) const OLDEST_JUDGED: &str = "0.8.0";

type Numbers = (u32, u32, u32);

#[expect(clippy::too_many_arguments, reason = "a row of a table")]
pub(super) const fn row(
    version: &'static str,
    (year, month, day): (u16, u8, u8),
    stablehlo: Numbers,
    week_4: Numbers,
    week_12: Numbers,
    serialization: u16,
    writes_serialization: u16,
    writes_devices: DeviceField,
    calling_convention: u16,
    deserializer: Deserializer,
    last_dtype: i8,
) -> Release {
    Release {
        version,
        day: Day::new(year, month, day),
        stablehlo: StableHlo::new(stablehlo.0, stablehlo.1, stablehlo.2),
        week_4: StableHlo::new(week_4.0, week_4.1, week_4.2),
        week_12: StableHlo::new(week_12.0, week_12.1, week_12.2),
        serialization,
        writes_serialization,
        writes_devices,
        calling_convention,
        deserializer,
        last_dtype,
    }
}
