"""Puts the PJRT minor of a C header into `crates/abi/pjrt.json`, or compares the two.

    python read_pjrt_header.py --header pjrt_c_api.h [--date 2026-09-25]
    python read_pjrt_header.py --wheel tf_nightly-….whl [--date …]

Wheels of tf-nightly have the header of their day. It is compiled, and its layouts are read from the
debugging information; needs a C compiler (`CC`, else cc) and pyelftools. With --date the minor
behind the newest one is written, first seen on that day; without it, and for the newest minor, the
header must be as the file says, else the status is 1. `cargo xtask pjrt` makes the tables of it;
then `Minor::NEWEST` is raised, and the compiler names the structs of `pjrt::args` that have grown.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

from elftools.elf.elffile import ELFFile

TABLE = pathlib.Path(__file__).resolve().parent.parent / "pjrt.json"
SUFFIX = "/pjrt/c/pjrt_c_api.h"
BASE = 40


def header_of(wheel):
    """The text of the header in a wheel."""
    with zipfile.ZipFile(wheel) as files:
        names = [name for name in files.namelist() if name.endswith(SUFFIX)]
        if not names:
            sys.exit(f"{wheel}: no file in it ends in {SUFFIX}")
        return files.read(names[0]).decode()


def compiled(text):
    """The top entries of the debugging information of a header, and its minor."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "pjrt_c_api.h").write_text(text)
        source = folder / "all.c"
        source.write_text('#include "pjrt_c_api.h"\nint minor = PJRT_API_MINOR;\n')
        options = ["-g", "-fno-eliminate-unused-debug-types", "-I", folder]
        # A macro is not in the debugging information.
        plain = subprocess.run(
            [os.environ.get("CC", "cc"), "-E", "-P", "-I", folder, source],
            check=True, capture_output=True, text=True,
        ).stdout
        minor = int(plain.rsplit("int minor = ", 1)[1].split(";")[0])
        unit = folder / "all.o"
        subprocess.run(
            [os.environ.get("CC", "cc"), *options, "-c", source, "-o", unit], check=True
        )
        with unit.open("rb") as file:
            info = ELFFile(file).get_dwarf_info()
            top = next(info.iter_CUs()).get_top_DIE()
            return minor, described(list(top.iter_children()))


def name_of(entry):
    found = entry.attributes.get("DW_AT_name")
    return found.value.decode() if found else None


def number(entry, attribute):
    found = entry.attributes.get(attribute)
    return found.value if found else 0


def inner(entry):
    has = "DW_AT_type" in entry.attributes
    return entry.get_DIE_from_attribute("DW_AT_type") if has else None


def type_name(kind):
    """A type as the table writes it: `const` in front wherever it was, unnamed functions as `fn`."""
    if kind is None:
        return "void"
    if kind.tag == "DW_TAG_subroutine_type":
        return "fn"
    if kind.tag == "DW_TAG_pointer_type":
        to = type_name(inner(kind))
        return to if to == "fn" else f"{to}*"
    if kind.tag == "DW_TAG_const_type":
        return "const " + type_name(inner(kind)).removeprefix("const ")
    if kind.tag == "DW_TAG_union_type":
        return "union"
    return {"_Bool": "bool"}.get(name_of(kind), name_of(kind))


def size_of(kind):
    if kind.tag == "DW_TAG_pointer_type":
        return 8
    if "DW_AT_byte_size" in kind.attributes:
        return number(kind, "DW_AT_byte_size")
    return size_of(inner(kind))


def described(entries):
    """Structs with their sizes and fields, the table's functions, and enumerations."""
    structs, enums, declared = {}, {}, {}
    for entry in entries:
        kind = inner(entry) if entry.tag == "DW_TAG_typedef" else entry
        name = name_of(entry)
        is_own = name is None or name.startswith("PJRT_")
        if kind is None or not is_own:
            continue
        is_struct = name is not None and kind.tag == "DW_TAG_structure_type"
        if is_struct and "DW_AT_byte_size" in kind.attributes:
            members = [one for one in kind.iter_children() if one.tag == "DW_TAG_member"]
            structs[name] = (
                number(kind, "DW_AT_byte_size"),
                [
                    [
                        name_of(one) or "value",
                        type_name(inner(one)),
                        number(one, "DW_AT_data_member_location"),
                        size_of(inner(one)),
                    ]
                    for one in members
                ],
            )
        if kind.tag == "DW_TAG_enumeration_type":
            values = [
                [name_of(one), number(one, "DW_AT_const_value")] for one in kind.iter_children()
            ]
            sizes = [one for one in values if one[0].endswith("_STRUCT_SIZE")]
            declared.update((one[: -len("_STRUCT_SIZE")], value) for one, value in sizes)
            if name is not None and not sizes:
                enums[name] = values
    size, slots = structs.pop("PJRT_Api")
    return {
        "table": [size, declared.get("PJRT_Api", size)],
        "functions": {one[0]: one[2] for one in slots if one[2] >= BASE},
        "structs": {
            name: ([size, declared.get(name, size)], fields)
            for name, (size, fields) in structs.items()
        },
        "enums": enums,
    }


