//! Tests of leaves other than tensors: NumPy values, types, attributes, keys that are not strings.

use super::*;

/// Opens a file that PyTorch 2.15 wrote, with values of every kind.
fn values(file: &str) -> Box<dyn Source> {
    open(data().join("2.15.0").join(file)).unwrap()
}

const FILES: [&str; 3] = ["values.pt", "values_legacy.pt", "values_5.pt"];

fn bytes_of(source: &dyn Source, name: &str) -> (String, Vec<i64>, Vec<u8>) {
    let position = source.tensors().iter().position(|info| info.name == name);
    let position = position.unwrap_or_else(|| panic!("{name}"));
    let info = &source.tensors()[position];
    (info.dtype.name().to_owned(), info.shape.dims().to_vec(), read(source, position))
}

#[test]
fn torch_values_of_numpy_are_read_as_data() {
    for file in FILES {
        let source = values(file);
        let (dtype, shape, bytes) = bytes_of(&*source, "mean");
        assert_eq!((&*dtype, &*shape), ("F32", &[4][..]));
        assert_eq!(bytes, [0.0_f32, 1.0, 2.0, 3.0].map(f32::to_le_bytes).concat());
        let (dtype, shape, bytes) = bytes_of(&*source, "turned");
        assert_eq!((&*dtype, &*shape), ("S16", &[2, 3][..]));
        assert_eq!(bytes, [0_i16, 1, 2, 3, 4, 5].map(i16::to_le_bytes).concat(), "{file}");
        let (dtype, _, bytes) = bytes_of(&*source, "big");
        assert_eq!((&*dtype, bytes), ("S32", [0_i32, 1, 2].map(i32::to_le_bytes).concat()));
        assert_eq!(bytes_of(&*source, "none").1, [0, 2]);
        let (dtype, shape, bytes) = bytes_of(&*source, "rng/1");
        assert_eq!((&*dtype, &*shape, bytes.len()), ("U32", &[624][..], 2496));
        // The first number of NumPy's generator with seed 0.
        assert_eq!(bytes[..4], 0_u32.to_le_bytes());
        let (dtype, shape, bytes) = bytes_of(&*source, "torch_rng");
        assert_eq!((&*dtype, &*shape, bytes.len()), ("U8", &[8][..], 8));
        let text = &source.metadata().as_ref().unwrap()[0].1;
        for said in [
            r#""dtype": "torch.float16""#,
            r#""device": "cuda:1""#,
            r#""lr": 0.001"#,
            r#""half": 0.10000000149011612"#,
            r#""count": 12"#,
            r#""large": 18446744073709551615"#,
            r#""done": true"#,
            "\"word\": \"caf\u{e9}\"",
            r#""rng/0": "MT19937""#,
            r#""rng/2": 624"#,
            r#""(1, 'x')": 3"#,
        ] {
            assert!(text.contains(said), "{file} {said}: {text}");
        }
    }
}

#[test]
fn torch_attributes_and_odd_keys_are_listed() {
    for file in FILES {
        let source = values(file);
        let refused: Vec<_> = source.refused().iter().map(|one| &*one.name).collect();
        assert_eq!(refused, ["bytes"]);
        let mut left_out: Vec<_> =
            source.left_out().iter().map(|one| (&*one.name, &*one.reason)).collect();
        left_out.sort_unstable();
        assert_eq!(
            left_out,
            [
                ("(1, 'x')", "its key is a tuple, of which the text alone is kept"),
                ("1.5", "its key is a float, of which the text alone is kept"),
                ("buffer", r#"its attribute "_is_buffer", a bool, is not kept"#),
                ("buffer", r#"its attribute "persistent", a bool, is not kept"#),
                ("parameter", r#"its attribute "tag", a str, is not kept"#),
            ]
        );
        assert_eq!(bytes_of(&*source, "buffer").1, [3]);
        assert_eq!(bytes_of(&*source, "1.5").2, 1.0_f32.to_le_bytes());
    }
}

#[test]
fn torch_float4_has_two_elements_a_byte() {
    for file in FILES {
        let (dtype, shape, bytes) = bytes_of(&*values(file), "float4");
        assert_eq!((&*dtype, &*shape), ("F4E2M1FN", &[2, 4][..]));
        assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8], "{file}");
    }
}

#[test]
fn torch_attributes_of_a_state_dict_are_listed_but_its_metadata() {
    let dict = |attribute: &str| {
        let state = [&b"}"[..], &text(attribute), b"K\x01s"].concat();
        let operations = [
            &b"ccollections\nOrderedDict\n)R"[..],
            &text("w"),
            &tensor(0, &[4], &[1]),
            b"s",
            &state,
            b"b",
        ];
        let source = open_pickle(&pickle(&operations.concat())).unwrap();
        assert_eq!(source.tensors().len(), 1);
        source.left_out().len()
    };
    assert_eq!((dict("_metadata"), dict("of_mine")), (0, 1));
}

#[test]
fn torch_arrays_that_are_none_are_damage_or_refused() {
    let dtype = |code: &str, order: &str| {
        let code = text(code);
        let order = text(order);
        let state =
            [&b"(K\x03"[..], &order, b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00t"].concat();
        [&b"cnumpy\ndtype\n("[..], &code, b"\x89\x88tR", &state, b"b"].concat()
    };
    let array = |shape: &[u8], dtype: &[u8], bytes: &[u8]| {
        let length = bytes.len() as u8;
        [
            &b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85C\x01btR(K\x01"[..],
            shape,
            dtype,
            b"\x89C",
            &[length],
            bytes,
            b"tb",
        ]
        .concat()
    };
    let whole = open_pickle(&pickle(&array(b"K\x02\x85", &dtype("f4", "<"), &[0; 8]))).unwrap();
    assert_eq!(whole.tensors()[0].bytes, 8);
    for (shape, bytes) in [(&b"K\x03\x85"[..], 8), (b"K\x02\x85", 7), (b"J\xff\xff\xff\xff\x85", 8)]
    {
        let damaged = array(shape, &dtype("f4", "<"), &vec![0; bytes]);
        let error = open_pickle(&pickle(&damaged)).err().unwrap();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    }
    for code in ["O8", "M8", "V4", "S3"] {
        let list = [&b"]"[..], &array(b"K\x01\x85", &dtype(code, "|"), &[0; 8]), b"a"].concat();
        let source = open_pickle(&pickle(&list)).unwrap();
        assert!(source.refused()[0].reason.contains(code), "{:?}", source.refused());
    }
}
