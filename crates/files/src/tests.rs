use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use super::*;

/// Returns bytes without a pattern, so that swapped ranges are noticed.
pub(crate) fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let step = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u8
    };
    std::iter::repeat_with(step).take(bytes).collect()
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Returns the partial file of a replacement.
fn partial_of(directory: &Path) -> PathBuf {
    let partial = names(directory).into_iter().find(|name| name.ends_with(".partial"));
    directory.join(partial.unwrap())
}

fn replace(target: &Path) -> Result<(), Error> {
    let replacement = Replacement::create(target)?;
    replacement.file().write_all(b"new").unwrap();
    replacement.finish(Durability::None).map(drop)
}

#[test]
fn the_target_appears_at_the_end_only() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("a.sds");
    fs::write(&target, "old").unwrap();
    let replacement = Replacement::create(&target).unwrap();
    replacement.file().write_all(b"new").unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"old");
    replacement.finish(Durability::Data).unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"new");
    assert_eq!(names(directory.path()), ["a.sds"]);
}

#[test]
fn a_dropped_replacement_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("a.sds");
    drop(Replacement::create(&target).unwrap());
    assert!(names(directory.path()).is_empty());
}

#[test]
fn leftovers_of_the_dead_go_and_those_of_the_living_stay() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("a.sds");
    let dead = directory.path().join(".a.sds.0123456789abcdef.partial");
    let foreign = directory.path().join(".a.sds.mine.partial");
    fs::write(&dead, "").unwrap();
    fs::write(&foreign, "").unwrap();
    let first = Replacement::create(&target).unwrap();
    let second = Replacement::create(&target).unwrap();
    assert!(!dead.exists());
    assert!(foreign.exists());
    assert!(first.partial().exists());
    second.finish(Durability::None).unwrap();
    first.finish(Durability::None).unwrap();
    assert_eq!(names(directory.path()), [".a.sds.mine.partial", "a.sds"]);
}

#[test]
fn a_directory_is_no_target() {
    let directory = tempfile::tempdir().unwrap();
    assert!(Replacement::create(directory.path()).is_err());
    let target = directory.path().join("a/");
    let error = Replacement::create(&target).unwrap_err();
    assert!(error.source.to_string().contains("separator"), "{error:?}");
}

