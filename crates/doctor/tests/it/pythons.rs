//! Tests of Pythons on Windows, free-threaded Pythons, and paths that are not files.

use serdes_doctor::{Environment, Kind};

use super::site::{SITE, judged, rules, venv, write};

const WINDOWS: &str = "Lib/site-packages";

/// Creates a virtual environment of Windows with a jaxlib of that tag.
fn of_windows(tag: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "pyvenv.cfg", "home = C:\\Python312\nversion = 3.12.4\n");
    write(folder.path(), "Scripts/python.exe", "");
    for (name, version) in [("jax", "0.9.2"), ("jaxlib", "0.9.1")] {
        let metadata = format!("Name: {name}\nVersion: {version}\n");
        let info = format!("{WINDOWS}/{name}-{version}.dist-info");
        write(folder.path(), &format!("{info}/METADATA"), &metadata);
    }
    write(
        folder.path(),
        &format!("{WINDOWS}/jaxlib-0.9.1.dist-info/WHEEL"),
        &format!("Tag: {tag}\n"),
    );
    folder
}

#[test]
fn environments_of_windows_are_read() {
    let folder = of_windows("cp312-cp312-win_amd64");
    for path in [folder.path().to_owned(), folder.path().join("Scripts/python.exe")] {
        let read =
            if path.is_dir() { Environment::read(&path) } else { Environment::of_python(&path) };
        let environments = read.unwrap();
        assert_eq!(environments.len(), 1);
        let environment = &environments[0];
        assert_eq!((environment.kind, environment.system), (Kind::Venv, "win32"));
        assert_eq!(environment.python.as_ref().unwrap().to_string(), "3.12.4");
        assert_eq!(environment.count, 2);
    }
    let diagnosis = judged(folder.path());
    assert_eq!(rules(&diagnosis), ["jaxlib_too_old"]);
    assert!(diagnosis.to_string().contains("Python 3.12"), "{diagnosis}");
    // A wheel for another system does not fit it.
    let linux = of_windows("cp312-cp312-manylinux_2_27_x86_64");
    assert!(rules(&judged(linux.path())).contains(&"architecture"));
}

#[test]
fn free_threaded_pythons_take_wheels_of_their_own_interface() {
    let with = |site: &str, tag: &str| {
        let folder = venv(&[]);
        write(folder.path(), "pyvenv.cfg", "home = /usr/bin\nversion = 3.13.1\n");
        let info = format!("lib/{site}/site-packages/numpy-2.3.0.dist-info");
        write(folder.path(), &format!("{info}/METADATA"), "Name: numpy\nVersion: 2.3.0\n");
        write(
            folder.path(),
            &format!("{info}/WHEEL"),
            &format!("Tag: {tag}-manylinux_2_27_x86_64\n"),
        );
        let diagnosis = judged(folder.path());
        let problems = diagnosis.problems.iter();
        let of_abi: Vec<String> = problems
            .filter(|problem| problem.rule.id() == "python_abi")
            .map(|problem| problem.message.clone())
            .collect();
        assert_eq!(diagnosis.environment.free_threaded, site.ends_with('t'));
        (of_abi, diagnosis.to_string())
    };
    for (site, tag) in [
        ("python3.13t", "cp313-cp313t"),
        ("python3.13t", "py3-none"),
        ("python3.13t", "cp313-none"),
        ("python3.13", "cp313-cp313"),
        ("python3.13", "cp310-abi3"),
    ] {
        assert!(with(site, tag).0.is_empty(), "{site} {tag}");
    }
    for (site, tag) in [
        ("python3.13t", "cp313-cp313"),
        ("python3.13t", "cp310-abi3"),
        ("python3.13t", "cp314-cp314t"),
        ("python3.13", "cp313-cp313t"),
    ] {
        assert_eq!(with(site, tag).0.len(), 1, "{site} {tag}");
    }
    let (messages, text) = with("python3.13t", "cp313-cp313");
    assert!(messages[0].ends_with("this is Python 3.13t, the free-threaded build"), "{messages:?}");
    assert!(text.contains("Python 3.13 (free-threaded)"), "{text}");
}

#[test]
fn modules_tell_a_free_threaded_python_without_tags() {
    let folder = venv(&[]);
    write(folder.path(), "pyvenv.cfg", "home = /usr/bin\nversion = 3.13.1\n");
    let site = "lib/python3.13t/site-packages";
    let with = |module: &str| {
        let info = format!("{site}/numpy-2.3.0.dist-info");
        write(folder.path(), &format!("{info}/METADATA"), "Name: numpy\nVersion: 2.3.0\n");
        write(folder.path(), &format!("{info}/RECORD"), &format!("numpy/{module},,\n"));
        write(folder.path(), &format!("{site}/numpy/{module}"), "");
        rules(&judged(folder.path()))
    };
    assert!(with("_x.cpython-313t-x86_64-linux-gnu.so").is_empty());
    assert_eq!(with("_x.cpython-313-x86_64-linux-gnu.so"), ["python_abi"]);
}

#[test]
fn prefix_with_both_pythons_of_one_number_has_two_environments() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "etc/os-release", "ID=debian\n");
    for python in ["python3.13", "python3.13t"] {
        let info = format!("usr/local/lib/{python}/site-packages/numpy-2.3.0.dist-info");
        write(folder.path(), &format!("{info}/METADATA"), "Name: numpy\nVersion: 2.3.0\n");
    }
    let labels: Vec<String> = Environment::read(folder.path())
        .unwrap()
        .iter()
        .map(|one| one.label.rsplit('(').next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(labels, ["Python 3.13)", "Python 3.13t)"]);
}

#[cfg(unix)]
#[test]
fn lock_that_is_no_regular_file_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("uv.lock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let pipe = folder.path().join("requirements.txt");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    for path in [socket.as_path(), pipe.as_path(), "/dev/zero".as_ref(), "/dev/null".as_ref()] {
        let error = Environment::read(path).unwrap_err().to_string();
        assert!(error.contains("save it as a file"), "{error}");
    }
    // A requirements file that includes the pipe is read without it.
    let locked = "-r requirements.txt\njax==0.9.2\njaxlib==0.9.2\n";
    write(folder.path(), "all.txt", locked);
    assert_eq!(Environment::read(folder.path().join("all.txt")).unwrap()[0].packages.len(), 2);
    // A pipe among the metadata of a package counts as a missing file.
    let metadata = format!("{SITE}/numpy-2.3.0.dist-info");
    let environment = venv(&[("jax", "0.9.2"), ("jaxlib", "0.9.2")]);
    std::fs::create_dir_all(environment.path().join(&metadata)).unwrap();
    let metadata = environment.path().join(metadata).join("METADATA");
    assert!(std::process::Command::new("mkfifo").arg(metadata).status().unwrap().success());
    assert_eq!(judged(environment.path()).environment.count, 3);
}
