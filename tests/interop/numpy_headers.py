"""Lists headers of npy files, with whether numpy.load accepts them.

    numpy_headers.py --write tests/data/npy/headers.jsonl     with NumPy 2.4: writes the list
    numpy_headers.py --check tests/data/npy/headers.jsonl     with any NumPy: prints headers that it judges differently,
                                                              except for known differences of releases

A line of the list has the version of the format, the text of the header, the number of zero bytes after it, and whether
NumPy accepts the file. `check_npy_headers` compares serdes with each.
"""

import argparse
import io
import json
import struct
import sys
import warnings

import numpy as np

SHAPES = """() (4,) (4) (04,) (4L,) (4L) (4 L,) (4LL,) (0x4,) (0X4,) (0b11,) (0o7,) (0_4,) (4_0,) (4__0,) (_4,) (4_,) (00,) (0,) (-1,) (-4,)
(+4,) (--4,) (- 4,) (True,) (False,2) (None,) (4.0,) (4.,) (1e2,) (4j,) ('4',) (2,3) (2,3,) (2,,3) (,) (2 3) [4] [2,3] {4} (4,) ((4,)) ((4),) (((2,3)))
(9223372036854775807,) (9223372036854775808,) (99999999999999999999999,) (4294967296,4294967296) (0,9223372036854775807) (2,-3) (2\\n,3) (1,)*2 (1)+(2,) 4 4, None
tuple() (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)""".split("\n")
SHAPES = [shape for line in SHAPES for shape in line.split(" ") if shape]
SHAPES += ["(4 L,)", "(2 3)", "(- 4,)", "(2,\n3)", "(2, # two\n3)", "(2,\\\n3)", "(2,\x0c3)", "(2,\xa03)", "(2,\r3)", "(\t2,)", "(" + "1," * 64 + ")",
           "(" + "1," * 65 + ")", "(" + "(" * 40 + "2," + ")" * 40 + ")", "(1if 1else 2,)", "(0xfL,)", "(0L,)", "(1,2L,3)"]

DESCRS = """'<f4' '>f4' '|f4' '=f4' 'f4' '<f' 'f' 'float32' '<float32' 'float' 'int' 'long' 'i3' 'f3' 'c4' 'f16' 'c32' 'b1' '<b1' 'b2' 'u3' 'S' 'S0' 'S5'
'U' 'U3' '|S5' '<U3' 'a5' 'V0' 'V2' '<V2' '|V2' '=V2' '>V2' 'V1' '|V3' 'M8' 'M8[ns]' '<M8[ns]' '<m8[5D]' 'M8[x]' 'M8[]' 'M4' 'm8' 'M8[0s]' 'O' '|O'
'<O' 'O8' '|O8' 'O4' 'O3' 'object' '?' '<?' 'b' 'B' 'h' 'H' 'i' 'I' 'l' 'L' 'q' 'Q' 'e' 'd' 'F' 'D' 'g' 'G' 'p' 'P' 'c' 'bool' 'int8' 'int16' 'int32' 'int64'
'uint8' 'uint16' 'uint32' 'uint64' 'float16' 'float64' 'complex64' 'complex128' 'complex256' 'float128' 'half' 'single' 'double' 'longdouble' 'str' 'bytes' 'void'
'datetime64' 'datetime64[ns]' 'timedelta64[s]' 'f4,f4' '(2,3)f4' '2f4' '3i' 'i4,O' 'f8x' 'F4' 'I4' 'i16' 'c64' 'x4' '' 'int_' 'uint' 'intp' 'byte' 'short' 'intc'
'longlong' 'Float32' '<>f4' '<<f4' '<f1' 'T' '|i1' '|u1' '<i8' '>i8' '>c16' '>U3' 'S99999999999' 'U536870912' '|b1' '>?' '<M8' 'f4f' 'M8[generic]' '>M8[us]'
"<f4" u'<f4' U'<f4' r'<f4' b'<f4' ur'<f4' f'<f4' '<f''4' '''<f4''' '\\x3cf4' '\\u003cf4' '\\74f4' r'\\x3cf4' ('<f4') ('<f4',) ('<f4',2) ('<f4',(2,)) ('<f4',(2,-1)) ('O',2) None 1
f4 [] ['<f4'] [('a','<f4')] [('a','<f4'),] [('a','<f4'),('b','<i8',(2,))] [('a','<f4'),('a','<i8')] [('a','O')] [('a','<f4','b')] [('','|V4'),('b','<f4')] [(('t','a'),'<f4')]
[('a',[('b','<f4')])] [('a',[('b','O')])] [['a','<f4']] [('a',)] [('a','x4')] [('a\\'b','<f4')] [('a\\\\b','<f4')] [('a','<f4',2)] {'a':'<f4'} [(1,'<f4')]""".split("\n")
DESCRS = [descr for line in DESCRS for descr in line.split(" ") if descr]

