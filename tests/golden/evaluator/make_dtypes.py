"""Writes dtypes.txt: what numpy makes of doubles as float16 and torch of floats as bfloat16, for dtype_test.cc.

Run with any Python that has numpy and torch: python make_dtypes.py
"""
import pathlib
import struct
import sys

import numpy
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from pack import packed  # noqa: E402

random = numpy.random.default_rng(7)
values = [0.0, -0.0, 1.0, -1.0, 65504.0, 65519.99, 65520.0, -65520.0, 1e30, 2.0**-24, 2.0**-25, 1.5 * 2.0**-25, 2.0**-14,
          2.0**-14 - 2.0**-26, 6.1e-5, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-11 + 2.0**-40, float("inf"), float("-inf"), 3.4e38, 1e-40]
values += list(random.standard_normal(200)) + list(random.standard_normal(100) * 2.0 ** random.integers(-30, 18, 100))
lines = []
for value in values:
    with numpy.errstate(over="ignore"):
        half = int(numpy.float64(value).astype(numpy.float16).view(numpy.uint16))
        single = numpy.float32(value)
    brain = int(torch.tensor(single).to(torch.bfloat16).view(torch.int16)) & 0xFFFF
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    single_bits = struct.unpack("<I", struct.pack("<f", single))[0]
    lines.append(f"{bits:016x} {half:04x} {single_bits:08x} {brain:04x}")
with packed("evaluator") as folder:
    (folder / "dtypes.txt").write_text("\n".join(lines) + "\n")