#[cfg(unix)]
mod unix {
    use std::{
        ffi::OsString,
        os::unix::{
            ffi::OsStringExt,
            fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink},
            net::UnixListener,
        },
        sync::mpsc,
        thread,
        time::Duration,
    };

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn pipe(path: &Path) {
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }

    #[test]
    fn special_file_is_no_target_and_stays() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("socket");
        let _listener = UnixListener::bind(&target).unwrap();
        let error = Replacement::create(&target).unwrap_err();
        assert!(error.source.to_string().contains("a pipe or a device"), "{error:?}");
        assert!(fs::metadata(&target).unwrap().file_type().is_socket());
        assert_eq!(names(directory.path()), ["socket"]);
    }

    #[test]
    fn target_that_became_a_pipe_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a.sds");
        let replacement = Replacement::create(&target).unwrap();
        pipe(&target);
        assert!(replacement.finish(Durability::None).is_err());
        assert!(fs::metadata(&target).unwrap().file_type().is_fifo());
        assert_eq!(names(directory.path()), ["a.sds"]);
    }

    #[test]
    fn ways_to_what_is_open_elsewhere_are_no_targets() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("link");
        symlink("/dev/stdout", &link).unwrap();
        let open = fs::File::create(directory.path().join("open")).unwrap();
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&open);
        let by_number = [format!("/dev/fd/{descriptor}"), format!("/proc/self/fd/{descriptor}")];
        let by_name = ["/dev/stdout", "/dev/stderr", "/proc/self/fd/1", "/dev/new", "/dev/null"];
        let paths = by_name.iter().map(PathBuf::from).chain(by_number.map(PathBuf::from));
        for path in paths.chain([link]) {
            // On other systems than Linux some of them do not exist.
            let error = Replacement::create(&path).unwrap_err();
            let text = error.source.to_string();
            assert!(cfg!(not(target_os = "linux")) || text.contains("stands for"), "{error:?}");
        }
        assert_eq!(names(directory.path()), ["link", "open"]);
    }

    #[test]
    fn shared_memory_is_a_place_as_any_other() {
        let Ok(directory) = tempfile::tempdir_in("/dev/shm") else { return };
        replace(&directory.path().join("a.sds")).unwrap();
        assert_eq!(names(directory.path()), ["a.sds"]);
    }

    #[test]
    fn links_are_replaced_where_they_point() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        fs::create_dir(place("deep")).unwrap();
        symlink("second", place("first")).unwrap();
        symlink("deep/a.sds", place("second")).unwrap();
        symlink("loop", place("loop")).unwrap();
        // First without and then with an existing file; a dead saver's leftovers are removed each
        // time.
        for _ in 0..2 {
            let dead = place("deep/.a.sds.0123456789abcdef.partial");
            fs::write(&dead, "").unwrap();
            replace(&place("first")).unwrap();
            assert!(place("first").is_symlink() && place("second").is_symlink());
            assert_eq!(names(&place("deep")), ["a.sds"]);
        }
        assert!(Replacement::create(&place("loop")).is_err());
        assert!(place("loop").is_symlink());
        symlink("nowhere/a.sds", place("third")).unwrap();
        assert!(Replacement::create(&place("third")).is_err());
    }

    #[test]
    fn partial_file_is_private_and_its_successor_has_the_old_mode() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("secret.sds");
        for old in [0o600, 0o640, 0o644, 0o444] {
            fs::write(&target, "old").unwrap();
            set_mode(&target, old);
            let replacement = Replacement::create(&target).unwrap();
            assert_eq!(mode(&partial_of(directory.path())), 0o600);
            replacement.finish(Durability::None).unwrap();
            assert_eq!(mode(&target), old);
            fs::remove_file(&target).unwrap();
        }
        // A new file has the mode of any new file in this directory.
        let plain = directory.path().join("plain");
        fs::write(&plain, "").unwrap();
        let replacement = Replacement::create(&target).unwrap();
        assert_eq!(mode(&partial_of(directory.path())), 0o600);
        replacement.finish(Durability::None).unwrap();
        assert_eq!(mode(&target), mode(&plain));
        assert_eq!(names(directory.path()), ["plain", "secret.sds"]);
    }

    #[test]
    fn a_new_file_may_have_a_model() {
        let directory = tempfile::tempdir().unwrap();
        let model = directory.path().join("model");
        fs::write(&model, "").unwrap();
        set_mode(&model, 0o600);
        let target = directory.path().join("a");
        let replacement = Replacement::create(&target).unwrap().modelled_on(&model).unwrap();
        replacement.finish(Durability::None).unwrap();
        assert_eq!(mode(&target), 0o600);
        // The mode of an existing file of the same name takes precedence.
        set_mode(&target, 0o640);
        let replacement = Replacement::create(&target).unwrap().modelled_on(&model).unwrap();
        replacement.finish(Durability::None).unwrap();
        assert_eq!(mode(&target), 0o640);
    }

    #[test]
    fn the_owner_and_the_group_are_kept_where_the_system_lets_us() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a.sds");
        fs::write(&target, "old").unwrap();
        // Only a privileged process may change the owner; otherwise the file keeps its owner.
        let _ = std::os::unix::fs::chown(&target, Some(1234), Some(4321));
        let old = fs::metadata(&target).unwrap();
        replace(&target).unwrap();
        let new = fs::metadata(&target).unwrap();
        assert_eq!((new.uid(), new.gid(), new.mode()), (old.uid(), old.gid(), old.mode()));
        assert_ne!(new.ino(), old.ino());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn extended_attributes_are_kept() {
        use rustix::fs::{XattrFlags, getxattr, setxattr};

        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a.sds");
        fs::write(&target, "old").unwrap();
        if setxattr(&target, "user.run", b"seven", XattrFlags::empty()).is_err() {
            return; // A file system without them.
        }
        replace(&target).unwrap();
        let mut value = [0; 16];
        let length = getxattr(&target, "user.run", &mut value[..]).unwrap();
        assert_eq!(&value[..length], b"seven");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_access_list_is_kept_and_so_are_the_bits_that_bound_it() {
        use rustix::fs::{XattrFlags, getxattr, setxattr};

        // Entries of tag, permissions and id: the owner, a user, the group, the mask, others.
        let entries: [(u16, u16, u32); 5] =
            [(1, 6, !0), (2, 6, 1234), (4, 0, !0), (16, 6, !0), (32, 0, !0)];
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (tag, rights, id) in entries {
            list.extend(tag.to_le_bytes().iter().chain(&rights.to_le_bytes()));
            list.extend(id.to_le_bytes());
        }
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a.sds");
        fs::write(&target, "old").unwrap();
        let name = "system.posix_acl_access";
        if setxattr(&target, name, &list, XattrFlags::empty()).is_err() {
            return; // A file system without them.
        }
        assert_eq!(mode(&target), 0o660);
        replace(&target).unwrap();
        let mut found = [0; 256];
        let length = getxattr(&target, name, &mut found[..]).unwrap();
        assert_eq!(found[..length], list);
        assert_eq!(mode(&target), 0o660);
    }

    #[test]
    fn partial_name_that_is_a_link_or_pipe_is_not_opened() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        fs::write(place("precious"), "precious").unwrap();
        let (as_pipe, as_link) =
            (place(".v.sds.0123456789abcdef.partial"), place(".v.sds.fedcba9876543210.partial"));
        pipe(&as_pipe);
        symlink(place("precious"), &as_link).unwrap();
        fs::create_dir(place(".v.sds.0000000000000000.partial")).unwrap();
        let (done, waiting) = mpsc::channel();
        let target = place("v.sds");
        thread::spawn(move || done.send(replace(&target)));
        // If the replacement blocks forever, the limit ends the test.
        waiting.recv_timeout(Duration::from_secs(60)).unwrap().unwrap();
        assert!(fs::symlink_metadata(&as_pipe).unwrap().file_type().is_fifo());
        assert!(as_link.is_symlink());
        assert_eq!(fs::read(place("precious")).unwrap(), b"precious");
        assert_eq!(fs::read(place("v.sds")).unwrap(), b"new");
    }

    #[test]
    fn names_as_long_as_names_are_and_names_that_are_no_text_work() {
        let directory = tempfile::tempdir().unwrap();
        let mut targets: Vec<OsString> =
            [228, 229, 230, 240, 255].map(|length| "x".repeat(length).into()).into();
        if cfg!(target_os = "linux") {
            targets.push(OsString::from_vec(b"weights-\xff\xfe.sds".to_vec()));
            targets.push(OsString::from_vec(vec![0xff; 255]));
        }
        for name in targets {
            let target = directory.path().join(&name);
            // A dead saver, followed by two saves.
            let dead = Replacement::create(&target).unwrap();
            let path = dead.partial().to_owned();
            drop(dead);
            fs::write(&path, "dead").unwrap();
            replace(&target).unwrap();
            replace(&target).unwrap();
            let left: Vec<OsString> =
                fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
            assert_eq!(left, std::slice::from_ref(&name));
            fs::remove_file(&target).unwrap();
        }
        let longer = directory.path().join("x".repeat(256));
        assert!(Replacement::create(&longer).is_err());
        assert!(names(directory.path()).is_empty());
    }
}

#[test]
fn no_saver_takes_the_partial_file_of_another_for_a_leftover() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("a.sds");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..200).for_each(|_| replace(&target).unwrap()));
        }
    });
    assert_eq!(fs::read(&target).unwrap(), b"new");
    assert_eq!(names(directory.path()), ["a.sds"]);
}
