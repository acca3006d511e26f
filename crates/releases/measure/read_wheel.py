#!/usr/bin/env python3
"""Prints what a wheel declares, as one JSON object; nothing of it is installed or run.

    PYTHON read_wheel.py WHEEL                      name, version, python, tag, requires, and of jax the oldest jaxlib that it takes
    PYTHON read_wheel.py WHEEL --library FOLDER     writes its largest shared library into FOLDER, and prints the path
"""

import argparse
import email.parser
import json
import pathlib
import re
import shutil
import sys
import zipfile


def declared(wheel, name):
    with zipfile.ZipFile(wheel) as archive:
        metadata = next(one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        fields = email.parser.HeaderParser().parsestr(archive.read(metadata).decode())
        minimum = None
        if "jax/version.py" in archive.namelist():
            minimum = re.search(r"_minimum_jaxlib_version = ['\"]([^'\"]+)", archive.read("jax/version.py").decode())
    return {
        "name": re.sub(r"[-_.]+", "-", fields["Name"]).lower(),
        "version": fields["Version"],
        "python": fields["Requires-Python"],
        "tag": "-".join(name.removesuffix(".whl").split("-")[-3:]),
        "requires": fields.get_all("Requires-Dist", []),
        "minimum_jaxlib": minimum and minimum[1],
    }


def library(wheel, folder):
    with zipfile.ZipFile(wheel) as archive:
        libraries = [one for one in archive.infolist() if re.search(r"\.(so|dylib)(\.\d+)*$", one.filename)]
        if not libraries:
            raise SystemExit(f"{wheel} has no shared library")
        largest = max(libraries, key=lambda one: one.file_size)
        path = pathlib.Path(folder, pathlib.PurePath(largest.filename).name)
        with archive.open(largest) as source, path.open("wb") as target:
            shutil.copyfileobj(source, target)
    return str(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("--library", metavar="FOLDER")
    options = parser.parse_args()
    if options.library:
        print(library(options.wheel, options.library))
    else:
        print(json.dumps(declared(options.wheel, options.wheel.name)))


if __name__ == "__main__":
    sys.exit(main())
