"""Makes tests/golden/import_kernelbench.tar.xz: problems of problems/ as the import writes them, and the bits that PyTorch itself draws for them.

usage: python make_golden.py    (a Python with torch 2.11.0, numpy and einops)
"""
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
from pack import packed  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "../../scripts/import_kernelbench/import_kernelbench.py")
STYLED = ("021_row_softmax", "022_row_distances", "023_prefix_products", "024_hinge_loss")  # in coder_offline's style
KEPT = ("kb_l1_001_scaled_rows", "kb_l1_002_symmetric_product", "kb_l1_016_random")


def bits(tensor):
    return " ".join(struct.pack(">f", value).hex() for value in tensor.flatten()[:8].tolist())


def main():
    with packed("import_kernelbench") as golden, tempfile.TemporaryDirectory() as out:
        for old in golden.iterdir():
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        subprocess.run([sys.executable, SCRIPT, "kernelbench", os.path.join(HERE, "problems"), "--out", out, "--sizes", "small"], check=True)
        for name in KEPT:
            shutil.copytree(os.path.join(out, name), os.path.join(golden, name))
        os.makedirs(os.path.join(golden, "offline_style"))
        for name in STYLED:
            shutil.copy(os.path.join(out, f"kb_l1_{name}", "reference.cu"),
                        os.path.join(golden, "offline_style", f"{name}.cu"))
        # By eager PyTorch, without the tapes.
        torch.manual_seed(42)
        weights = torch.randn(512)
        torch.manual_seed(7)
        a = torch.rand(512, 512)
        (golden / "bits.txt").write_text(f"weights {bits(weights)}\nsymmetric {bits((a + a.T) / 2)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
