//! Programs that read a release: pip, the measuring scripts, the command `serdes`.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    str::FromStr as _,
};

use pep440_rs::Version;
use serde::Deserialize;
use serdes_releases::JaxlibRelease;

use super::{pins::Declared, task_result::TaskResult};

const MEASURE: &str = "crates/releases/measure";
const DELTAS: &str = "tests/data/tensorflow/ops/deltas.json";
const SYMBOLS: &str = "crates/stream-executor/src/load/tensorflow_symbols.txt";

/// The programs, and their working folders.
#[derive(Debug)]
pub(super) struct Tools {
    root: PathBuf,
    cache: PathBuf,
    python: String,
    serdes: PathBuf,
}

/// Returns true if a file is a wheel for this Python, or for more than one.
fn is_wheel_of(path: &Path, python: &str) -> bool {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let own = format!("cp{}", python.replace('.', ""));
    let mut tags = stem.rsplit('-');
    let (_platform, abi, of) = (tags.next(), tags.next(), tags.next());
    let takes_any = abi.is_some_and(|abi| matches!(abi, "none" | "abi3"));
    path.extension().is_some_and(|suffix| suffix == "whl") && (takes_any || of == Some(&own))
}

/// Versions of TensorFlow's graphs.
#[derive(Debug, Deserialize)]
pub(super) struct GraphVersions {
    pub(super) graph_def: i32,
    pub(super) day: String,
}

