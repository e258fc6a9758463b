#!/usr/bin/env python3
"""Makes what configs/quickstart_writer.yaml trains: a tiny model that writes CUDA kernels, problems, and kernels to imitate.

The folder gets
  model/      a 0.4 M parameter Qwen2 to be initialised at random; its tokens are words, and the pieces of PIECES
  problems/   eight elementwise problems with the same signature, whose reference kernels read memory badly
  examples/   kernels made of the pieces: each formula in each of 20 launch forms. Those of other formulas are wrong for a
              problem, so that a policy that draws from them is correct in one of eight rounds

A kernel is 15 to 19 pieces. The policy may put them together in any other way; most do not compile, or compute something else.
Needs only the `tokenizers` package.

example: scripts/make_tiny_writer.py --out build/models/tiny_writer
"""

import argparse
import pathlib
import shutil

from tokenizers import AddedToken, pre_tokenizers, trainers

from make_tiny_model import CONFIG, SPECIAL, qwen2_tokenizer, write_model

SIGNATURE = "const float* x, float* out, int n"

# Name: title, pieces of the formula, the same in float64, flops.
MAPS = {
    "square": ("Square", ["v * v"], "v * v", 1),
    "rectifier": ("Rectifier", ["fmaxf(v, ", "0.0f", ")"], "v > 0 ? v : 0", 1),
    "leaky_rectifier": ("Leaky rectifier", ["fmaxf(v, ", "0.01f * v", ")"], "v > 0.01 * v ? v : 0.01 * v", 2),
    "sigmoid": ("Sigmoid", ["1.0f / ", "(1.0f + ", "expf(-v)", ")"], "1 / (1 + std::exp(-v))", 10),
    "swish": ("Swish", ["v / ", "(1.0f + ", "expf(-v)", ")"], "v / (1 + std::exp(-v))", 11),
    "softsign": ("Softsign", ["v / ", "(1.0f + ", "fabsf(v)", ")"], "v / (1 + std::fabs(v))", 3),
    "softplus": ("Softplus", ["logf", "(1.0f + ", "expf(v)", ")"], "std::log(1 + std::exp(v))", 16),
    "bell": ("Bell", ["expf(", "-v * v", ")"], "std::exp(-v * v)", 9),
}
BLOCKS = [64, 128, 256, 512, 1024]
FORMS = {"one": 1, "few": 4, "chunk": 32, "vector": 4}  # elements that a thread computes

FUNCTION = "__device__ float f(float v) { return "
KERNEL = "; }\n__global__ void k(" + SIGNATURE + ") {\n"
INDEX = "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
CHUNK_INDEX = "  int i = (blockIdx.x * blockDim.x + threadIdx.x) * "
GUARD = "  if (i < n) out[i] = f(x[i]);\n}\n"
LOOP = ";\n  for (int j = i; j < n && j < i + "
LOOP_BODY = "; ++j) out[j] = f(x[j]);\n}\n"
VECTOR = (
    ";\n  if (i + 3 < n) {\n    float4 a = *(const float4*)(x + i);\n"
    "    *(float4*)(out + i) = make_float4(f(a.x), f(a.y), f(a.z), f(a.w));\n"
    "  } else {\n    for (int j = i; j < n; ++j) out[j] = f(x[j]);\n  }\n}\n"
)
LAUNCH = 'extern "C" void launch(' + SIGNATURE + ") {\n  k<<<(n + "
LESS_ONE = " - 1) / "
END = ">>>(x, out, n);\n}\n"


def kernel(formula, form, block):
    """The pieces of a kernel."""
    count = FORMS[form]
    total = str(block * count)
    if form == "one":
        body = [INDEX, GUARD]
    elif form == "vector":
        body = [CHUNK_INDEX, "4", VECTOR]
    else:
        body = [CHUNK_INDEX, str(count), LOOP, str(count), LOOP_BODY]
    return [FUNCTION, *formula, KERNEL, *body, LAUNCH, total, LESS_ONE, total, ", ", str(block), END]


def kernels():
    """File name and pieces of every kernel."""
    for name, (_, formula, _, _) in MAPS.items():
        for form in FORMS:
            for block in BLOCKS:
                yield f"{name}_{form}_{block}.cu", kernel(formula, form, block)


def write_problem(folder, name):
    title, formula, double, flops = MAPS[name]
    folder.mkdir(parents=True)
    (folder / "problem.yaml").write_text(
        f"name: {name}\ntitle: {title}\nfamily: elementwise\nsplit: train\ntraits: [elementwise, chunked access]\n"
        f'description: "out[i] = {double.replace("std::", "")} with v = x[i], for n float32 values."\n'
        "parameters:\n  - {name: x, role: input, dtype: float32, shape: [n], distribution: normal}\n"
        "  - {name: out, role: output, dtype: float32, shape: [n]}\n  - {name: n, role: scalar, dtype: int32, value: n}\n"
        "sizes:\n  visible: [{n: 1000}, {n: 8192}]\n  hidden: [{n: 1}, {n: 65}, {n: 40001}]\n  timing: {n: 4194304}\n"
        f'needs: {{bytes: "8*n", flops: "{flops}*n"}}\n', encoding="utf-8")
    (folder / "reference.cu").write_text("".join(kernel(formula, "chunk", 256)), encoding="utf-8")
    (folder / "oracle.cc").write_text(
        'extern "C" void oracle(const double* x, double* out, int64_t n) {\n'
        f"  for (int64_t i = 0; i < n; ++i) {{\n    const double v = x[i];\n    out[i] = {double};\n  }}\n}}\n", encoding="utf-8")


def make_tokenizer():
    tokenizer = qwen2_tokenizer()
    words = [f"last: correct, times as fast. failed. write {name}:" for name in MAPS]
    tokenizer.train_from_iterator(words, trainers.BpeTrainer(
        vocab_size=400, special_tokens=SPECIAL, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False))
    pieces = sorted({piece for _, pieces in kernels() for piece in pieces})
    tokenizer.add_tokens([AddedToken(piece, normalized=False, special=False) for piece in pieces])
    return tokenizer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the folder to write; what it has of these three is replaced")
    arguments = parser.parse_args()
    for part in ("model", "problems", "examples"):
        shutil.rmtree(arguments.out / part, ignore_errors=True)

    tokenizer = make_tokenizer()
    write_model(arguments.out / "model", tokenizer, {**CONFIG, "vocab_size": tokenizer.get_vocab_size()})
    for name in MAPS:
        write_problem(arguments.out / "problems" / name, name)
    (arguments.out / "examples").mkdir()
    for file, pieces in kernels():
        if len(tokenizer.encode("".join(pieces)).ids) != len(pieces):
            raise SystemExit(f"{file} is not a token for each of its {len(pieces)} pieces")
        (arguments.out / "examples" / file).write_text("".join(pieces), encoding="utf-8")


if __name__ == "__main__":
    main()
