#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An FP8 copy of a BF16 checkpoint: e4m3 weights with one scale per block of 128 x 128.

    quantize_fp8.py MODEL_DIR OUT_DIR

What the published FP8 checkpoints leave in BF16 (embedding, head, norms, routers, eh_proj) stays
as it is.  Needs numpy only.
"""
import argparse
import json
import os
import re
import shutil
import struct

import numpy as np

BLOCK, LARGEST = 128, 448.0
QUANTISED = re.compile(
    r"(self_attn\.\w+_(proj|proj_with_mqa)|mlp\.(\w+\.)*(gate|up|down)_proj)\.weight$")


def e4m3_values():
    """The 127 finite magnitudes, by code."""
    code = np.arange(127)
    exponent, mantissa = code >> 3, code & 7
    return np.where(exponent == 0, mantissa / 8 * 2.0 ** -6,
                    (1 + mantissa / 8) * 2.0 ** (exponent - 7.0))


VALUES = e4m3_values()
MIDDLES = (VALUES[1:] + VALUES[:-1]) / 2


def to_e4m3(x):
    """Codes of the nearest values; ties go to the even code."""
    size = np.minimum(np.abs(x), LARGEST)
    code = np.searchsorted(MIDDLES, size, side="left")
    tie = (code < len(MIDDLES)) & (size == MIDDLES[np.minimum(code, len(MIDDLES) - 1)])
    code = code + (tie & (code % 2 == 1))
    return (code | (np.signbit(x) << 7)).astype(np.uint8)


def quantise(w):
    """w [out, in] float -> codes [out, in], scales [blocks, blocks]"""
    rows, columns = (-(-n // BLOCK) for n in w.shape)
    codes, scales = np.empty(w.shape, np.uint8), np.empty((rows, columns), np.float32)
    for i in range(rows):
        for j in range(columns):
            at = np.s_[i * BLOCK:(i + 1) * BLOCK, j * BLOCK:(j + 1) * BLOCK]
            scales[i, j] = max(np.abs(w[at]).max(), 1e-12) / LARGEST
            codes[at] = to_e4m3(w[at] / scales[i, j])
    return codes, scales


def read(path):
    raw = open(path, "rb").read()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + size])
    header.pop("__metadata__", None)
    for name, t in header.items():
        lo, hi = t["data_offsets"]
        yield name, t["dtype"], t["shape"], raw[8 + size + lo:8 + size + hi]


def write(path, tensors):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, dtype, shape, data in tensors:
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, _, _, data in tensors:
            f.write(data)


def convert(tensors):
    for name, dtype, shape, data in tensors:
        if dtype != "BF16" or not QUANTISED.search(name):
            yield name, dtype, shape, data
            continue
        wide = np.frombuffer(data, np.uint16).astype(np.uint32) << 16
        codes, scales = quantise(wide.view(np.float32).reshape(shape).astype(np.float64))
        yield name, "F8_E4M3", shape, codes.tobytes()
        yield name + "_scale_inv", "F32", scales.shape, scales.tobytes()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("model")
    ap.add_argument("out")
    a = ap.parse_args()
    os.makedirs(a.out, exist_ok=True)
    write(a.out + "/model.safetensors", list(convert(read(a.model + "/model.safetensors"))))
    config = json.load(open(a.model + "/config.json"))
    config["quantization_config"] = {
        "quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
        "weight_block_size": [BLOCK, BLOCK]
    }
    json.dump(config, open(a.out + "/config.json", "w"), indent=2)
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copy(f"{a.model}/{name}", a.out)


if __name__ == "__main__":
    main()
