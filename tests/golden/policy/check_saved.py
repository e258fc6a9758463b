"""Checks that transformers generates from a saved folder what the policy itself generates from it.

    check_saved.py HOST FOLDER      HOST: kgrpo-model of tests/model; run with a Python that has transformers 5.17 and torch

Greedy, 32 tokens from a few prompts, in float32; ends with status 1 at the first difference. By hand, after training:
    check_saved.py build/tests/kgrpo-model runs/quickstart/final
"""

import json
import subprocess
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

PROMPTS = ["tile the loop", "a", "unroll the inner loop by four and use shared memory", "<|im_start|>user\nhello<|im_end|>\n"]


def main():
    host, folder = sys.argv[1:]
    lines = "".join(json.dumps({"prompt": prompt}) + "\n" for prompt in PROMPTS)
    command = [host, "generate", folder, "--max-new-tokens", "32", "--temperature", "0"]
    result = subprocess.run(command, input=lines, text=True, capture_output=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{result.stderr}")
    ours = [json.loads(line)["ids"] for line in result.stdout.splitlines()]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    for prompt, ids in zip(PROMPTS, ours, strict=True):
        inputs = tokenizer(prompt, return_tensors="pt", add_special_tokens=False).input_ids
        with torch.no_grad():
            # Without a mask, transformers would take pad tokens within a prompt for padding.
            mask = torch.ones_like(inputs)
            out = model.generate(inputs, attention_mask=mask, do_sample=False, max_new_tokens=32)
        theirs = out[0, inputs.shape[1] :].tolist()
        if theirs != ids:
            sys.exit(f"{prompt!r}: transformers writes {theirs}, the policy {ids}")
        print(f"{prompt!r}: the same {len(ids)} tokens: {tokenizer.decode(ids)!r}")


if __name__ == "__main__":
    main()