FORTRAN = ["True", "False", "0", "1", "None", "true", "'False'", "(False)", "(False,)", "not True", "-True"]

WHOLE = [
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
    "{'shape': (2,), 'descr': '<f4', 'fortran_order': False}",
    "{'descr':'<f4','fortran_order':False,'shape':(2,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'extra': 1}",
    "{'descr': '<f4', 'fortran_order': False}",
    "{'descr': '<f4', 'shape': (2,)}",
    "{'descr': '<f4', 'descr': '<i8', 'fortran_order': False, 'shape': (2,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'shape': (2,)}",
    "{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,),,}",
    "{, 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)",
    "'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
    "({'descr': '<f4', 'fortran_order': False, 'shape': (2,)})",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)},",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} # a note",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} junk",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}\n\n \n",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}\n1",
    " \t{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
    "\n{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
    "# a note\n{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
    "{\n'descr': '<f4',\n'fortran_order': False, 'shape': (2,)}",
    "{u'descr': u'<f4', 'fortran_order': False, 'shape': (2L,)}",
    "{'de' 'scr': '<f4', 'fortran_order': False, 'shape': (2,)}",
    "{('descr'): '<f4', 'fortran_order': False, 'shape': (2,)}",
    "{b'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}\0",
    "dict(descr='<f4', fortran_order=False, shape=(2,))",
    "[('descr', '<f4'), ('fortran_order', False), ('shape', (2,))]",
    "__import__('os').system('true')",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}" + " " * 9945,
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}" + " " * 9946,
    "",
    " ",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9223372036854775807)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 2305843009213693952)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 2305843009213693951)}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693952, 0)}",
    "{'descr': '|u1', 'fortran_order': False, 'shape': (4611686018427387904, 2, 0)}",
    "{'descr': '<f4', 'fortran_order': True, 'shape': (1099511627776, 0, 1099511627776)}",
    "{'descr': '|V0', 'fortran_order': False, 'shape': (0, 9223372036854775807, 4)}",
]


def headers():
    for text in WHOLE:
        yield text
    for shape in SHAPES:
        yield f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}"
    for descr in DESCRS:
        yield f"{{'descr': {descr}, 'fortran_order': False, 'shape': (2,), }}"
        yield f"{{'descr': {descr}, 'fortran_order': False, 'shape': (), }}"
    for fortran in FORTRAN:
        yield f"{{'descr': '<f4', 'fortran_order': {fortran}, 'shape': (2, 3), }}"


def file_of(version, text, size):
    text = text.encode("utf-8" if version == 3 else "latin1")
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + bytes(size)


def size_of(version, text):
    """Returns the bytes of elements that the header requires; 0 if it is refused anyway, or requires 1 MiB or more."""
    reader = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}.get(version)
    try:
        if reader is None:
            reader = lambda file: np.lib.format._read_array_header(file, (3, 0))
        file = io.BytesIO(file_of(version, text, 0)[8:])
        shape, _, dtype = reader(file)
        size = dtype.itemsize
        for extent in shape:
            size *= extent
        return size if 0 <= size < 1 << 20 else 0
    except Exception:
        return 0


def is_taken(version, text, size):
    try:
        np.load(io.BytesIO(file_of(version, text, size)))
        return True
    except Exception:
        return False


def differs_by_release(text):
    """Returns True if this release is known to refuse a header that the list has as accepted."""
    release = tuple(int(part) for part in np.__version__.split(".")[:2])
    # NumPy 2.5 removed the code `a` of byte strings; before 2.0 arrays had at most 32 dimensions.
    return ("'a5'" in text and release >= (2, 5)) or (text.count("1,") == 64 and release < (2, 0))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write")
    parser.add_argument("--check")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.write:
        with open(options.write, "w") as out:
            for text in dict.fromkeys(headers()):
                versions = (1, 3) if "L" in text or "\xa0" in text or text in WHOLE else (1,)
                for version in versions:
                    size = size_of(version, text)
                    line = {"version": version, "header": text, "bytes": size, "taken": is_taken(version, text, size)}
                    out.write(json.dumps(line) + "\n")
        return 0
    differ = 0
    for line in open(options.check):
        line = json.loads(line)
        taken = is_taken(line["version"], line["header"], line["bytes"])
        expected = line["taken"] and not differs_by_release(line["header"])
        if taken != expected:
            differ += 1
            print(f"NumPy {np.__version__}: {taken}, the list: {line['taken']}: {line['version']} {line['header']!r}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
