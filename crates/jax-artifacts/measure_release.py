#!/usr/bin/env python3
"""Prints the row of src/release/table.rs of the jaxlib that this Python has.

    PYTHON measure_release.py            the row
    PYTHON measure_release.py --check    1 if the table has another row, or none

Everything but the day is asked of the release itself or read in its sources; the day is the first upload to PyPI, taken from there unless
`--day YYYY-MM-DD` gives it.
"""

import argparse
import inspect
import json
import pathlib
import re
import sys
import urllib.request

import jax
import jaxlib
from jax._src.export import _export, serialization
from jaxlib.mlir.dialects import stablehlo

TABLE = pathlib.Path(__file__).parent / "src/release/table.rs"


def numbers(version):
    return f"({', '.join(version.split('.'))})"


def uploaded(version):
    with urllib.request.urlopen("https://pypi.org/pypi/jaxlib/json") as answer:
        return min(file["upload_time"] for file in json.load(answer)["releases"][version])[:10]


def deserializer(source):
    """The newest habit that the source of the deserializer shows."""
    if "_expired_error_msg" in source:
        return "Expiring"
    if "leaf_iterator" in source:
        return "Leaves"
    if "unique_avals" in source:
        return "Tables"
    if "AbstractDevice" in source:
        return "NamedWithDevice"
    if "_deserialize_named_sharding" in source:
        return "Named"
    return "Numbered" if "deserialize unsupported version" in source else "Unnumbered"


def row(day):
    version = jaxlib.__version__
    assert jax.__version__ == version, (jax.__version__, version)
    source = inspect.getsource(serialization)
    compatibility = stablehlo.StablehloCompatibilityRequirement
    week = stablehlo.get_version_from_compatibility_requirement
    written = re.search(r"AddSerializationVersion\(builder, (\w+)\)", source)[1]
    written = serialization._SERIALIZATION_VERSION if written.startswith("_") else int(written)
    reading = deserializer(source)
    devices = "Both" if "AddNrDevicesShort(" in source else "Short" if reading == "Numbered" else "Wide"
    year, month, of_month = map(int, (day or uploaded(version)).split("-"))
    columns = [
        f'"{version}"',
        f"({year}, {month}, {of_month})",
        numbers(stablehlo.get_current_version()),
        numbers(week(compatibility.WEEK_4)),
        numbers(week(compatibility.WEEK_12)),
        serialization._SERIALIZATION_VERSION,
        written,
        devices,
        _export.maximum_supported_calling_convention_version,
        reading,
        max(serialization._dtype_kind_to_dtype),
    ]
    return f"    row({', '.join(map(str, columns))}),"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--day")
    options = parser.parse_args()
    measured = row(options.day)
    if not options.check:
        print(measured)
        return 0
    if measured in TABLE.read_text():
        print(f"{jaxlib.__version__}: as in the table")
        return 0
    print(f"{jaxlib.__version__}: not as in the table: {measured.strip()}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
