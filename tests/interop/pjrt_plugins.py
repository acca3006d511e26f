"""Tests real PJRT plug-ins from PyPI: plug-ins that compute without an accelerator through the host of this project, and plug-ins of vendors
without their hardware.

The first are inspected without loading, loaded, asked for their devices, and given arrays of every type of their version, which must come
back bit for bit (by the example `pjrt_devices`); then the command runs its conformance suite on them, whose failures are known. The
others are inspected, checked and judged for frameworks, among them pairs that do not fit according to users' reports. The libraries
are kept in a cache outside the tree, only the largest of each package. SERDES_FULL tests more of the large packages.

A package index may be slow or unavailable: there are time limits for each package and for a run. A package that cannot be fetched is named and
left out, which is a failure only if it is one of those that compute here.
"""

import argparse
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

from checks import Checks

# Behaviours in which real plug-ins end the process, and which the host of this project never causes.
ENDS = {"pjrt_short_arguments_with_type", "pjrt_unknown_type", "pjrt_no_compile_options"}

# Package, version, minor of the interface, size of its table, number of element types that come back unchanged, releases of jaxlib that fit or
# do not, behaviours in which it fails.
PLUGINS = [
    ("xla-cpu-pjrt", "0.0.1", 81, 984, 28, {"jaxlib-0.8.1": True, "jaxlib-0.6.2": False, "jaxlib-0.4.30": False}, ENDS | {"pjrt_option_of_another_type"}),
    ("fastatomstruct-xla-cpu", "2026.6.23", 106, 1128, 30, {"jaxlib-0.9.1": True, "jaxlib-0.6.2": False}, ENDS | {"pjrt_option_of_another_type"}),
    ("lammps-jax-pjrt-cpu", "0.11.2", 115, 1144, 32, {"jaxlib-0.12.0.1": True, "jaxlib-0.8.0": True, "jaxlib-0.5.0": False}, ENDS),
]

# Functions that the host uses and an older plug-in lacks, by minor.
MISSING = {
    81: [
        "PJRT_Error_ForEachPayload",
        "PJRT_Device_ClearMemoryStats",
        "PJRT_Buffer_CopyRawToHostFuture",
        "PJRT_Client_Load",
        "PJRT_Executable_ParameterMemoryKinds",
        "PJRT_TopologyDescription_Fingerprint",
    ],
}

# Result of a raw read whose memory is given later, by minor.
MEMORY_LATER = {81: "absent", 106: "true", 115: "true"}

X86, ARM = "x86_64", "aarch64"


def vendor(package, version, platform, minor, size, frameworks, status, words, python="3.11", is_large=False):
    """Describes a plug-in without its hardware: its file, the frameworks that fit, and the status and message of `plugin check`."""
    return dict(locals())


