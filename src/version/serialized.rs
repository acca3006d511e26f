//! `Serialize` and `Deserialize` for versions, ranges and the versions that data carries.
//!
//! A version is serialized as its number and a range as its two ends; the line is in the type.
//! Deserialization checks them like values from a peer: a number that this build does not have is
//! refused.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::{AnyVersionAccessor, Line, Version, VersionRange};

impl<L: Line> Serialize for Version<L> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.number().serialize(serializer)
    }
}

impl<'de, L: Line> Deserialize<'de> for Version<L> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = i32::deserialize(deserializer)?;
        AnyVersionAccessor::get(number).map_err(D::Error::custom)
    }
}

#[derive(Serialize, Deserialize)]
struct Range {
    minimum: i32,
    maximum: i32,
}

impl<L: Line> Serialize for VersionRange<L> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Range { minimum: self.minimum(), maximum: self.maximum() }.serialize(serializer)
    }
}

impl<'de, L: Line> Deserialize<'de> for VersionRange<L> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Range { minimum, maximum } = Range::deserialize(deserializer)?;
        Self::try_from((minimum, maximum)).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;
    use crate::version::{
        Date, DeviceState, Ifrt, Producer, SerDesAnyVersionAccessor, VersionDef, registry,
    };

    #[test]
    fn versions_and_ranges_come_back_or_say_what_this_build_has() {
        let version = SerDesAnyVersionAccessor::get(4).unwrap();
        assert_eq!(to_value(version).unwrap(), json!(4));
        assert_eq!(from_value::<Version<Ifrt>>(json!(4)).unwrap(), version);
        let error = from_value::<Version<Ifrt>>(json!(99)).unwrap_err().to_string();
        assert!(error.contains("ifrt_serdes version 99") && error.contains("0..6"), "{error}");
        assert!(from_value::<Version<DeviceState>>(json!(4)).is_err());

        let range = VersionRange::<Ifrt>::new(2, 40).unwrap();
        assert_eq!(to_value(range).unwrap(), json!({ "minimum": 2, "maximum": 40 }));
        assert_eq!(from_value::<VersionRange>(to_value(range).unwrap()).unwrap(), range);
        let empty = json!({ "minimum": 4, "maximum": 2 });
        let error = from_value::<VersionRange>(empty).unwrap_err().to_string();
        assert!(error.contains("4..2 is empty"), "{error}");
    }

    #[test]
    fn serialized_versions_round_trip_and_may_leave_out_zeros() {
        let versions = Producer::new(2474, 12).with_bad_consumers([7]).stamp();
        let value = to_value(&versions).unwrap();
        assert_eq!(value, json!({ "producer": 2474, "min_consumer": 12, "bad_consumers": [7] }));
        assert_eq!(from_value::<VersionDef>(value).unwrap(), versions);
        assert_eq!(
            from_value::<VersionDef>(json!({ "producer": 3 })).unwrap(),
            VersionDef { producer: 3, ..VersionDef::default() }
        );
    }

    #[test]
    fn days_and_listings_are_text_that_programs_read() {
        let day = Date::from_ymd(2026, 11, 20).unwrap();
        assert_eq!(to_value(day).unwrap(), json!("2026-11-20"));
        assert_eq!(from_value::<Date>(json!("2026-11-20")).unwrap(), day);
        assert!(from_value::<Date>(json!("20.11.2026")).is_err());
        let status = &registry().line("ifrt_serdes").unwrap().on(day)[6];
        let value = to_value(status).unwrap();
        assert_eq!(value["introduced"], "2026-09-17");
        assert_eq!(
            (&value["week_4_old"], &value["formats"][0]),
            (&json!(true), &json!("RemapPlan"))
        );
    }
}
