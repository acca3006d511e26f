#!/usr/bin/env python3
"""Reads a device state by docs/format.md alone: lists its arrays, verifies every byte of their data.

usage: read_device_state.py FILE [ARRAY OUTPUT]
"""
import itertools
import math
import os
import struct
import sys

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)


def checksum(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def demand(condition, what):
    if not condition:
        sys.exit(f"{sys.argv[1]}: {what}")


def fields(header):
    at, found = 32, {}
    while True:
        tag, length = struct.unpack_from("<II", header, at)
        if tag == length == 0:
            return found
        demand(not tag >> 31 or tag & 0x7FFFFFFF in (1, 4, 6, 7), f"too new: field {tag & 0x7FFFFFFF}")
        found[tag & 0x7FFFFFFF] = header[at + 8:at + 8 + length]
        at += 8 + (length + 7) // 8 * 8


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def message(data):
    """The fields of a protobuf message: number -> last value."""
    at, found = 0, {}
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        else:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        found[tag >> 3] = value
    return found


def spec(data):
    """Element type (number of the kind) and shape of an ArraySpecProto."""
    array = message(data)
    kind, packed, dims, at = message(array.get(1, b"")).get(1, 0), message(array.get(2, b"")).get(1, b""), [], 0
    while at < len(packed):
        extent, at = varint(packed, at)
        dims.append(extent)
    return kind, dims


def parts(field):
    """The parts of a merged state, one behind the other."""
    save, (count, length) = field[:16].hex(), struct.unpack_from("<II", field, 16)
    place = os.path.join(os.path.dirname(sys.argv[1]), field[24:24 + length].decode())
    at, whole = 24 + (length + 7) // 8 * 8, b""
    for number in range(count):
        part = open(os.path.join(place, f"{save}-{number:06}-of-{count:06}.part"), "rb").read()
        trailer = field[at + 72 * number + 8:at + 72 * number + 72]
        demand(part[-64:] == trailer and len(part) == struct.unpack_from("<Q", trailer, 16)[0],
               f"part {number} is damaged or of another save")
        whole += part
    return whole


def placements(table):
    """The domain of each placement, None for the whole array."""
    at, found = 0, []
    while at < len(table):
        rank, cut = struct.unpack_from("<II", table, at + 8)
        found.append([struct.unpack_from("<QQ", table, at + 16 + 16 * i) for i in range(rank)] if cut else None)
        at += 16 + 16 * rank
    return found


def assemble(shape, pieces):
    """The bytes of an array out of the (domain, bytes) of its pieces."""
    whole = bytearray(sum(len(part) for _, part in pieces))
    item = len(whole) // max(math.prod(shape), 1)
    for domain, part in pieces:
        if domain is None:
            return part
        width = domain[-1][1] * item
        for row, index in enumerate(itertools.product(*(range(a, a + n) for a, n in domain[:-1]))):
            at = 0
            for extent, i in zip(shape, (*index, domain[-1][0])):
                at = at * extent + i
            whole[at * item:at * item + width] = part[row * width:(row + 1) * width]
    return bytes(whole)


def main():
    data = open(sys.argv[1], "rb").read()
    demand(data[:8] == b"\x8fSDS\r\n\x1a\n", "is no device state")
    _, producer, min_consumer, length, _, stored = struct.unpack_from("<iiiIII", data, 8)
    demand(checksum(data[:28]) == stored, "damaged: first bytes")
    demand(min_consumer <= 0, f"too new: needs a reader of device state version {min_consumer}")
    header = data[:length]
    demand(struct.unpack("<I", header[-4:])[0] == checksum(header[:-4]), "damaged: header")
    words = fields(header)
    chunk, = struct.unpack("<I", words[4])
    demand(0 not in struct.unpack(f"<{len(words[1]) // 4}i", words[1]), "excludes readers like this one")

    end = data[-64:]
    demand(end[56:] == b"\x8fSDSend\n", "damaged: no end")
    at, size, total, index_sum, header_sum, payload = struct.unpack_from("<QQQIIQ", end)
    demand(struct.unpack_from("<I", end, 52)[0] == checksum(end[:52]), "damaged: trailer")
    demand(total == len(data) and header[-4:] == struct.pack("<I", header_sum), "damaged: lengths")
    index = data[at:at + size]
    demand(checksum(index) == index_sum and index[:8] == b"\x8fSDSidx\n", "damaged: index")
    tables = {}
    for row in range(struct.unpack_from("<I", index, 8)[0]):
        tag, _, begin, length = struct.unpack_from("<IIQQ", index, 16 + 24 * row)
        demand(not tag >> 31 or tag & 0x7FFFFFFF <= 6, f"too new: table {tag & 0x7FFFFFFF}")
        tables[tag & 0x7FFFFFFF] = index[begin:begin + length]
    if 7 in words:
        data = parts(words[7])
    domains = placements(tables[4])
    arrays = list(struct.iter_unpack("<IIII", tables[1]))
    pieces = list(struct.iter_unpack("<QQIIII", tables[2]))
    sums = [row[0] for row in struct.iter_unpack("<I", tables[3])]
    specs, place = [], 0
    while place < len(tables[5]):
        length, = struct.unpack_from("<I", tables[5], place)
        specs.append(tables[5][place + 4:place + 4 + length])
        place += 4 + length

    print(f"written by {words.get(2, b'').decode()}, {len(arrays)} arrays, {payload} bytes of data")
    ends = [row[0] for row in arrays[1:]] + [len(tables[6])]
    for (begin, number, first, count), stop in zip(arrays, ends):
        name, content = tables[6][begin:stop].decode(), []
        for offset, length, _, first_sum, placement, _ in pieces[first:first + count]:
            part = data[offset:offset + length]
            for i, start in enumerate(range(0, length, chunk)):
                demand(checksum(part[start:start + chunk]) == sums[first_sum + i], f"damaged: {name}")
            content.append((domains[placement], part))
        kind, shape = spec(specs[number])
        print(name, kind, shape, sum(len(part) for _, part in content), "bytes")
        if sys.argv[2:3] == [name]:
            open(sys.argv[3], "wb").write(assemble(shape, content))


main()
