//! Tests of lock files that are incomplete, or that cover several systems at once.

use serdes_doctor::{Environment, TablesOnly, Verdict, diagnose};

use crate::site::{judged_lock, rules, write};

/// Returns the problems of each environment that a file describes.
fn problems(name: &str, text: &str) -> Vec<Vec<&'static str>> {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), name, text);
    let environments = Environment::read(folder.path().join(name)).unwrap();
    environments.iter().map(|one| rules(&diagnose(one, &TablesOnly))).collect()
}

#[test]
fn marker_of_a_single_version_counts() {
    let text = "jax==0.9.2 ; sys_platform == 'linux'\njaxlib==0.9.2 ; sys_platform == 'linux'\n\
                jax-metal==0.1.1 ; sys_platform == 'darwin'\n";
    assert!(problems("requirements.txt", text).concat().is_empty());
    let both = "jax==0.9.2\njaxlib==0.9.2\njax-metal==0.1.1 ; sys_platform == 'darwin'\n";
    assert_eq!(problems("requirements.txt", both), [vec![], vec!["undeclared_need"]]);
}

#[test]
fn fork_of_a_python_that_a_release_leaves_out_is_none() {
    // jax 0.9.2 is for Python 3.11 and newer.
    let text = "jax==0.9.2\njaxlib==0.9.2\nnumpy==1.26.4 ; python_version < '3.11'\n\
                numpy==2.4.6 ; python_version >= '3.11'\n";
    assert_eq!(problems("requirements.txt", text), [Vec::<&str>::new()]);
}

#[test]
fn bounds_that_leave_one_python_tell_it() {
    let lock = |bounds: &str| {
        let package =
            |name: &str| format!("[[package]]\nname = \"{name}\"\nversion = \"0.12.0.1\"\n");
        let packages = [package("jax"), package("jaxlib")].concat();
        problems(
            "poetry.lock",
            &format!(
                "{packages}[metadata]\nlock-version = \"2.1\"\npython-versions = \"{bounds}\"\n"
            ),
        )
    };
    assert_eq!(lock(">=3.11,<3.12"), [["python_version"]]);
    assert!(lock(">=3.12,<3.13").concat().is_empty());
}

#[test]
fn requirements_that_an_installer_completes_lack_nothing() {
    assert_eq!(judged_lock("jax==0.9.2\n").verdict(), Verdict::Fits);
    assert_eq!(judged_lock("jax==0.9.2\njax-cuda12-plugin==0.9.2\n").verdict(), Verdict::Fits);
    assert_eq!(judged_lock("jax==0.9.2\njaxlib\n").verdict(), Verdict::Fits);
    // An installer adds no jaxlib for this release.
    assert_eq!(rules(&judged_lock("jax==0.4.29\n")), ["jaxlib_missing"]);
    // A list with all that jax requires is a list of installed packages.
    let whole = "jax==0.9.2\nnumpy==2.4.6\nscipy==1.16.3\nml-dtypes==0.6.0\n";
    assert_eq!(rules(&judged_lock(whole)), ["jaxlib_missing"]);
}

#[test]
fn many_versions_of_one_name_are_read_in_bounded_time() {
    let entry = |at: usize| {
        format!(
            "[[package]]\nname = \"jaxlib\"\nversion = \"0.{at}\"\n\
             resolution-markers = [\"python_full_version == '3.{}.1'\"]\n",
            at % 20
        )
    };
    let text: String = (0..20_000).map(entry).collect();
    let began = std::time::Instant::now();
    assert!(problems("uv.lock", &text).len() <= 16);
    assert!(began.elapsed().as_secs() < 20);
}

#[test]
fn build_of_conda_that_holds_the_plugin_is_whole() {
    let export = |build: &str| {
        let text = format!(
            "dependencies:\n  - jax=0.9.2=pyhd8ed1ab_0\n  - jaxlib=0.9.2={build}\n  - pip:\n      - jax-cuda12-pjrt==0.9.2\n"
        );
        problems("environment.yml", &text)
    };
    assert!(export("cuda129py312h2fb0b64_200").concat().is_empty());
    assert_eq!(export("cpu_py312h5b1d4fb_0"), [["plugin_half_installed"]]);
}

/// Returns the rules for a lock of uv with the given entries, each with a version and further
/// lines.
fn uv(entries: &[(&str, &str, &str)]) -> Vec<Vec<&'static str>> {
    let entry = |(name, version, more): &(&str, &str, &str)| {
        format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n{more}\n")
    };
    let text: String = entries.iter().map(entry).collect();
    problems("uv.lock", &format!("requires-python = \"==3.12.*\"\n{text}"))
}

#[test]
fn extras_and_groups_of_a_project_are_separate_installations() {
    let jax = "dependencies = [{ name = \"jaxlib\" }]\n[package.optional-dependencies]\n\
               cuda12 = [{ name = \"jax-cuda12-plugin\" }]\ncuda13 = [{ name = \"jax-cuda13-plugin\" }]\n";
    for kind in ["optional-dependencies", "dev-dependencies"] {
        let project = format!(
            "source = {{ virtual = \".\" }}\ndependencies = [{{ name = \"jax\" }}]\n[package.{kind}]\n\
             a = [{{ name = \"jax\", extra = [\"cuda12\"] }}]\nb = [{{ name = \"jax\", extra = [\"cuda13\"] }}]\n"
        );
        let lock = |plugin: &str, project: &str| {
            uv(&[
                ("jax", "0.12.0.1", jax),
                ("jaxlib", "0.12.0.1", ""),
                ("jax-cuda12-plugin", plugin, "dependencies = [{ name = \"jax-cuda12-pjrt\" }]"),
                ("jax-cuda12-pjrt", plugin, ""),
                (
                    "jax-cuda13-plugin",
                    "0.12.0.1",
                    "dependencies = [{ name = \"jax-cuda13-pjrt\" }]",
                ),
                ("jax-cuda13-pjrt", "0.12.0.1", ""),
                ("project", "0.1.0", project),
            ])
        };
        assert_eq!(lock("0.12.0.1", &project), [[""; 0]; 3], "{kind}");
        let one = lock("0.12.0", &project);
        assert_eq!(one, [vec![], vec!["plugin_jaxlib_differ"], vec![]], "{kind}");
        // Entries that nothing requires are judged together.
        assert_eq!(lock("0.12.0.1", ""), [["plugins_same_platform"]], "{kind}");
    }
}

#[test]
fn versions_of_extras_are_told_apart() {
    let project = "source = { editable = \".\" }\n[package.optional-dependencies]\n\
        new = [{ name = \"torch\", version = \"2.9.0\" }, { name = \"torch-xla\" }]\n\
        old = [{ name = \"torch\", version = \"2.8.0\" }]\n";
    let found = uv(&[
        ("torch", "2.8.0", ""),
        ("torch", "2.9.0", ""),
        ("torch-xla", "2.9.0", ""),
        ("project", "1", project),
    ]);
    assert_eq!(found, [[""; 0]; 3]);
}
