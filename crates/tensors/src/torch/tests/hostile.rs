//! Tests of small pickles that describe far more than their size, and of strings in them that are
//! not names.

use super::*;

/// Returns a pickle of a list of these values.
fn list(items: &[u8]) -> Vec<u8> {
    pickle(&[b"](", items, b"e"].concat())
}

#[test]
fn a_long_name_is_kept_once_and_not_by_every_object_of_it() {
    let name = "x".repeat(100_000);
    let class = |module: &str, name: &str| format!("c{module}\n{name}\n").into_bytes();
    // Objects of a class and tensors of a type that occur a thousand times.
    let object = [&class("evil", &name)[..], b")R"].concat();
    let marked = tensor(0, &[4], &[1]);
    let storage = format!("{name}Storage");
    let place = marked.windows(19).position(|part| part == b"ctorch\nFloatStorage").unwrap();
    let unknown = [&marked[..place], &class("torch", &storage), &marked[place + 20..]].concat();
    for value in [object, unknown] {
        let source = open_pickle(&list(&[&value[..], &b"2".repeat(999)].concat())).unwrap();
        assert_eq!(source.refused().len(), 1000);
        let said: usize = source.refused().iter().map(|refused| refused.reason.len()).sum();
        assert!(said < 1000 * 500, "{said}");
    }
}

#[test]
fn a_tensor_that_is_there_very_often_is_refused() {
    let often = |count: usize| list(&[&tensor(0, &[4], &[1])[..], &b"2".repeat(count)].concat());
    assert_eq!(open_pickle(&often(2000)).unwrap().tensors().len(), 2001);
    assert!(said(&often(50_000)).contains("far more"));
    // Other files consist of numbers only: the length of a list of numbers is not limited.
    let numbers = list(&b"K\x07".repeat(50_000));
    assert!(open_pickle(&numbers).unwrap().metadata().is_some());
}

#[test]
fn marks_and_items_of_a_tensor_are_bounded() {
    // Flags are a dict of two booleans; PyTorch writes them behind the hooks.
    let marks = |count: usize| [&b"}("[..], &b"K\x01\x89".repeat(count), b"u"].concat();
    let plain = tensor(0, &[4], &[1]);
    let marked = |count| [&plain[..plain.len() - 2], &marks(count)[..], b"tR"].concat();
    assert!(open_pickle(&pickle(&marked(2))).is_ok());
    assert!(said(&pickle(&marked(1000))).contains("a tensor with 1000 marks"));
    // A dict is built from pairs only, so that nothing is skipped again and again.
    let dict =
        |items: &[u8]| pickle(&[b"ccollections\nOrderedDict\n](", items, b"e\x85R"].concat());
    assert!(open_pickle(&dict(b"K\x01K\x02\x86")).is_ok());
    assert!(said(&dict(b"K\x01")).contains("a key and a value"));
}

#[test]
fn words_of_a_pickle_do_nothing_to_a_terminal() {
    let evil = pickle(b"cevil\n\x1b]0;owned\x07\n)R");
    let said = said(&evil);
    assert!(said.contains(r"\u{1b}]0;owned\u{7}") && !said.contains('\u{1b}'), "{said:?}");
    let source = open_pickle(&list(b"cevil\n\x1b[2J\n)R")).unwrap();
    let reason = &source.refused()[0].reason;
    assert!(reason.contains(r"\u{1b}[2J") && !reason.contains('\u{1b}'), "{reason:?}");
}

#[test]
fn entries_of_an_archive_that_lie_over_each_other_are_damage() {
    let pickle = pickle(&tensor(0, &[4], &[1]));
    let storage = storage();
    let entries = [("m/data.pkl", &pickle[..]), ("m/data/0", &storage), ("m/data/1", &storage)];
    let whole = archive(&entries, CompressionMethod::Stored);
    assert!(open_bytes(whole.clone()).is_ok());
    let places = |mark: &[u8]| {
        let at = |(place, part): (usize, &[u8])| (part == mark).then_some(place);
        whole.windows(4).enumerate().filter_map(at).collect::<Vec<_>>()
    };
    // In the directory the third entry gets the offset of the second.
    let (headers, records) = (places(b"PK\x03\x04"), places(b"PK\x01\x02"));
    let mut shared = whole.clone();
    shared[records[2] + 42..][..4].copy_from_slice(&(headers[1] as u32).to_le_bytes());
    let said = open_bytes(shared).err().unwrap().to_string();
    assert!(said.contains("over another entry"), "{said}");
}
