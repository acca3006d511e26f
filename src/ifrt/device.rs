//! Devices by id, lists of devices, and the look-up of devices for readers. The module does not
//! depend on the capabilities of a device.

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::{Arc, OnceLock},
};

use super::{
    IfrtError,
    list_notation::{not_in_notation, parse_list, write_list},
};
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, StatusCode,
        fields::Fields,
        wire_format::{Encoded, WireFormat, described_by_bytes},
    },
    proto::xla::ifrt::DeviceListProto,
    version::SerDesVersion,
    wire::BackwardWriter,
};

const FORMATS: Formats = Formats::of("DeviceList");

/// The number of a device, unique among the devices of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct DeviceId(pub i32);

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl std::str::FromStr for DeviceId {
    type Err = IfrtError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = text
            .parse()
            .map_err(|_| IfrtError::text("DeviceId", text, 0, "a number of 32 bits such as 7"))?;
        Ok(Self(id))
    }
}

/// The reach of a device: this process can use the device itself, or another process of the same
/// job can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// This process can use the device.
    Addressable,
    /// Another process can use the device.
    Remote,
}

/// Looks up devices, for reading types that name devices by their ids.
pub trait DeviceLookup: Send + Sync {
    /// Returns [`Reach::Addressable`] if this process can use the device `id`.
    ///
    /// # Errors
    /// [`DecodeError::unknown_device`] if there is no such device.
    fn look_up(&self, id: DeviceId) -> Result<Reach, DecodeError>;

    /// Returns the list of the devices `ids`.
    ///
    /// # Errors
    /// The first error of [`look_up`](Self::look_up).
    fn device_list(&self, ids: Vec<DeviceId>) -> Result<DeviceList, DecodeError> {
        let mut remote = false;
        let mut addressable = Vec::with_capacity(ids.len());
        for id in &ids {
            let reach = self.look_up(*id)?;
            remote |= reach == Reach::Remote;
            addressable.push(reach == Reach::Addressable);
        }
        Ok(DeviceList::from_parts(ids, remote.then_some(addressable)))
    }
}

impl<T: DeviceLookup + ?Sized> DeviceLookup for Arc<T> {
    fn look_up(&self, id: DeviceId) -> Result<Reach, DecodeError> {
        (**self).look_up(id)
    }

    fn device_list(&self, ids: Vec<DeviceId>) -> Result<DeviceList, DecodeError> {
        (**self).device_list(ids)
    }
}

/// A look-up that accepts every id as an addressable device, for tools that inspect data without
/// its devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AnyDevice;

impl DeviceLookup for AnyDevice {
    fn look_up(&self, _: DeviceId) -> Result<Reach, DecodeError> {
        Ok(Reach::Addressable)
    }

    fn device_list(&self, ids: Vec<DeviceId>) -> Result<DeviceList, DecodeError> {
        Ok(DeviceList::from_parts(ids, None))
    }
}

/// Looks up devices in a list, all of which are addressable.
impl DeviceLookup for DeviceList {
    fn look_up(&self, id: DeviceId) -> Result<Reach, DecodeError> {
        match self.ids().iter().position(|own| *own == id) {
            Some(index) if self.is_addressable(index) => Ok(Reach::Addressable),
            Some(_) => Ok(Reach::Remote),
            None => Err(DecodeError::unknown_device(id.0, StatusCode::InvalidArgument)),
        }
    }

    fn device_list(&self, ids: Vec<DeviceId>) -> Result<DeviceList, DecodeError> {
        let known: std::collections::HashMap<_, _> = self
            .ids()
            .iter()
            .enumerate()
            .map(|(index, id)| (*id, self.is_addressable(index)))
            .collect();
        let mut addressable = Vec::with_capacity(ids.len());
        for id in &ids {
            addressable.push(
                *known.get(id).ok_or_else(|| {
                    DecodeError::unknown_device(id.0, StatusCode::InvalidArgument)
                })?,
            );
        }
        let remote = addressable.contains(&false);
        Ok(Self::from_parts(ids, remote.then_some(addressable)))
    }
}