VENDORS = [
    # jax#22416: jaxlib 0.4.28 (PJRT 0.51) accepts no plug-in of 0.54.
    vendor("jax-cuda12-pjrt", "0.4.30", f"manylinux2014_{X86}", 54, 808,
           {"jaxlib-0.4.30": None, "jaxlib-0.4.28": "minors_differ", "jaxlib-0.10.2": None}, 0, "No visible GPU devices"),
    vendor("jax-cuda12-pjrt", "0.4.28", f"manylinux2014_{ARM}", 51, 808, {"jaxlib-0.4.28": None, "jaxlib-0.4.30": "minors_differ"}, 2, "it is for aarch64"),
    vendor("intel-extension-for-openxla", "0.3.0", f"manylinux2014_{X86}", 40, 808, {"jaxlib-0.4.24": None, "jaxlib-0.4.26": "minors_differ", "jaxlib-0.5.0": None}, 2, "cannot open shared object"),
    vendor("jax-rocm60-pjrt", "0.4.35", f"manylinux_2_28_{X86}", 55, 808, {"jaxlib-0.4.35": None, "jaxlib-0.4.31": "minors_differ"}, 2, "cannot open shared object"),
    # It ends the process if there is no chip.
    vendor("jax-tt-plugin", "0.1.1", f"manylinux_2_34_{X86}", 114, 1144, {"jaxlib-0.11.0": None, "jaxlib-0.6.2": "struct_too_short"}, 1, "ended the process", python="3.12"),
    # weathernext#185: 32 bytes expected, 24 given.
    vendor("libtpu", "0.0.23", f"manylinux_2_31_{X86}", 75, 960, {"jaxlib-0.7.1": None, "jaxlib-0.6.2": "struct_too_short"}, 0, "it gives no client", python="3.12"),
    # The oldest of all, from before the order of functions was fixed.
    vendor("intel-extension-for-openxla", "0.1.0", f"manylinux2014_{X86}", 2, 592, {"jaxlib-0.4.26": "minors_differ", "jaxlib-0.8.0": "plugin_too_old"}, 2, "cannot open shared object", is_large=True),
    vendor("intel-extension-for-openxla", "0.7.0", f"manylinux2014_{X86}", 54, 808, {"jaxlib-0.4.38": None}, 2, "cannot open shared object", is_large=True),
    vendor("jax-cuda12-pjrt", "0.4.23", f"manylinux2014_{X86}", 40, 808, {"jaxlib-0.4.23": None, "jaxlib-0.4.25": "minors_differ"}, 0, "it gives no client", is_large=True),
    vendor("jax-cuda13-pjrt", "0.8.0", f"manylinux_2_27_{X86}", 80, 984, {"jaxlib-0.8.0": None, "jaxlib-0.6.2": "struct_too_short"}, 0, "it gives no client", is_large=True),
    vendor("jax-cuda13-pjrt", "0.8.0", f"manylinux_2_27_{ARM}", 80, 984, {"jaxlib-0.8.0": None}, 2, "it is for aarch64", is_large=True),
    vendor("jax-cuda13-pjrt", "0.12.0.1", f"manylinux_2_27_{ARM}", 116, 1144, {"jaxlib-0.12.0.1": None}, 2, "it is for aarch64", is_large=True),
    vendor("jax-oneapi-pjrt", "0.11.2", f"manylinux_2_27_{X86}", 115, 1144, {"jaxlib-0.11.2": None}, 2, "cannot open shared object", is_large=True),
    vendor("jax-rocm7-pjrt", "0.12.0", f"manylinux_2_27_{X86}", 116, 1144, {"jaxlib-0.12.0": None}, 2, "cannot open shared object", is_large=True),
    vendor("libtpu", "0.0.52", f"manylinux_2_31_{X86}", 117, 1144, {"jaxlib-0.12.0.1": None}, 0, "it gives no client", python="3.12", is_large=True),
]


# Time limits for fetching one package, and all packages of a run, in seconds.
LIMIT = int(os.environ.get("SERDES_FETCH_LIMIT", "300"))
LIMIT_OF_ALL = 3 * LIMIT


class Unavailable(Exception):
    """A package that could not be fetched, with the reason."""


class Fetching:
    """The remaining time in which a run may fetch packages."""

    left = LIMIT_OF_ALL