def extend(rows, new, minor, first, last, key):
    """Rows that hold to the minor before, with those of `new`: longer, or added behind."""
    for row in new:
        known = [one for one in rows if key(one) == row and one[last] == minor - 1]
        if known:
            known[0][last] = minor
        elif not any(key(one) == row and one[last] == minor for one in rows):
            added = list(row)
            at = min(first, len(added))
            rows.append(added[:at] + [minor, minor] + added[at:])


def add(table, minor, date, found):
    """Puts a minor behind the newest one."""
    table["minors"].append([minor, date, *found["table"]])
    for name, at in found["functions"].items():
        extend(table["functions"].setdefault(name, []), [[at]], minor, 0, 1, lambda row: row[2:])
    for name, (sizes, fields) in found["structs"].items():
        known = table["structs"].setdefault(name, {"sizes": [], "fields": []})
        extend(known["sizes"], [sizes], minor, 0, 1, lambda row: row[2:])
        extend(known["fields"], fields, minor, 4, 5, lambda row: row[:4])
    for name, values in found["enums"].items():
        extend(table["enums"].setdefault(name, []), values, minor, 2, 3, lambda row: row[:2])


def at(table, minor):
    """A minor of the table, in the form in which a header is read."""
    there = lambda row, first: row[first] <= minor <= row[first + 1]
    record = next(row for row in table["minors"] if row[0] == minor)
    return {
        "table": record[2:],
        "functions": {
            name: row[2] for name, rows in table["functions"].items() for row in rows if there(row, 0)
        },
        "structs": {
            name: (sizes[0][2:], sorted(row[:4] for row in one["fields"] if there(row, 4)))
            for name, one in table["structs"].items()
            if (sizes := [row for row in one["sizes"] if there(row, 0)])
        },
        "enums": {
            name: values
            for name, rows in table["enums"].items()
            if (values := sorted(row[:2] for row in rows if there(row, 2)))
        },
    }


def differences(minor, of_table, found):
    """Lines about what a header has otherwise than the table."""
    for part in ("functions", "structs", "enums"):
        for name in sorted(of_table[part].keys() | found[part].keys()):
            ours, theirs = of_table[part].get(name), found[part].get(name)
            if part == "structs" and theirs:
                theirs = (theirs[0], sorted(theirs[1]))
            if part == "enums" and theirs:
                theirs = sorted(theirs)
            if ours != theirs:
                yield f"0.{minor} {name}: the table has {ours}, the header {theirs}"
    if of_table["table"] != found["table"]:
        yield f"0.{minor} PJRT_Api: the table has {of_table['table']}, the header {found['table']}"


def text_of(table):
    """The table as it is kept: a row a line."""
    short = lambda value: json.dumps(value, separators=(",", ":"))
    lines = lambda rows, indent: (",\n" + indent).join(short(row) for row in rows)
    functions = ",\n".join(f'  "{k}": {short(v)}' for k, v in table["functions"].items())
    structs = ",\n".join(
        f'  "{name}": {{"sizes": {short(one["sizes"])}, "fields": [\n    '
        f"{lines(one['fields'], '    ')}]}}"
        for name, one in table["structs"].items()
    )
    enums = ",\n".join(
        f'  "{name}": [\n    {lines(rows, "    ")}]' for name, rows in table["enums"].items()
    )
    return (
        f'{{\n"how": {json.dumps(table["how"])},\n"minors": [\n  {lines(table["minors"], "  ")}\n],\n'
        f'"functions": {{\n{functions}\n}},\n"structs": {{\n{structs}\n}},\n"enums": {{\n{enums}\n}}\n}}\n'
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--header", type=pathlib.Path)
    source.add_argument("--wheel", type=pathlib.Path)
    parser.add_argument("--date", help="the day on which the minor was first seen; writes it")
    arguments = parser.parse_args()
    text = arguments.header.read_text() if arguments.header else header_of(arguments.wheel)
    minor, found = compiled(text)
    before = TABLE.read_text()
    table = json.loads(before)
    newest = table["minors"][-1][0]
    if minor == newest + 1 and arguments.date:
        add(table, minor, arguments.date, found)
        TABLE.write_text(text_of(table))
        of_before = at(table, newest)
        print(*differences(newest, of_before, at(table, minor)), sep="\n")
        newest = minor
    if minor > newest:
        sys.exit(f"the header is of 0.{minor}, the table ends at 0.{newest}: write the one behind it first, with --date")
    different = list(differences(minor, at(table, minor), found))
    print(*different, sep="\n", end="\n" if different else "")
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
