//! Lines of dated versions, the accessors that select one, and negotiation.
//!
//! This room knows numbers, dates and ranges. It must never know a message, a file or a device.

mod accessor;
mod date;
mod line;
mod range;

pub use accessor::{AnyVersionAccessor, DefaultVersionAccessor, Week4OldVersionAccessor};
pub use date::Date;
pub use line::{Entry, Line, SerDesVersion};
pub use range::{NegotiationError, Side, UnknownVersion, VersionRange};

/// The accessor of the IFRT line for default arguments.
pub type SerDesDefaultVersionAccessor = DefaultVersionAccessor<Ifrt>;
/// The accessor of the IFRT line for artifacts that a build of four weeks ago reads.
pub type SerDesWeek4OldVersionAccessor = Week4OldVersionAccessor<Ifrt>;
/// The accessor of the IFRT line for those who own the choice of the version.
pub type SerDesAnyVersionAccessor = AnyVersionAccessor<Ifrt>;

/// The line `ifrt_serdes`: formats of the IFRT data types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ifrt;

impl Line for Ifrt {
    const NAME: &'static str = "ifrt_serdes";
    const TITLE: &'static str = "IFRT SerDes";
    const MINIMUM: i32 = 0;
    const AS_OF: Date = Date::from_ymd(2026, 11, 20);
    const ENTRIES: &'static [Entry] = &[
        Entry::new(0, Date::from_ymd(2025, 5, 20)),
        Entry::new(1, Date::from_ymd(2026, 2, 19)),
        Entry::new(2, Date::from_ymd(2026, 3, 19)),
        Entry::new(3, Date::from_ymd(2026, 5, 18)),
        Entry::new(4, Date::from_ymd(2026, 7, 16)),
        Entry::new(5, Date::from_ymd(2026, 8, 17)),
        Entry::new(6, Date::from_ymd(2026, 9, 17)),
    ];
}

/// The line `device_state`: the device-state container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceState;

impl Line for DeviceState {
    const NAME: &'static str = "device_state";
    const TITLE: &'static str = "device state";
    const MINIMUM: i32 = 0;
    const AS_OF: Date = Date::from_ymd(2026, 11, 20);
    const ENTRIES: &'static [Entry] = &[Entry::new(0, Date::from_ymd(2026, 11, 20))];
}

/// The line `proxy_protocol`: the session of the IFRT proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProxyProtocol;

impl Line for ProxyProtocol {
    const NAME: &'static str = "proxy_protocol";
    const TITLE: &'static str = "IFRT proxy protocol";
    const MINIMUM: i32 = 16;
    const AS_OF: Date = Date::from_ymd(2026, 11, 20);
    const ENTRIES: &'static [Entry] = &[
        Entry::new(16, Date::from_ymd(2025, 10, 15)),
        Entry::new(25, Date::from_ymd(2026, 3, 18)),
    ];
}