def fetch(folder, package, version, *more):
    """Fills a folder with the largest library of a package. It appears completely or not at all."""
    limit = min(LIMIT, Fetching.left)
    if limit < 1:
        raise Unavailable(f"nothing more is fetched after {LIMIT_OF_ALL} s")
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetching-") as place:
        place = pathlib.Path(place)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--timeout", "20", "--retries", "2"]
        command = [*pip, "--dest", place, *more, f"{package}=={version}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            raise Unavailable(f"the index did not give it within {limit:.0f} s") from None
        finally:
            Fetching.left -= time.monotonic() - begun
        wheels = [*place.glob("*.whl")]
        if done.returncode or len(wheels) != 1:
            words = done.stderr.strip().splitlines() or ["no words"]
            raise Unavailable(f"pip ended with status {done.returncode}: {words[-1]}")
        whole = place / "whole"
        try:
            with zipfile.ZipFile(wheels[0]) as archive:
                libraries = [entry for entry in archive.infolist() if entry.filename.endswith((".so", ".dylib"))]
                archive.extract(max(libraries, key=lambda entry: entry.file_size), whole)
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise Unavailable(f"its wheel cannot be unpacked: {error}") from None
        (whole / "complete").touch()
        # Removes an incomplete folder of an earlier run.
        shutil.rmtree(folder, ignore_errors=True)
        whole.rename(folder)


def download(folder, package, version, *more):
    """Returns the path of the largest library of a package; fetches it if needed."""
    if not (folder / "complete").exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Scripts run at the same time, and must not remove a library that another one has loaded.
        with open(folder.parent / ".fetching", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "complete").exists():
                fetch(folder, package, version, *more)
    libraries = [*folder.rglob("*.so"), *folder.rglob("*.dylib")]
    return max(libraries, key=lambda path: path.stat().st_size)


def computing(cache):
    """Yields each plug-in that computes here, with its library; prints a message and yields `None` if it cannot be fetched."""
    for entry in PLUGINS:
        package, version = entry[:2]
        try:
            path = download(cache / f"{package}-{version}", package, version)
        except Unavailable as reason:
            print(f"FAILED: {package} {version} cannot be fetched, and nothing was tried with it: {reason}", flush=True)
            path = None
        yield entry, path


def foreign(cache, package, version, platform, python):
    """Downloads a package of any platform; returns its library."""
    folder = cache / (f"{package}-{version}" + ("-aarch64" if ARM in platform else ""))
    tag = "cp" + python.replace(".", "")
    has_abi = package in ("libtpu", "intel-extension-for-openxla")
    abi = ["--implementation", "cp", "--abi", tag] if has_abi else []
    return download(folder, package, version, "--only-binary=:all:", "--platform", platform, "--python-version", python, *abi)


class Serdes(Checks):
    """The command, with checks of its output."""

    def __init__(self, binary):
        super().__init__()
        self.binary = binary

    def ask(self, *arguments):
        """Runs `serdes plugin …`; returns its status and objects."""
        # Without this variable libtpu queries the network for the kind of this machine, for minutes.
        environment = dict(os.environ, TPU_SKIP_MDS_QUERY="1")
        done = subprocess.run([self.binary, "plugin", *arguments, "--json"], capture_output=True, text=True, timeout=600, env=environment)
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]

    def expect(self, what, found, expected):
        self.check(what, found == expected, f"\n  found {found}\n  expected {expected}")


def devices(serdes, arguments):
    """Tests the plug-ins that compute here."""
    for (package, version, minor, size, types, frameworks, failing), path in computing(arguments.cache):
        if path is None:
            serdes.check(f"{package} {version} can be fetched", False)
            continue
        for framework, fits in frameworks.items():
            done = subprocess.run([arguments.example, path, framework], capture_output=True, text=True, timeout=300)
            lines = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
            expected = {
                "code": f'Some(("0.{minor}", {size}))',
                "version": f"0.{minor}, table of {size} bytes",
                "missing": json.dumps(MISSING.get(minor, [])),
                "warnings": "[]",
                "types": str(types),
                # The types of 8 bits and more, which all of these plug-ins support.
                "in pieces": "Ok(23)",
                "of one manager": "Ok(23)",
                "memory that comes later": MEMORY_LATER[minor],
            }
            found = {key: lines.get(key) for key in expected}
            serdes.expect(f"{package} {version}: arrays of every type", (done.returncode, found), (0, expected))
            serdes.expect(f"{package} {version} for {framework}", lines.get(framework) == "[]", fits)
            status, (answer,) = serdes.ask("check", path, "--for", framework)
            serdes.expect(f"{package} {version} for {framework}, by the command", (status, answer["for"]["fits"]), (0 if fits else 1, fits))
        status, (answer,) = serdes.ask("check", f"{path}:cpu_device_count=3")
        found = (status, answer["accepted"], answer["pjrt_version"], answer["devices"], answer["memories"], answer["reasons"], answer["warnings"])
        expected = (0, True, f"0.{minor}", 3, ["device", "pinned_host", "unpinned_host"], [], [])
        serdes.expect(f"{package} {version}: check", found, expected)
        status, outcomes = serdes.ask("verify", path, "--time-limit", "60")
        serdes.expect(f"{package} {version}: verify", (status, {found["behaviour"] for found in outcomes if found["result"] == "fail"}), (0, failing))
        serdes.expect(f"{package} {version}: the failures are robust behaviours", {found["class"] for found in outcomes if found["result"] == "fail"}, {"robust"})
        status, _ = serdes.ask("verify", path, "--time-limit", "60", "--level", "robust")
        serdes.expect(f"{package} {version}: verify --level robust", status, 1)
        unsupported = {found["behaviour"] for found in outcomes if found["result"] == "unsupported"}
        serdes.expect(f"{package} {version}: unsupported are types alone", len(unsupported), 32 - types)


