"""Checks that peft computes from a saved adapter what the policy itself computes from it.

    check_adapter.py HOST FOLDER      HOST: kgrpo-model of tests/model; run with a Python that has transformers, torch and peft

FOLDER is a PEFT folder whose adapter_config.json names its base. Greedy, 16 tokens from a few prompts, in float32: the same
tokens, and log-probabilities within 1e-4. By hand, after training:
    check_adapter.py build/tests/kgrpo-model runs/quickstart_lora/final
"""

import json
import subprocess
import sys

import torch
from peft import AutoPeftModelForCausalLM
from transformers import AutoTokenizer

PROMPTS = ["tile the loop", "a", "<|im_start|>user\nsuggest for reduction:<|im_end|>\n<|im_start|>assistant\n"]


def main():
    host, folder = sys.argv[1:]
    lines = "".join(json.dumps({"prompt": prompt}) + "\n" for prompt in PROMPTS)
    command = [host, "generate", folder, "--max-new-tokens", "16", "--temperature", "0"]
    result = subprocess.run(command, input=lines, text=True, capture_output=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{result.stderr}")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoPeftModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    for prompt, line in zip(PROMPTS, result.stdout.splitlines(), strict=True):
        ours = json.loads(line)
        ids = tokenizer(prompt, add_special_tokens=False).input_ids
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids + ours["ids"]])).logits[0, len(ids) - 1 : -1]
        if logits.argmax(-1).tolist() != ours["ids"]:
            sys.exit(f"{prompt!r}: peft writes {logits.argmax(-1).tolist()}, the policy {ours['ids']}")
        logprobs = torch.log_softmax(logits, -1).gather(1, torch.tensor(ours["ids"])[:, None])[:, 0]
        most = (logprobs - torch.tensor(ours["logprobs"])).abs().max().item()
        if most > 1e-4:
            sys.exit(f"{prompt!r}: log-probabilities differ by {most}")
        print(f"{prompt!r}: the same {len(ours['ids'])} tokens, log-probabilities within {most:.1e}: {ours['text']!r}")


if __name__ == "__main__":
    main()
