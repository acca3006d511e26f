#!/usr/bin/env python3
"""Reads a device state by docs/format.md alone: lists its arrays, verifies every byte of their data, writes one out.

usage: read_device_state.py FILE [ARRAY OUTPUT]
"""
import itertools
import math
import os
import struct
import sys

TABLE = []
for crc in range(256):
    for _ in range(8):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    TABLE.append(crc)


def checksum(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def demand(condition, what):
    if not condition:
        sys.exit(f"{sys.argv[1]}: {what}")


def number_of(tag, newest):
    """Returns the number in a tag; exits if the tag is unknown and must be understood."""
    number = tag & 0x7FFFFFFF
    demand(tag == number or number <= newest, f"too new: needs a reader that understands {tag:#x}")
    return number


def read_header(data):
    """Returns the fields of the header, and its checksum."""
    demand(data[:8] == b"\x8fSDS\r\n\x1a\n", "is no device state")
    _, _, min_consumer, length, _, stored = struct.unpack_from("<iiiIII", data, 8)
    demand(checksum(data[:28]) == stored, "damaged: first bytes")
    demand(min_consumer <= 0, f"too new: needs a reader of device state version {min_consumer}")
    stored, = struct.unpack_from("<I", data, length - 4)
    demand(checksum(data[:length - 4]) == stored, "damaged: header")
    at, fields = 32, {}
    while (head := struct.unpack_from("<II", data, at)) != (0, 0):
        fields[number_of(head[0], 7)] = data[at + 8:at + 8 + head[1]]
        at += 8 + (head[1] + 7) // 8 * 8
    demand((0,) not in struct.iter_unpack("<i", fields[1]), "excludes readers like this one")
    return fields, stored


def read_index(data, header_sum):
    """Returns the tables of the index."""
    at, size, total, index_sum, stored_header_sum = struct.unpack_from("<QQQII", data, len(data) - 64)
    demand(data[-8:] == b"\x8fSDSend\n" and data[-12:-8] == struct.pack("<I", checksum(data[-64:-12])), "damaged: end")
    demand(total == len(data) and stored_header_sum == header_sum, "damaged: lengths")
    index = data[at:at + size]
    demand(index[:8] == b"\x8fSDSidx\n" and checksum(index) == index_sum, "damaged: index")
    tables = {}
    for row in range(struct.unpack_from("<I", index, 8)[0]):
        tag, _, begin, length = struct.unpack_from("<IIQQ", index, 16 + 24 * row)
        tables[number_of(tag, 6)] = index[begin:begin + length]
    return tables


def read_parts(field):
    """Returns the parts of a merged state, concatenated."""
    save, (count, length) = field[:16].hex(), struct.unpack_from("<II", field, 16)
    place = os.path.join(os.path.dirname(sys.argv[1]), field[24:24 + length].decode())
    at, whole = 24 + (length + 7) // 8 * 8, b""
    for number in range(count):
        part = open(os.path.join(place, f"{save}-{number:06}-of-{count:06}.part"), "rb").read()
        demand(part[-64:] == field[at + 72 * number + 8:at + 72 * number + 72], f"part {number} is not the one of this state")
        whole += part
    return whole


def read_domains(table):
    """Returns (first index, extent) of every dimension per placement; None for the whole array."""
    at, domains = 0, []
    while at < len(table):
        rank, cut = struct.unpack_from("<II", table, at + 8)
        domains.append(list(struct.iter_unpack("<QQ", table[at + 16:at + 16 + 16 * rank])) if cut else None)
        at += 16 + 16 * rank
    return domains


def assemble(pieces):
    """Builds the bytes of an array from the (domain, bytes) of its pieces, element by element."""
    if pieces[0][0] is None:
        return pieces[0][1]
    shape = [max(first + extent for first, extent in dimension) for dimension in zip(*(domain for domain, _ in pieces))]
    item = sum(len(data) for _, data in pieces) // math.prod(shape)
    whole = {}
    for domain, data in pieces:
        for number, place in enumerate(itertools.product(*(range(first, first + extent) for first, extent in domain))):
            whole[place] = data[number * item:(number + 1) * item]
    return b"".join(whole[place] for place in sorted(whole))


def main():
    data = open(sys.argv[1], "rb").read()
    fields, header_sum = read_header(data)
    tables = read_index(data, header_sum)
    if 7 in fields:
        data = read_parts(fields[7])
    chunk, = struct.unpack("<I", fields[4])
    domains, sums = read_domains(tables[4]), [row[0] for row in struct.iter_unpack("<I", tables[3])]
    pieces, arrays = list(struct.iter_unpack("<QQIIII", tables[2])), list(struct.iter_unpack("<IIII", tables[1]))
    ends = [row[0] for row in arrays[1:]] + [len(tables[6])]
    for (begin, _, first, count), end in zip(arrays, ends):
        name, content = tables[6][begin:end].decode(), []
        for offset, length, _, first_sum, placement, _ in pieces[first:first + count]:
            part = data[offset:offset + length]
            for number, start in enumerate(range(0, length, chunk)):
                demand(checksum(part[start:start + chunk]) == sums[first_sum + number], f"damaged: {name}")
            content.append((domains[placement], part))
        print(f"{sum(len(part) for _, part in content):12} bytes  {name}")
        if sys.argv[2:3] == [name]:
            open(sys.argv[3], "wb").write(assemble(content))


main()