def library_of(name, *arguments):
    """Returns the result of `foreign`; prints a message and returns `None` if it cannot be fetched."""
    try:
        return foreign(*arguments)
    except Unavailable as reason:
        print(f"skipped: {name} cannot be fetched: {reason}", flush=True)
        return None


def vendors(serdes, cache):
    """Tests the plug-ins of vendors, without their hardware."""
    for entry in VENDORS:
        if entry["is_large"] and not os.environ.get("SERDES_FULL"):
            continue
        name = f"{entry['package']} {entry['version']} ({entry['platform'].split('_', 1)[1]})"
        path = library_of(name, cache, entry["package"], entry["version"], entry["platform"], entry["python"])
        if path is None:
            continue
        status, (found,) = serdes.ask("inspect", path)
        architecture = ARM if ARM in entry["platform"] else X86
        serdes.expect(f"{name}: inspect", (status, found["api"], found["architecture"], found["pjrt_version"], found["struct_size"]),
                      (0, "pjrt", architecture, f"0.{entry['minor']}", entry["size"]))
        for framework, rule in entry["frameworks"].items():
            status, (answer,) = serdes.ask("check", path, "--for", framework, "--time-limit", "120")
            fit = answer["for"]
            serdes.expect(f"{name} for {framework}", (fit["fits"], fit["rules"][:1]), (rule is None, [rule] if rule else []))
        status, (answer,) = serdes.ask("check", path, "--time-limit", "120")
        said = " ".join([answer.get("error", ""), *answer.get("reasons", []), *answer.get("warnings", [])])
        if status == 0 and answer["devices"] == 0:
            status, outcomes = serdes.ask("verify", path, "--time-limit", "120")
            skipped = [found for found in outcomes if found["result"] == "skipped"]
            serdes.expect(f"{name}: verify skips what needs the hardware", (status, len(skipped)), (0, 1))
            status = 0
        serdes.expect(f"{name}: check says `{entry['words']}`", (status, entry["words"] in said), (entry["status"], True))
    path = library_of("jax-metal 0.1.1", cache, "jax-metal", "0.1.1", "macosx_13_0_arm64", "3.11")
    for command in ("inspect", "check") if path else ():
        status, (answer,) = serdes.ask(command, path)
        serdes.expect(f"jax-metal 0.1.1: {command}", (status, "Mach-O" in answer["error"]), (2, True))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serdes", required=True, help="the command")
    parser.add_argument("--host-plugin", help="not used here")
    parser.add_argument("--example", required=True, help="the example pjrt_devices, built")
    parser.add_argument("--cache", required=True, type=pathlib.Path, help="where packages are kept")
    arguments = parser.parse_args()
    serdes = Serdes(arguments.serdes)
    devices(serdes, arguments)
    vendors(serdes, arguments.cache)
    sys.exit(serdes.end())


if __name__ == "__main__":
    main()
