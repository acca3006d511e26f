//! Arrays of every type.
use serdes_library_file::conformance::{Verdict, expect, failed, same_bytes};

use super::subject::{Behaviour, Subject, unsupported};
use crate::{ElementType, HostArray, PjrtError};

macro_rules! types {
    ($($element_type:ident $name:literal;)*) => {
        pub(super) const BEHAVIOURS: &[Behaviour] = &[$(
            Behaviour {
                name: $name,
                demand: concat!("arrays of this type come back as they went, also packed ones: ", $name),
                run: |subject| round_trip(subject, ElementType::$element_type),
            },
        )*];
    };
}

types! {
    Pred "pjrt_type_pred";
    S1 "pjrt_type_s1";
    S2 "pjrt_type_s2";
    S4 "pjrt_type_s4";
    S8 "pjrt_type_s8";
    S16 "pjrt_type_s16";
    S32 "pjrt_type_s32";
    S64 "pjrt_type_s64";
    U1 "pjrt_type_u1";
    U2 "pjrt_type_u2";
    U4 "pjrt_type_u4";
    U8 "pjrt_type_u8";
    U16 "pjrt_type_u16";
    U32 "pjrt_type_u32";
    U64 "pjrt_type_u64";
    F4E2M1FN "pjrt_type_f4e2m1fn";
    F6E2M3FN "pjrt_type_f6e2m3fn";
    F6E3M2FN "pjrt_type_f6e3m2fn";
    F8E3M4 "pjrt_type_f8e3m4";
    F8E4M3 "pjrt_type_f8e4m3";
    F8E4M3FN "pjrt_type_f8e4m3fn";
    F8E4M3B11FNUZ "pjrt_type_f8e4m3b11fnuz";
    F8E4M3FNUZ "pjrt_type_f8e4m3fnuz";
    F8E5M2 "pjrt_type_f8e5m2";
    F8E5M2FNUZ "pjrt_type_f8e5m2fnuz";
    F8E8M0FNU "pjrt_type_f8e8m0fnu";
    F16 "pjrt_type_f16";
    F32 "pjrt_type_f32";
    F64 "pjrt_type_f64";
    BF16 "pjrt_type_bf16";
    C64 "pjrt_type_c64";
    C128 "pjrt_type_c128";
}

/// The number of elements of a test array: enough that a type of one bit fills more than a byte.
const ELEMENTS: usize = 24;

fn round_trip(subject: &Subject, element_type: ElementType) -> Verdict {
    let minor = subject.plugin.minor();
    if element_type.number_in(minor).is_none() {
        let detail = format!("PJRT {minor} does not know {element_type}");
        return Err(serdes_library_file::conformance::Failure::Unsupported(detail));
    }
    // Zeros and ones are values of every type.
    let bytes = element_type.host_bytes();
    let data: Vec<u8> = (0..ELEMENTS * bytes).map(|at| u8::from(at % (3 * bytes) == 0)).collect();
    let dims = [4, 6];
    let (client, devices) = subject.devices()?;
    let target = crate::Target::Device(&devices[0]);
    let buffer = match client.put(&HostArray::new(element_type, &dims), &data, target) {
        // A device does not need to support every type.
        Err(error @ PjrtError::Status { .. }) => return Err(unsupported(error)),
        buffer => buffer?,
    };
    expect("its type", buffer.element_type()?, element_type)?;
    same_bytes("what was read", &buffer.read()?, &data)?;
    let on_device = buffer.device_bytes()?;
    if on_device == 0 {
        return failed("it takes no bytes on the device");
    }
    Ok(format!("{ELEMENTS} elements take {on_device} bytes on the device"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_behaviour() {
        let mut names: Vec<String> = ElementType::ALL
            .iter()
            .map(|found| format!("pjrt_type_{}", found.name().to_lowercase()))
            .collect();
        let mut found: Vec<&str> = BEHAVIOURS.iter().map(|behaviour| behaviour.name).collect();
        names.sort();
        found.sort_unstable();
        assert_eq!(found, names);
    }
}
