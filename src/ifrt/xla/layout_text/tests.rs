use proptest::prelude::*;

use super::*;
use crate::codec::DeserializeOptions;

#[test]
fn the_notation_of_hlo_is_read_and_printed() {
    for text in [
        "{}",
        "{0}",
        "{1,0}",
        "{1,0:T(8,128)}",
        "{1,0:T(8,128)(2,1)}",
        "{2,1,0:T(*,8,128)}",
        "{1,0:T(8,128)E(4)S(5)}",
        "{0:L(1024)E(4)}",
        "{1,0:D(D,C)#(u32)*(u32)}",
        "{1,0:D(C+~,S~)}",
        "{1,0:S(1)SC(0:2,4)(1:8)}",
        "{1,0:D(C,H)P(s32[4,<=8]{1,0:T(2)})M(8)}",
        "{:T(4)}",
    ] {
        let layout: Layout = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(layout.to_string(), text);
        let proto = layout.to_proto();
        assert_eq!(Layout::from_proto(&proto, &DeserializeOptions::new()), Ok(layout), "{text}");
    }
}

#[test]
fn blanks_are_allowed_between_tokens() {
    let layout: Layout = " { 1, 0 : T ( 8, 128 ) S( 5 ) } ".parse().unwrap();
    assert_eq!(layout.to_string(), "{1,0:T(8,128)S(5)}");
}

#[test]
fn an_error_says_where_the_text_stops_being_a_layout() {
    for (text, position) in [
        ("", 0),
        ("1,0", 0),
        ("{1,0", 4),
        ("{1 0}", 3),
        ("{1,0}x", 5),
        ("{1,1}", 1),
        ("{2,0}", 1),
        ("{1,0:Q(1)}", 5),
        ("{1,0:S(5)T(8)}", 9),
        ("{1,0:T8}", 6),
        ("{1,0:E()}", 7),
        ("{1,0:#(f99)}", 7),
        ("{1,0:D(X)}", 7),
        ("{99999999999999999999}", 1),
        ("{1,0:T(8,128}", 12),
    ] {
        let error = text.parse::<Layout>().unwrap_err();
        assert_eq!(error.position, position, "{text}: {error}");
    }
}

#[test]
fn nested_physical_shapes_and_long_texts_are_bounded() {
    let deep = "{:P(f32[]".repeat(1000);
    assert!(deep.parse::<Layout>().unwrap_err().problem.contains("nest deeper"));
    let long = format!("{{0:T({})}}", "1,".repeat(LONGEST_TEXT));
    assert!(long.parse::<Layout>().unwrap_err().problem.contains("the limit is"));
}

fn layouts() -> impl Strategy<Value = Layout> {
    let numbers = || prop::collection::vec(any::<i64>(), 0..4);
    let order = (0_i64..6).prop_flat_map(|rank| Just((0..rank).collect::<Vec<_>>()).prop_shuffle());
    (
        order,
        prop::collection::vec(numbers(), 0..3),
        any::<[i64; 4]>(),
        prop::collection::vec((any::<i64>(), prop::collection::vec(0_i64..9, 0..3)), 0..3),
        0..PrimitiveType::ALL.len(),
    )
        .prop_map(|(order, tiles, numbers, splits, kind)| Layout {
            minor_to_major: order,
            tiles: tiles.into_iter().map(Tile::new).collect(),
            tail_padding_alignment_in_elements: numbers[0].max(1),
            element_size_in_bits: numbers[1].max(0),
            memory_space: numbers[2].max(0),
            dynamic_shape_metadata_prefix_bytes: numbers[3].max(0),
            split_configs: splits
                .into_iter()
                .map(|(at, list)| SplitConfig::new(at, list))
                .collect(),
            index_primitive_type: PrimitiveType::ALL[kind],
            ..Layout::default()
        })
}

proptest! {
    #[test]
    fn every_layout_makes_both_round_trips(layout in layouts()) {
        prop_assert_eq!(layout.to_string().parse::<Layout>(), Ok(layout.clone()));
        let strict = DeserializeOptions::new().with_validation(crate::codec::Validation::Strict);
        prop_assert_eq!(Layout::from_proto(&layout.to_proto(), &strict), Ok(layout));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[{}0-9,:TLESCPMD()#*+~<=a-z\\[\\] -]{0,40}") {
        let _ = text.parse::<Layout>();
    }
}
