# SPDX-License-Identifier: Apache-2.0
"""A copy of a BF16 checkpoint with one weight replaced."""
import json
import os
import struct

NAN, INF, MINUS_INF = 0x7FC0, 0x7F80, 0xFF80  # as BF16


def spoil(source, target, tensor, at, bits):
    """`target` is `source` but for tensor[at], which has these bits; other files are linked."""
    os.mkdir(target)
    for name in os.listdir(source):
        if name != "model.safetensors":
            os.symlink(os.path.abspath(os.path.join(source, name)), os.path.join(target, name))
    with open(os.path.join(source, "model.safetensors"), "rb") as f:
        data = bytearray(f.read())
    n = struct.unpack_from("<Q", data)[0]
    entry = json.loads(bytes(data[8:8 + n]))[tensor]
    assert entry["dtype"] == "BF16", entry
    row = at if isinstance(at, int) else at[0] * entry["shape"][1] + at[1]
    struct.pack_into("<H", data, 8 + n + entry["data_offsets"][0] + 2 * row, bits)
    with open(os.path.join(target, "model.safetensors"), "wb") as f:
        f.write(data)
    return target
