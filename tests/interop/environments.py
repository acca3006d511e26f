"""Runs `serdes doctor` on real environments, made by pip from PyPI.

    PYTHON tests/interop/environments.py --serdes BINARY              the environment of PYTHON fits
    PYTHON tests/interop/environments.py --serdes BINARY --plugins    jax and the plug-ins of CUDA 12, of its release and of another

With `--plugins` it makes an environment of two releases, reads its problem, runs the command of the first remedy (without
dependencies: the libraries of CUDA take gigabytes, and no GPU is needed), and runs the doctor again. Nothing of an environment is imported.
Ends with `N passed, N failed`; status 0 if nothing failed.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

from checks import Checks, hear_signals

# jaxlib compares the version of its plug-ins with its own.
JAX, OTHER = "0.9.2", "0.9.1"
PLUGINS = ("jax-cuda12-plugin", "jax-cuda12-pjrt")
# The newest release at the time of that jaxlib, and its other requirements.
BESIDE = ("numpy<2.5", "scipy<1.18", "ml_dtypes<0.6", "opt_einsum")


def asked(serdes, folder):
    """Runs the command on the environment in a folder; returns its status and its output."""
    ran = subprocess.run([serdes, "doctor", "--env", folder, "--json"], capture_output=True, text=True)
    lines = ran.stdout.splitlines()
    return ran.returncode, json.loads(lines[0]) if lines else {"error": ran.stderr}


def own(serdes, checks):
    """Tests the environment of this Python, which pip made of one release."""
    status, found = asked(serdes, sys.prefix)
    checks.check("it fits", status == 0 and found.get("verdict") == "fits", found)
    components = {one["name"]: one["version"] for one in found.get("components", [])}
    for package in ("jax", "jaxlib", "tensorflow", "tensorflow-cpu"):
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
        checks.check(f"{package} is known", components.get(package) == version, components)


def install(python, *packages):
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", "--no-deps"]
    subprocess.run([*pip, *packages], check=True)


def plugins(serdes, checks):
    """Tests plug-ins of another version than jaxlib, and of the same one after the printed command was run."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = os.path.join(folder, "bin", "python")
        install(python, f"jax=={JAX}", f"jaxlib=={JAX}", *BESIDE, *(f"{name}=={OTHER}" for name in PLUGINS))
        status, found = asked(serdes, folder)
        rules = [problem["rule"] for problem in found.get("problems", [])]
        checks.check("plug-ins of another number", status == 1 and rules == ["plugin_jaxlib_differ"], found)
        command = found["problems"][0]["remedies"][0]["command"]
        pip, *rest = shlex.split(command)
        wanted = [f"{name}=={JAX}" for name in PLUGINS]
        checks.check("its remedy", pip == "pip" and sorted(rest[1:]) == sorted(wanted), command)
        install(python, *rest[1:])
        status, found = asked(serdes, folder)
        checks.check("after the remedy", status == 0 and found.get("verdict") == "fits", found)
        versions = {one["name"]: one["version"] for one in found.get("components", [])}
        checks.check("its plug-ins", all(versions.get(name) == JAX for name in PLUGINS), versions)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--serdes", required=True, type=pathlib.Path)
    parser.add_argument("--host-plugin", help="not used")
    parser.add_argument("--plugins", action="store_true")
    arguments = parser.parse_args()
    hear_signals()
    checks = Checks()
    (plugins if arguments.plugins else own)(arguments.serdes.absolute(), checks)
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
