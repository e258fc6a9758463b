"""Writes smollm2_greedy.json: what transformers continues from SmolLM2-135M's real weights, greedily, in float32.

    make_smollm2_greedy.py FOLDER      a folder that scripts/make_smollm2 made; run with its virtual environment's Python
"""

import json
import os
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

PROMPTS = [
    "The fastest way to add two vectors on a GPU is",
    "<|im_start|>user\nWhy is the sky blue?<|im_end|>\n<|im_start|>assistant\n",
    "def fibonacci(n):\n",
]


def main():
    folder = sys.argv[1]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    model.generation_config.eos_token_id = None
    rows = []
    for prompt in PROMPTS:
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        with torch.no_grad():
            # Without a mask, transformers would take the end tokens within a prompt for padding.
            mask = torch.ones_like(ids)
            out = model.generate(ids, attention_mask=mask, do_sample=False, max_new_tokens=64, min_new_tokens=64)
            logits = model(out).logits[0, ids.shape[1] - 1 : -1]
        completion = out[0, ids.shape[1] :]
        assert logits.argmax(-1).tolist() == completion.tolist()
        logprobs = torch.log_softmax(logits, -1).gather(1, completion[:, None])[:, 0]
        best = logits.topk(2).values
        row = {"text": prompt, "prompt": ids[0].tolist(), "completion": completion.tolist()}
        rows.append({**row, "logprobs": logprobs.tolist()})
        print(repr(tokenizer.decode(completion)), "smallest gap:", (best[:, 0] - best[:, 1]).min().item())
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "smollm2_greedy.json"), "w") as file:
        json.dump(rows, file)
        file.write("\n")


if __name__ == "__main__":
    main()
