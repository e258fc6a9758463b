"""Writes adapters/: LoRA adapters of this folder's tiny models, and what peft computes with them.

    python -m venv venv && venv/bin/pip install torch==2.11.0 'transformers==5.24.*' peft==0.21.0 safetensors
    venv/bin/python tests/golden/policy/make_adapters.py [NAME...]      (in the repository's root)

NAME: only these; the others stay as they are.

For each model: the adapter's folder as peft saves it, with random A and B; expected.json (log-probabilities with the
adapter on, with it off, and of the merged model); gradients/, the derivative of sum_i c_i logprob_i by A and B as an
adapter's file; updated/, the adapter after one step of torch.optim.AdamW. tests/policy/adapter_test.cc compares.
"""

import json
import math
import os
import shutil
import sys

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

HERE = os.path.dirname(os.path.abspath(__file__))
TEMPERATURE = 0.7
RATE, DECAY = 1e-2, 0.1
ADAPTERS = {
    # Every linear layer. Biases on q, k, v; tied head.
    "qwen2": dict(r=4, lora_alpha=6, target_modules="all-linear"),
    # Some of q, k, v and of gate, up; a scale by the square root. Norms of q and k; heads larger than hidden / heads.
    "qwen3": dict(r=3, lora_alpha=5, target_modules=["q_proj", "v_proj", "up_proj"], use_rslora=True),
    # All biases there are; one head of keys.
    "llama": dict(r=2, lora_alpha=2, target_modules=["k_proj", "o_proj", "gate_proj", "down_proj"]),
    # Of the model before the hyphen. Ranks and alphas by pattern, of which the first that fits counts (peft writes them
    # in alphabetical order); one is above the 16 rows of k_proj.
    "qwen2-patterns": dict(
        r=3,
        lora_alpha=4,
        target_modules=r"model\.layers\.\d+\.(self_attn\.(q|k|o)_proj|mlp\.(?!gate).*_proj)",
        exclude_modules=["layers.1.self_attn.o_proj"],
        rank_pattern={r".*layers\.1\..*k_proj": 20, "k_proj": 5, "mlp.up_proj": 1},
        alpha_pattern={"up_proj": 2.5, r".*\.0\.self_attn\..*": 7},
        use_rslora=True,
    ),
    "llama-layers": dict(r=4, lora_alpha=4, target_modules=["v_proj", "mlp.up_proj"], layers_to_transform=[0, 2], layers_pattern="layers"),
}


def logprobs_of(model, prompts, completions):
    parts = []
    for prompt, completion in zip(prompts, completions, strict=True):
        logits = model(input_ids=torch.tensor([prompt + completion])).logits[0, len(prompt) - 1 : -1] / TEMPERATURE
        parts.append(torch.log_softmax(logits, -1).gather(1, torch.tensor(completion)[:, None])[:, 0])
    return torch.cat(parts)


def factors(model, of):
    return {
        name.replace(".default.", "."): of(parameter).detach().contiguous().clone()
        for name, parameter in model.named_parameters()
        if "lora_" in name
    }


def main():
    torch.set_num_threads(1)
    out = os.path.join(HERE, "adapters")
    for name, options in ADAPTERS.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        shutil.rmtree(os.path.join(out, name), ignore_errors=True)
        base_name = name.split("-")[0]
        with open(os.path.join(HERE, base_name, "expected.json")) as file:
            tokens = json.load(file)
        prompts, completions = tokens["prompts"], tokens["completions"]
        base = AutoModelForCausalLM.from_pretrained(os.path.join(HERE, base_name), dtype=torch.float32)
        model = get_peft_model(base, LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, **options)).eval()
        generator = torch.Generator().manual_seed(5)
        with torch.no_grad():
            for parameter_name, parameter in model.named_parameters():
                if "lora_" in parameter_name:
                    noise = torch.randn(parameter.shape, generator=generator)
                    parameter.copy_(noise / math.sqrt(parameter.shape[1]) * 0.5)
        folder = os.path.join(out, name)
        model.save_pretrained(folder)
        os.remove(os.path.join(folder, "README.md"))
        path = os.path.join(folder, "adapter_config.json")
        with open(path) as file:
            config = json.load(file)
        config["base_model_name_or_path"] = f"tests/golden/policy/{base_name}"
        for key in ("target_modules", "exclude_modules"):
            if isinstance(config[key], list):
                config[key] = sorted(config[key])  # a set, in any order
        with open(path, "w") as file:
            json.dump(config, file)
            file.write("\n")

        logprobs = logprobs_of(model, prompts, completions)
        coefficients = [math.cos(1.7 * i) for i in range(len(logprobs))]
        (torch.tensor(coefficients) * logprobs).sum().backward()
        os.makedirs(os.path.join(folder, "gradients"))
        os.makedirs(os.path.join(folder, "updated"))
        gradients = factors(model, lambda parameter: parameter.grad)
        assert gradients.keys() == load_file(os.path.join(folder, "adapter_model.safetensors")).keys()
        save_file(gradients, os.path.join(folder, "gradients", "adapter_model.safetensors"))
        expected = {"temperature": TEMPERATURE, "coefficients": coefficients, "on": logprobs.tolist()}
        with torch.no_grad():
            with model.disable_adapter():
                expected["off"] = logprobs_of(model, prompts, completions).tolist()
        expected["rate"], expected["decay"] = RATE, DECAY
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        torch.optim.AdamW(trained, lr=RATE, weight_decay=DECAY).step()
        save_file(factors(model, lambda parameter: parameter), os.path.join(folder, "updated", "adapter_model.safetensors"))
        with torch.no_grad():
            expected["updated"] = logprobs_of(model, prompts, completions).tolist()
            merged = logprobs_of(model.merge_and_unload(), prompts, completions)
        assert (merged - torch.tensor(expected["updated"])).abs().max() < 1e-4
        with open(os.path.join(folder, "expected.json"), "w") as file:
            json.dump(expected, file)
            file.write("\n")
        print(name, "moves log-probabilities by up to", max(abs(a - b) for a, b in zip(expected["on"], expected["off"])))


if __name__ == "__main__":
    main()
