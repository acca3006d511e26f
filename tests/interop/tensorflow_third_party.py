"""Tests a third-party device plug-in from PyPI on a machine without its hardware: it registers and has no devices.

    PYTHON tests/interop/tensorflow_third_party.py --serdes BINARY --host-plugin libserdes_host_plugin.so

The plug-in is Intel's for GPUs, intel-extension-for-tensorflow-lib 2.14.0.1.1. The needed files of it and of Intel's run-time libraries
(40 MB) are kept in ${SERDES_CI_CACHE:-~/.cache/serdes-ci}/third-party; the packages themselves (379 MB and 46 MB) are not. Its release of
TensorFlow is not installed: a library of empty functions replaces the functions of TensorFlow that it links against besides the status
functions.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

from checks import Checks

PACKAGES = {
    "intel-extension-for-tensorflow-lib==2.14.0.1.1": ["libitex_gpu.so", "libitex_common.so"],
    "intel-cmplr-lib-rt==2024.0.2": ["libimf.so", "libsvml.so", "libirng.so", "libintlc.so.5"],
}
TIME_LIMIT_SECONDS = 120


def fetch(folder):
    """Returns the libraries; downloads them if needed."""
    folder.mkdir(parents=True, exist_ok=True)
    for package, names in PACKAGES.items():
        if all((folder / name).exists() for name in names):
            continue
        with tempfile.TemporaryDirectory(dir=folder) as download:
            subprocess.run(
                [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-cache-dir",
                 "--only-binary=:all:", "--python-version=3.11", "--platform=manylinux2014_x86_64", "--platform=manylinux1_x86_64",
                 "--dest", download, package],
                check=True, timeout=1200)
            [wheel] = pathlib.Path(download).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                for member in archive.namelist():
                    name = member.rsplit("/", 1)[-1]
                    if name in names and not member.endswith("/"):
                        partial = pathlib.Path(download) / name
                        with archive.open(member) as source, open(partial, "wb") as target:
                            shutil.copyfileobj(source, target)
                        partial.rename(folder / name)


def stand_in(serdes, folder, directory):
    """Builds a library with the functions of TensorFlow that the plug-in's other library needs, except those that serdes provides."""
    found = inspect(serdes, folder / "libitex_common.so")
    missing = found["unserved"]
    source = directory / "stand_in.c"
    source.write_text("".join(f"void* {name}(void) {{ return 0; }}\n" for name in missing))
    library = directory / "_pywrap_tensorflow_internal.so"
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    return missing


def inspect(serdes, library):
    result = subprocess.run([serdes, "plugin", "inspect", str(library), "--json"], capture_output=True, text=True, check=True)
    return json.loads(result.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serdes", required=True)
    parser.add_argument("--host-plugin")
    arguments = parser.parse_args()
    serdes = arguments.serdes
    cache = pathlib.Path(os.environ.get("SERDES_CI_CACHE") or pathlib.Path.home() / ".cache/serdes-ci")
    folder = cache / "third-party"
    fetch(folder)
    checks = Checks()
    check = checks.check
    plugin = folder / "libitex_gpu.so"
    found = inspect(serdes, plugin)
    check("inspect finds the entry points", {"SE_InitPlugin", "TF_InitGraph", "TF_InitKernel"} <= set(found["exports"]), found["exports"][:50])
    check("inspect finds the needed libraries", {"libitex_common.so", "libimf.so", "libsvml.so"} <= set(found["needed"]), found["needed"])
    check("inspect lists no symbol versions", not [name for name in found["exports"] if re.fullmatch(r"[A-Z]+_[0-9.]+", name)], found["exports"])

    def run(*paths):
        environment = {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(map(str, paths))}
        command = [serdes, "plugin", "check", str(plugin), "--json"]
        return subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_SECONDS, env=environment)

    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        alone = run(directory)
        check("a needed library that is missing is named", alone.returncode == 2 and ".so" in json.loads(alone.stdout)["error"], alone)
        missing = stand_in(serdes, folder, directory)
        check("its other library needs more of TensorFlow than we serve", len(missing) == 16 and "TF_SetStatus" not in missing, missing)
        result = run(folder, directory)
        check("it registers", result.returncode == 0, result)
        report = json.loads(result.stdout)
        check("it has no devices, which is a warning", report["devices"] == 0 and len(report["warnings"]) == 1, report)
        check("it is of the newest layout", report["layout"] == "tensorflow-2.14", report)
        check("its platform is XPU", (report["platform"], report["type"]) == ("XPU", "XPU"), report)
        check("nothing that is required is missing", report["missing_required"] == [], report)
        check("it has no unified memory", set(report["missing_optional"]) >= {"unified_memory_allocate", "unified_memory_deallocate"}, report)

    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
