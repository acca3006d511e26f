//! Tests of `serdes man`: manual pages.

use crate::testkit::{printed, serdes, status};

#[test]
fn manual_pages_are_made_for_every_command() {
    let page = serdes(&["man"]);
    assert_eq!(status(&page), 0, "{page:?}");
    assert!(printed(&page).contains(".TH serdes 1"), "{page:?}");
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    let written = serdes(&["man", "--directory", pages.to_str().unwrap()]);
    assert_eq!(status(&written), 0, "{written:?}");
    let page = std::fs::read_to_string(pages.join("serdes-plugin-verify.1")).unwrap();
    assert!(page.contains(".TH serdes-plugin-verify 1") && page.contains("known"), "{page}");
}
