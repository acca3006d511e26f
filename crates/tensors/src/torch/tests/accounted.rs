//! Tests of files that contain several files.

use super::*;

fn whole() -> Vec<u8> {
    let pickle = pickle(&tensor(0, &[4], &[1]));
    archive(&[("m/data.pkl", &pickle), ("m/data/0", &storage())], CompressionMethod::Stored)
}

fn said_of(bytes: Vec<u8>, path: &str) -> String {
    open_at(Arc::new(bytes), path, Some(Form::Torch)).err().unwrap().to_string()
}

#[test]
fn torch_bytes_that_belong_to_no_archive_are_refused() {
    let whole = whole();
    assert!(open_bytes(whole.clone()).is_ok());
    let two = [&whole[..], &whole].concat();
    let said = said_of(two, "x.pt");
    assert!(said.contains(&format!("{} bytes before the archive", whole.len())), "{said}");
    for bytes in [[b"x", &whole[..]].concat(), [&whole[..], b"x"].concat()] {
        assert!(open_bytes(bytes).is_err());
    }
    // Files of real PyTorch, with longer numbers at their end.
    for release in releases() {
        let one = fs::read(release.join("views.pt")).unwrap_or_else(|_| whole.clone());
        let said = said_of([&one[..], &one].concat(), "x.pt");
        assert!(said.contains(&format!("{} bytes before", one.len())), "{said}");
    }
}

#[test]
fn torch_gaps_between_entries_are_padding_or_refused() {
    let whole = whole();
    let second = whole.windows(4).rposition(|four| four == b"PK\x03\x04").unwrap();
    let list = whole.windows(4).position(|four| four == b"PK\x01\x02").unwrap();
    let with_gap = |gap: &[u8]| {
        let mut bytes = [&whole[..second], gap, &whole[second..]].concat();
        let moved = gap.len() as u32;
        let entry = bytes.windows(4).rposition(|four| four == b"PK\x01\x02").unwrap();
        let end = bytes.len() - 22;
        bytes[entry + 42..entry + 46].copy_from_slice(&(second as u32 + moved).to_le_bytes());
        bytes[end + 16..end + 20].copy_from_slice(&(list as u32 + moved).to_le_bytes());
        open_bytes(bytes)
    };
    assert!(with_gap(&[]).is_ok() && with_gap(&[0; 63]).is_ok());
    for gap in [&b"x"[..], &[0; 5000], b"PK\x07\x08 and no more"] {
        let said = with_gap(gap).err().unwrap().to_string();
        assert!(said.contains("belong to no archive"), "{said}");
    }
}

#[test]
fn torch_legacy_files_that_are_two_in_one_are_refused() {
    for release in releases() {
        let one = fs::read(release.join("views_legacy.pt")).unwrap();
        let said = said_of([&one[..], &one].concat(), "x.pt");
        assert!(said.contains(&format!("{} bytes behind its last storage", one.len())), "{said}");
    }
}

#[test]
fn torch_files_that_are_cut_off_or_pages_say_so() {
    let whole = whole();
    let said = said_of(whole[..whole.len() / 2].to_vec(), "x.pt");
    assert!(said.contains("cut off") && said.contains("fetch it again"), "{said}");
    let said = said_of(b"\n<html><body>sign in</body></html>".to_vec(), "x.pt");
    assert!(said.contains("page of HTML") && said.contains("fetch"), "{said}");
}

#[test]
fn torch_parts_of_a_distributed_checkpoint_are_named() {
    let said = said_of(whole(), "__0_0.distcp");
    assert!(said.contains("torch.distributed") && said.contains("name the folder"), "{said}");
}