impl Tools {
    /// Finds the programs for a tree: the Python in `PYTHON`, and the command in `SERDES` or of the
    /// last build.
    pub(super) fn new(root: &Path) -> TaskResult<Self> {
        let root = fs::canonicalize(root)?;
        let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".cache/serdes-ci"));
        let cache = env::var_os("SERDES_CI_CACHE").map(PathBuf::from).or_else(home);
        let cache =
            cache.ok_or("neither SERDES_CI_CACHE nor HOME is set: wheels are kept there")?;
        Ok(Self {
            serdes: env::var_os("SERDES")
                .map_or_else(|| root.join("target/debug/serdes"), PathBuf::from),
            python: env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned()),
            root,
            cache,
        })
    }

    /// Returns the output of a command.
    fn output(&self, command: &mut Command) -> TaskResult<String> {
        let output = command
            .current_dir(&self.root)
            .stderr(std::process::Stdio::inherit())
            .output()
            .map_err(|error| format!("{command:?} cannot be run: {error}"))?;
        if !output.status.success() {
            return Err(format!("{command:?} failed: {}", output.status).into());
        }
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    fn script(&self, python: &str, name: &str) -> Command {
        let mut command = Command::new(python);
        command.arg(self.root.join(MEASURE).join(name));
        command
    }

    /// Returns the stable versions of a package on PyPI.
    pub(super) fn versions(&self, package: &str) -> TaskResult<Vec<Version>> {
        let mut command = Command::new(&self.python);
        let output = self.output(command.args(["-m", "pip", "index", "versions", package]))?;
        let list = output.lines().find_map(|line| line.strip_prefix("Available versions: "));
        let list = list.ok_or_else(|| format!("pip lists no versions of {package}: {output}"))?;
        Ok(list.split(", ").filter_map(|one| Version::from_str(one).ok()).collect())
    }

    /// Returns a wheel of a release for Linux on x86-64, which is downloaded once.
    pub(super) fn wheel(&self, package: &str, version: &str, python: &str) -> TaskResult<PathBuf> {
        let folder = self.cache.join("upstream").join(format!("{package}-{version}"));
        let wheel = || {
            let entries = fs::read_dir(&folder).ok()?;
            let mut paths = entries.flatten().map(|entry| entry.path());
            paths.find(|path| is_wheel_of(path, python))
        };
        if let Some(wheel) = wheel() {
            return Ok(wheel);
        }
        let mut command = Command::new(&self.python);
        command.args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]);
        command.args(["--python-version", python, "--dest"]).arg(&folder);
        for platform in [
            "manylinux_2_17",
            "manylinux2014",
            "manylinux_2_27",
            "manylinux_2_28",
            "manylinux_2_31",
        ] {
            command.args(["--platform", &format!("{platform}_x86_64")]);
        }
        self.output(command.arg(format!("{package}=={version}")))?;
        wheel().ok_or_else(|| format!("{} has no wheel", folder.display()).into())
    }

    /// Returns the declarations of a wheel.
    pub(super) fn declared(&self, wheel: &Path) -> TaskResult<Declared> {
        let output = self.output(self.script(&self.python, "read_wheel.py").arg(wheel))?;
        Ok(serde_json::from_str(&output)?)
    }

    /// Returns the Python of an environment outside the tree, which is created if needed. Also uses
    /// one of the interop suite with another build of the release.
    pub(super) fn environment(&self, name: &str, packages: &[&str]) -> TaskResult<String> {
        let folder = self.cache.join("venvs").join(name);
        let (package, version) = name.rsplit_once('-').unwrap_or((name, ""));
        let installed = fs::read_to_string(folder.join("complete")).unwrap_or_default();
        let is_it = |one: &str| one.starts_with(package) && one.ends_with(&format!("=={version}"));
        if installed.split_whitespace().any(is_it) {
            return Ok(folder.join("bin/python").display().to_string());
        }
        let mut command = Command::new(self.root.join(".ci/environment"));
        self.output(command.arg(name).arg(&self.python).args(packages))
    }

    /// Returns the row of the jaxlib in an environment.
    pub(super) fn measured_jaxlib(&self, python: &str) -> TaskResult<JaxlibRelease> {
        let output = self.output(&mut self.script(python, "measure_jaxlib.py"))?;
        let row = output.lines().last().unwrap_or_default();
        Ok(serde_json::from_str(row)?)
    }

    /// Returns the newest minor of PJRT whose layouts are known.
    pub(super) fn newest_layout(&self) -> TaskResult<u32> {
        #[derive(Deserialize)]
        struct Layouts {
            minors: Vec<(u32, String, u32, u32)>,
        }
        let text = fs::read_to_string(self.root.join("crates/abi/pjrt.json"))?;
        let layouts: Layouts = serde_json::from_str(&text)?;
        Ok(layouts.minors.last().map_or(0, |(minor, ..)| *minor))
    }

    /// Returns the PJRT minor of the plug-in in a wheel, read from its file.
    pub(super) fn plugin_minor(&self, wheel: &Path) -> TaskResult<u32> {
        #[derive(Deserialize)]
        struct Inspected {
            pjrt_version: Option<String>,
        }
        let folder = self.cache.join("wheels/library");
        fs::create_dir_all(&folder)?;
        let mut command = self.script(&self.python, "read_wheel.py");
        let library = self.output(command.arg(wheel).arg("--library").arg(&folder))?;
        if !self.serdes.is_file() {
            self.output(Command::new("cargo").args(["build", "--quiet", "-p", "serdes-cli"]))?;
        }
        let mut command = Command::new(&self.serdes);
        let output = self.output(command.args(["plugin", "inspect", &library, "--json"]));
        fs::remove_file(&library)?;
        let found: Inspected = serde_json::from_str(output?.lines().next().unwrap_or_default())?;
        let version = found.pjrt_version.ok_or("the library tells no PJRT version in its file")?;
        let minor = version.rsplit('.').next().unwrap_or_default();
        Ok(minor.parse()?)
    }

    /// Writes the tables of TensorFlow's operations and functions for the release in an
    /// environment. Returns the files.
    pub(super) fn tensorflow_tables(
        &self,
        python: &str,
        version: &str,
    ) -> TaskResult<[&'static str; 3]> {
        let release = version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
        let symbols = fs::read_to_string(self.root.join(SYMBOLS))?;
        let known = symbols.lines().find_map(|line| line.strip_prefix("# releases: "));
        let known: Vec<&str> = known.unwrap_or_default().split(' ').collect();
        let mut command = Command::new(python);
        command.args(["tests/interop/tensorflow_ops.py", "--delta", DELTAS]);
        self.output(&mut command)?;
        let mut command = Command::new("cargo");
        self.output(command.args(["xtask", "ops"]))?;
        if !known.contains(&release.as_str()) {
            let newest = known.last().copied().unwrap_or_default();
            let mut command = Command::new(python);
            command.arg("tests/interop/tensorflow_symbols.py").arg("--serdes").arg(&self.serdes);
            self.output(command.args(["--add", newest]))?;
        }
        Ok([DELTAS, "crates/operations/src/tensorflow.ops", SYMBOLS])
    }

    /// Removes the release in an environment from the tables of TensorFlow.
    pub(super) fn remove_tensorflow(&self, python: &str, version: &str) -> TaskResult<()> {
        let release = version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
        let mut command = Command::new(python);
        command.args(["tests/interop/tensorflow_symbols.py", "--remove", &release]);
        self.output(&mut command)?;
        let mut command = Command::new(python);
        command.args(["tests/interop/tensorflow_ops.py", "--delta", DELTAS, "--remove"]);
        self.output(&mut command)?;
        self.output(Command::new("cargo").args(["xtask", "ops"])).map(drop)
    }

    /// Returns the graph versions of a TensorFlow.
    pub(super) fn graph_versions(&self, python: &str) -> TaskResult<GraphVersions> {
        // The number has grown by one per day since that day.
        const ASKS: &str = "import datetime, json, tensorflow as tf\n\
            number = tf.version.GRAPH_DEF_VERSION\n\
            day = datetime.date(2019, 4, 9) + datetime.timedelta(days=number)\n\
            print(json.dumps({'graph_def': number, 'day': str(day)}))";
        let output = self.output(Command::new(python).args(["-c", ASKS]))?;
        Ok(serde_json::from_str(output.lines().last().unwrap_or_default())?)
    }

    /// Returns the commands that build and test the users of the tables after writing, since the
    /// old tables are built in until then.
    pub(super) fn build_and_test(&self, package: &str) -> Vec<String> {
        let mut commands = Vec::new();
        if env::var_os("SERDES").is_none() {
            commands.push("cargo build --quiet -p serdes-cli".to_owned());
        }
        let tests: &[&str] = match package {
            "tensorflow" => &["-p serdes-operations", "-p serdes-graphs --test it"],
            "jaxlib" => &["-p serdes-releases", "-p serdes-jax-artifacts --test it"],
            _ => &["-p serdes-releases"],
        };
        commands.extend(tests.iter().map(|test| format!("cargo test --quiet {test}")));
        commands
    }

    /// Returns the commands of the interop suite for a release.
    pub(super) fn interop_commands(&self, environment: &str) -> Vec<String> {
        let python = self.cache.join("venvs").join(environment).join("bin/python");
        let (python, serdes) = (python.display(), self.serdes.display());
        if environment.starts_with("jaxlib-") {
            return vec![
                format!("{python} {MEASURE}/measure_jaxlib.py --check"),
                format!("{python} tests/interop/jaxlib_convert.py --serdes {serdes}"),
            ];
        }
        ["tensorflow_ops", "tensorflow_symbols", "tensorflow_verdicts"]
            .map(|script| format!("{python} tests/interop/{script}.py --serdes {serdes}"))
            .to_vec()
    }

    /// Runs a command line; returns true if it succeeded.
    pub(super) fn shell(&self, line: &str) -> TaskResult<bool> {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(&self.root).stdout(std::process::Stdio::null());
        Ok(command.status()?.success())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wheels_of_another_python_are_not_taken() {
        let is_of_311 = |name: &str| is_wheel_of(Path::new(name), "3.11");
        assert!(is_of_311("tensorflow-2.21.0-cp311-cp311-manylinux_2_27_x86_64.whl"));
        assert!(!is_of_311("tensorflow-2.21.0-cp312-cp312-manylinux_2_27_x86_64.whl"));
        assert!(is_of_311("jax-0.12.0.1-py3-none-any.whl"));
        assert!(!is_of_311("jax-0.12.0.1.tar.gz"));
    }
}