/// The option with the device look-up, without which no sharding can be read.
///
/// ```
/// use serdes::{codec::DeserializeOptions, ifrt::{AnyDevice, DeserializeShardingOptions}};
///
/// let options = DeserializeOptions::new().with(DeserializeShardingOptions::new(AnyDevice));
/// # let _ = options;
/// ```
#[derive(Clone)]
pub struct DeserializeShardingOptions {
    devices: Arc<dyn DeviceLookup>,
}

impl DeserializeShardingOptions {
    /// Creates the option to look devices up in `devices`.
    pub fn new(devices: impl DeviceLookup + 'static) -> Self {
        Self { devices: Arc::new(devices) }
    }

    /// Returns the look-up of devices by id.
    pub fn devices(&self) -> &dyn DeviceLookup {
        &*self.devices
    }
}

impl fmt::Debug for DeserializeShardingOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeserializeShardingOptions").finish_non_exhaustive()
    }
}

/// Returns options with a device look-up and parity validation, the minimum for reading a sharding.
pub fn with_devices(devices: impl DeviceLookup + 'static) -> DeserializeOptions {
    DeserializeOptions::new().with(DeserializeShardingOptions::new(devices))
}

struct Devices {
    ids: Vec<DeviceId>,
    /// One flag per device; absent if all are addressable.
    addressable: Option<Vec<bool>>,
    addressable_list: OnceLock<DeviceList>,
    fingerprint: OnceLock<u64>,
}

/// An ordered list of devices. Cheap to clone; equality depends on the order.
#[derive(Clone)]
pub struct DeviceList(Arc<Devices>);

impl DeviceList {
    /// Creates a list of the devices `ids`, all addressable.
    pub fn new(ids: impl IntoIterator<Item = DeviceId>) -> Self {
        Self::from_parts(ids.into_iter().collect(), None)
    }

    /// Creates a list of the devices `ids`; a device is addressable if `is_addressable` returns
    /// `true` for it.
    pub fn with_addressable(
        ids: impl IntoIterator<Item = DeviceId>,
        is_addressable: impl Fn(DeviceId) -> bool,
    ) -> Self {
        let ids: Vec<_> = ids.into_iter().collect();
        let flags: Vec<_> = ids.iter().map(|id| is_addressable(*id)).collect();
        let remote = flags.contains(&false);
        Self::from_parts(ids, remote.then_some(flags))
    }

    pub(super) fn from_parts(ids: Vec<DeviceId>, addressable: Option<Vec<bool>>) -> Self {
        let (addressable_list, fingerprint) = (OnceLock::new(), OnceLock::new());
        Self(Arc::new(Devices { ids, addressable, addressable_list, fingerprint }))
    }

    /// Returns the devices, in order.
    pub fn ids(&self) -> &[DeviceId] {
        &self.0.ids
    }

    /// Returns the number of devices.
    pub fn len(&self) -> usize {
        self.0.ids.len()
    }

    /// Returns true if there is no device.
    pub fn is_empty(&self) -> bool {
        self.0.ids.is_empty()
    }

    /// Returns true if this process can use the device at `index`; false past the end.
    pub fn is_addressable(&self, index: usize) -> bool {
        match &self.0.addressable {
            Some(flags) => flags.get(index).copied().unwrap_or(false),
            None => index < self.0.ids.len(),
        }
    }

    /// Returns true if this process can use all of the devices.
    pub fn is_fully_addressable(&self) -> bool {
        self.0.addressable.is_none()
    }

    /// Returns the devices that this process can use, in the same order. Computed at first use;
    /// cheap afterwards, from any thread.
    pub fn addressable(&self) -> &Self {
        let Some(flags) = &self.0.addressable else { return self };
        self.0.addressable_list.get_or_init(|| {
            let pairs = self.0.ids.iter().zip(flags);
            Self::new(pairs.filter(|(_, addressable)| **addressable).map(|(id, _)| *id))
        })
    }

    /// Returns a number that is equal for equal lists, in every build, and never 0.
    pub fn fingerprint(&self) -> u64 {
        *self.0.fingerprint.get_or_init(|| {
            // FNV-1a over words instead of bytes, with a final mix.
            let mut state = 0xcbf2_9ce4_8422_2325_u64 ^ self.0.ids.len() as u64;
            for id in &self.0.ids {
                state = (state ^ u64::from(id.0.cast_unsigned())).wrapping_mul(0x0100_0000_01b3);
            }
            state ^= state >> 32;
            state.max(1)
        })
    }

