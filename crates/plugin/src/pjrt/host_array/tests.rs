use super::*;
use crate::pjrt::ElementType;

fn shape(element_type: ElementType, dimensions: &[i64]) -> Shape {
    Shape::new(element_type, dimensions.to_vec()).unwrap()
}

/// Returns the bytes that a device gets from host memory, which begins with the lowest byte of the
/// array.
fn gathered(array: &HostArray, bytes: &[u8]) -> Vec<u8> {
    assert_eq!(array.extent(), bytes.len());
    // SAFETY: `bytes` is borrowed for the call.
    let source = unsafe { HostSource::from_raw(bytes.as_ptr().cast(), bytes.len()) };
    let mut device = Vec::new();
    let gather = array.gather(&source, |place, piece| {
        assert_eq!(place, device.len() as u64, "pieces follow one another");
        let start = device.len();
        device.resize(start + piece.len(), 0);
        piece.read(&mut device[start..])
    });
    gather.unwrap();
    device
}

/// Returns the host's memory after receiving a device's bytes.
fn scattered(array: &HostArray, device: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xee; array.extent()];
    // SAFETY: `bytes` is ours alone for the call.
    let mut target = unsafe { HostTarget::from_raw(bytes.as_mut_ptr().cast(), bytes.len()) };
    let scatter = array.scatter(&mut target, |place, piece| {
        let start = usize::try_from(place).unwrap();
        piece.write(&device[start..start + piece.len()])
    });
    scatter.unwrap();
    bytes
}

#[test]
fn transposed_array_round_trips_through_the_device_order() {
    let host = [0, 1, 2, 3, 4, 5];
    let array = HostArray::strided(shape(ElementType::U8, &[3, 2]), &[1, 3]).unwrap();
    assert_eq!(gathered(&array, &host), [0, 3, 1, 4, 2, 5]);
    assert_eq!(scattered(&array, &[0, 3, 1, 4, 2, 5]), host);
    let ordered = HostArray::in_order(shape(ElementType::U8, &[3, 2]), &[0, 1]).unwrap();
    assert_eq!(ordered, array);
}

#[test]
fn strides_of_nothing_repeat_and_negative_ones_go_back() {
    let array = HostArray::strided(shape(ElementType::U16, &[2, 3]), &[0, 2]).unwrap();
    assert_eq!(gathered(&array, &[1, 0, 2, 0, 3, 0]), [1, 0, 2, 0, 3, 0, 1, 0, 2, 0, 3, 0]);
    let array = HostArray::strided(shape(ElementType::U8, &[4]), &[-2]).unwrap();
    assert_eq!((array.first(), array.extent()), (6, 7));
    assert_eq!(gathered(&array, &[0, 1, 2, 3, 4, 5, 6]), [6, 4, 2, 0]);
    assert_eq!(scattered(&array, &[6, 4, 2, 0]), [0, 0xee, 2, 0xee, 4, 0xee, 6]);
}

#[test]
fn small_elements_are_packed_the_first_in_the_lowest_bits() {
    let array = HostArray::dense(shape(ElementType::S4, &[5]));
    assert_eq!(gathered(&array, &[1, 2, 0xf3, 4, 5]), [0x21, 0x43, 0x05]);
    assert_eq!(scattered(&array, &[0x21, 0x43, 0x05]), [1, 2, 3, 4, 5]);
    let array = HostArray::dense(shape(ElementType::U1, &[9]));
    assert_eq!(gathered(&array, &[1, 0, 1, 1, 0, 0, 0, 1, 1]), [0b1000_1101, 1]);
    assert_eq!(scattered(&array, &[0b1000_1101, 1]), [1, 0, 1, 1, 0, 0, 0, 1, 1]);
}

#[test]
fn an_array_of_several_pieces_is_the_same_in_every_order() {
    let (rows, columns) = (1200, 700);
    let values: Vec<u8> = (0..rows * columns).map(|index| (index % 251) as u8).collect();
    let dimensions = shape(ElementType::U8, &[columns as i64, rows as i64]);
    let array = HostArray::strided(dimensions, &[1, columns as i64]).unwrap();
    let device = gathered(&array, &values);
    assert!((0..columns).all(|column| device[column * rows + 7] == values[7 * columns + column]));
    assert_eq!(scattered(&array, &device), values);

    let packed = HostArray::dense(shape(ElementType::U2, &[values.len() as i64]));
    let pairs: Vec<u8> = values.iter().map(|value| value & 3).collect();
    let device = gathered(&packed, &pairs);
    assert_eq!(device.len(), values.len() / 4);
    assert_eq!(scattered(&packed, &device), pairs);
}

#[test]
fn a_scalar_and_an_array_of_nothing_have_their_bytes() {
    let scalar = HostArray::strided(shape(ElementType::F32, &[]), &[]).unwrap();
    assert_eq!(gathered(&scalar, &[1, 2, 3, 4]), [1, 2, 3, 4]);
    for element_type in [ElementType::F32, ElementType::U4] {
        let empty = HostArray::strided(shape(element_type, &[2, 0]), &[-8, 4]).unwrap();
        assert_eq!((empty.first(), empty.extent()), (0, 0));
        assert!(gathered(&empty, &[]).is_empty());
        assert!(scattered(&empty, &[]).is_empty());
    }
}

#[test]
fn strides_and_orders_that_cannot_be_are_refused() {
    let square = || shape(ElementType::F32, &[2, 2]);
    for strides in [&[4][..], &[4, i64::MAX], &[i64::MIN, i64::MIN], &[i64::MAX, i64::MIN]] {
        assert!(HostArray::strided(square(), strides).is_err(), "{strides:?}");
    }
    for order in [&[0][..], &[0, 0], &[1, 2], &[-1, 0]] {
        assert!(HostArray::in_order(square(), order).is_err(), "{order:?}");
    }
}

#[test]
fn chunks_keep_their_place_in_arrays_with_gaps() {
    for (element_type, width) in [
        (ElementType::U8, 1),
        (ElementType::U16, 2),
        (ElementType::F32, 4),
        (ElementType::C128, 16),
    ] {
        // Rows of three out of five elements, two planes apart, with the planes in reverse.
        let (element, columns) = (width as i64, 3);
        let strides = [-40 * element, 10 * element, element];
        let array = HostArray::strided(shape(element_type, &[2, 4, columns]), &strides).unwrap();
        let bytes: Vec<u8> = (0..array.extent()).map(|at| (at % 253) as u8).collect();
        let device = gathered(&array, &bytes);
        let mut expected = Vec::new();
        for plane in 0..2_usize {
            for row in 0..4 {
                let start = array.first() - plane * 40 * width + row * 10 * width;
                expected.extend_from_slice(&bytes[start..start + 3 * width]);
            }
        }
        assert_eq!(device, expected, "{element_type}");
        let back = scattered(&array, &device);
        assert!(back.iter().zip(&bytes).all(|(got, given)| got == given || *got == 0xee));
    }
}
