#!/usr/bin/env python3
"""A decode step and the reading of prompts, ours and transformers', alternating: the same random weights, on a GPU.

usage: policy.py --bench build/bin/policy [--shape qwen2-1.5b] [--rounds 2] [--batch 1 16 64 256] [--top-p 0.9] [--top-k 50] [--no-compile]
example: bench/policy.py --bench build/bin/policy > bench/results/h200_policy.txt

Needs torch and transformers. Every row is measured in each round, ours by another process. transformers: sdpa attention,
sampling at temperature 1, with its dynamic cache and with the static cache and torch.compile. In the end the engine is compared
with the CPU and with itself (policy --check)."""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

PROMPT, NEW = 512, 128


def make_config(shape):
    import transformers

    with open(pathlib.Path(__file__).with_name("shapes.json"), encoding="utf-8") as file:
        values = json.load(file)[shape]
    return transformers.AutoConfig.for_model(**{"tie_word_embeddings": True, **values})


def make_model(shape):
    import torch
    import torch._dynamo
    import transformers

    torch._dynamo.config.automatic_dynamic_shapes = False  # each batch size is compiled for itself,
    torch._dynamo.config.recompile_limit = 64              # and none falls back to eager
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(
            make_config(shape), dtype=torch.bfloat16, attn_implementation="sdpa")
    return model.eval()


def saved(model):
    """The folder of this model, removed with the object: both measure the same weights. Its tokenizer is another model's and unused."""
    folder = tempfile.TemporaryDirectory()
    model.save_pretrained(folder.name)
    shutil.copy(pathlib.Path(__file__).parents[1] / "tests/golden/policy/qwen2/tokenizer.json", folder.name)
    return folder


def transformers_times(model, batch, static, sampling, repeats=3):
    """Milliseconds of a decode step and of the prompts, a pair a repeat."""
    import torch

    ids = torch.randint(3, 700, (batch, PROMPT), device="cuda")
    more = {"cache_implementation": "static"} if static else {}

    def run(new):
        torch.cuda.synchronize()
        start = time.perf_counter()
        model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=True, temperature=1.0, pad_token_id=0,
                       min_new_tokens=new, max_new_tokens=new, **sampling, **more)
        torch.cuda.synchronize()
        return 1e3 * (time.perf_counter() - start)

    for _ in range(2):  # compiles
        run(NEW)
    pairs = []
    for _ in range(repeats):
        read = run(1)
        pairs.append(((run(NEW) - read) / (NEW - 1), read))
    return pairs


def ours(bench, *arguments):
    result = subprocess.run([bench, "--device", "cuda", *arguments], capture_output=True, text=True)
    print((result.stdout or result.stderr).strip(), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True, help="build/bin/policy")
    parser.add_argument("--shape", default="qwen2-0.5b", help="of shapes.json")
    parser.add_argument("--no-check", action="store_true", help="leave out the comparison of the engine with itself")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 16, 64, 256])
    parser.add_argument("--no-compile", action="store_true", help="leave out transformers' static cache")
    parser.add_argument("--top-p", type=float, default=1.0)
    parser.add_argument("--top-k", type=int, default=0)
    options = parser.parse_args()
    sampling = {"top_p": options.top_p, "top_k": options.top_k}
    filters = ["--top-p", str(options.top_p), "--top-k", str(options.top_k)]
    model = make_model(options.shape)
    folder = saved(model)
    for _ in range(options.rounds):
        ours(options.bench, "--model", folder.name, "--batch", *map(str, options.batch), "--rounds", "3", *filters)
        for static in [False] if options.no_compile else [False, True]:
            for batch in options.batch:
                pairs = transformers_times(model, batch, static, sampling)
                steps, reads = zip(*pairs)
                print(f"transformers{' static + compile' if static else ''} batch {batch}: decode {statistics.median(steps):.3f} ms "
                      f"a step ({min(steps):.3f} to {max(steps):.3f}), prompts of {PROMPT} {statistics.median(reads):.2f} ms", flush=True)
    for dtype in [] if options.no_check else ["float32", "bfloat16"]:
        # The second in rows that are read by one kernel alone and by another together.
        for batch, prompt in [("16", "200"), ("64", "30")]:
            ours(options.bench, "--check", "--dtype", dtype, "--batch", batch, "--new-tokens", "32", "--prompt-tokens", prompt, *filters)


if __name__ == "__main__":
    main()