    /// Describes the difference from `other`, for people; `None` if the lists are equal.
    pub fn difference(&self, other: &Self) -> Option<String> {
        if self == other {
            return None;
        }
        if self.len() != other.len() {
            return Some(format!("{} devices against {}", self.len(), other.len()));
        }
        let mut pairs = self.ids().iter().zip(other.ids()).enumerate();
        let differing = pairs.clone().filter(|(_, (ours, theirs))| ours != theirs).count();
        let first = pairs.find(|(_, (ours, theirs))| ours != theirs);
        first.map(|(index, (ours, theirs))| {
            format!(
                "{differing} of {} devices differ, the first at position {index}: {ours} against {theirs}",
                self.len()
            )
        })
    }
}

impl PartialEq for DeviceList {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.ids == other.0.ids
    }
}

impl Eq for DeviceList {}

impl Hash for DeviceList {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.fingerprint());
    }
}

impl fmt::Debug for DeviceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceList({self})")
    }
}

/// Formats as `[0,1,2]`.
impl fmt::Display for DeviceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, self.ids())
    }
}

/// Parses `[0,1,2]`. All devices are addressable: the text does not say which are.
impl std::str::FromStr for DeviceList {
    type Err = IfrtError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let ids: Vec<DeviceId> = parse_list(text).map_err(|rest| {
            not_in_notation("DeviceList", text, rest, "ids of devices such as [0,1,2]")
        })?;
        Ok(Self::from_parts(ids, None))
    }
}

impl FromIterator<DeviceId> for DeviceList {
    fn from_iter<I: IntoIterator<Item = DeviceId>>(ids: I) -> Self {
        Self::new(ids)
    }
}

impl<const N: usize> From<[i32; N]> for DeviceList {
    fn from(ids: [i32; N]) -> Self {
        ids.into_iter().map(DeviceId).collect()
    }
}

impl From<DeviceId> for DeviceList {
    fn from(id: DeviceId) -> Self {
        Self::new([id])
    }
}

described_by_bytes! {
    /// Writes format 0 at every version.
    ToProto,
    /// Accepts format 0. Needs [`DeserializeShardingOptions`]; an error of the look-up is passed
    /// on.
    FromProto for DeviceList as DeviceListProto
}

/// Lists of up to this many devices are written without an allocation for their numbers.
const FEW_DEVICES: usize = 32;

impl WireFormat for DeviceList {
    const NAME: &'static str = "DeviceList";

    fn capacity(&self) -> usize {
        // Assumes a few digits per id.
        2 * self.len()
    }

    fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        FORMATS.for_request(version).map(drop)
    }

    fn write(&self, version: SerDesVersion, out: &mut BackwardWriter) -> Result<(), EncodeError> {
        out.number(2, FORMATS.for_request(version)?);
        let mut few = [0; FEW_DEVICES];
        match few.get_mut(..self.len()) {
            Some(few) => {
                for (place, id) in few.iter_mut().zip(self.ids()) {
                    *place = id.0;
                }
                out.packed(1, few);
            }
            None => out.packed(1, &self.ids().iter().map(|id| id.0).collect::<Vec<_>>()),
        }
        Ok(())
    }

    fn read(message: Encoded<'_>, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        let (mut ids, mut recorded) = (Vec::<i32>::new(), 0);
        let mut fields = Fields::new(Self::NAME, message.bytes());
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => value.many(&mut ids)?,
                2 => recorded = value.number()?,
                _ => {}
            }
        }
        let sharding: &DeserializeShardingOptions = options.require(Self::NAME)?;
        FORMATS.check_recorded(recorded)?;
        sharding.devices().device_list(ids.into_iter().map(DeviceId).collect())
    }

    fn check_options(options: &DeserializeOptions) -> Result<(), DecodeError> {
        options.require::<DeserializeShardingOptions>(Self::NAME).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::codec::FromProto as _;

    fn list(ids: impl IntoIterator<Item = i32>) -> DeviceList {
        ids.into_iter().map(DeviceId).collect()
    }

    #[test]
    fn the_addressable_part_keeps_the_order_and_is_made_once() {
        let all = DeviceList::with_addressable((0..8).rev().map(DeviceId), |id| id.0 % 2 == 0);
        assert!(!all.is_fully_addressable());
        assert_eq!(all.addressable(), &list([6, 4, 2, 0]));
        assert!(all.addressable().is_fully_addressable());
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| assert!(std::ptr::eq(all.addressable(), all.addressable())));
            }
        });
        let plain = list([1, 2]);
        assert!(plain.is_fully_addressable() && std::ptr::eq(plain.addressable(), &plain));
    }

    #[test]
    fn device_lists_are_equal_in_order_with_one_fingerprint() {
        assert_eq!(list([0, 1]), list([0, 1]));
        assert_ne!(list([0, 1]), list([1, 0]));
        assert_eq!(list([0, 1]).fingerprint(), list([0, 1]).fingerprint());
        assert_ne!(list([0, 1]).fingerprint(), list([1, 0]).fingerprint());
        assert_ne!(list([]).fingerprint(), 0);
        assert_eq!(list([0, 1, 2]).fingerprint(), 0xe1f9_f518_9103_e1e9);
    }

    #[test]
    fn lists_of_devices_are_read_as_they_are_printed() {
        for text in ["[]", "[0]", "[3,-1,3,2147483647]"] {
            let devices: DeviceList = text.parse().unwrap();
            assert_eq!(devices.to_string(), text);
            assert!(devices.is_fully_addressable());
        }
        assert_eq!(" [ 1, 2 ] ".parse(), Ok(list([1, 2])));
        for (wrong, position) in [("1,2", 0), ("[1,2", 4), ("[1,,2]", 3), ("[1,2147483648]", 3)] {
            let error = wrong.parse::<DeviceList>().unwrap_err().to_string();
            assert!(error.contains(&format!("at byte {position}; expected ids")), "{error}");
        }
    }

    #[test]
    fn the_difference_is_said_in_words() {
        assert_eq!(list([0, 1]).difference(&list([0, 1])), None);
        assert_eq!(list([0]).difference(&list([0, 1])).unwrap(), "1 devices against 2");
        assert_eq!(
            list([0, 1, 2]).difference(&list([0, 2, 1])).unwrap(),
            "2 of 3 devices differ, the first at position 1: 1 against 2"
        );
    }

    #[test]
    fn an_unknown_id_is_named_with_the_code_of_the_one_who_looks_up() {
        let proto = DeviceListProto { device_ids: vec![0, 9], version_number: 0 };
        let error = DeviceList::from_proto(&proto, &with_devices(list([0, 1]))).unwrap_err();
        assert_eq!(error.code(), StatusCode::InvalidArgument);
        assert!(error.to_string().contains("id 9"), "{error}");

        struct Proxy;
        impl DeviceLookup for Proxy {
            fn look_up(&self, id: DeviceId) -> Result<Reach, DecodeError> {
                Err(DecodeError::unknown_device(id.0, StatusCode::NotFound))
            }
        }
        let error = DeviceList::from_proto(&proto, &with_devices(Proxy)).unwrap_err();
        assert_eq!(error.code(), StatusCode::NotFound);
    }

    #[test]
    fn missing_look_up_is_named_before_the_bytes_are_parsed() {
        let error = DeviceList::from_bytes("\u{1}".into(), &DeserializeOptions::new()).unwrap_err();
        assert_eq!(error.code(), StatusCode::InvalidArgument);
        assert!(error.to_string().contains("DeserializeShardingOptions"), "{error}");
    }

    #[test]
    fn duplicates_and_no_devices_at_all_are_allowed() {
        let options = with_devices(AnyDevice);
        for ids in [vec![], vec![3, 3, 3], vec![-1, i32::MIN, i32::MAX]] {
            let proto = DeviceListProto { device_ids: ids.clone(), version_number: 0 };
            assert_eq!(DeviceList::from_proto(&proto, &options), Ok(list(ids)));
        }
    }
}
