"""Writes shapes.json: what transformers computes with the structure of larger models, made small.

    python -m venv venv && venv/bin/pip install torch==2.11.0 'transformers==5.24.*'
    venv/bin/python tests/golden/policy/make_shapes.py [NAME...]      NAME: only these; the others stay as they are

Each configuration keeps what a model's code depends on (ties, ratio of heads, size of heads, rotary scaling, context, norms)
and shrinks layers, widths and vocabulary. Weights by a formula that tests/policy/shapes_test.cc repeats. A prompt of 600
tokens, so that scaled rotary frequencies matter. The file holds the configuration as transformers writes it, the logits
of the last tokens, of each gradient the product with a fixed vector, and the tokens that follow the prompt greedily.
"""

import json
import math
import os
import sys

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

HERE = os.path.dirname(os.path.abspath(__file__))
VOCABULARY, LENGTH, OUTPUTS, GREEDY = 96, 600, 4, 12
SMALL = dict(vocab_size=VOCABULARY, num_hidden_layers=2, bos_token_id=None, eos_token_id=2)
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
ROPE = {"rope_type": "default", "rope_theta": 1e6}
SHAPES = {
    "Qwen2.5-1.5B": Qwen2Config(
        **SMALL, hidden_size=96, intermediate_size=112, num_attention_heads=12, num_key_value_heads=2,
        max_position_embeddings=32768, rms_norm_eps=1e-6, tie_word_embeddings=True, rope_parameters=ROPE,
    ),
    "Qwen2.5-7B": Qwen2Config(
        **SMALL, hidden_size=112, intermediate_size=120, num_attention_heads=28, num_key_value_heads=4,
        max_position_embeddings=32768, rms_norm_eps=1e-6, tie_word_embeddings=False, rope_parameters=ROPE,
    ),
    "Qwen3-0.6B": Qwen3Config(
        **SMALL, hidden_size=64, intermediate_size=96, num_attention_heads=16, num_key_value_heads=8, head_dim=128,
        max_position_embeddings=40960, rms_norm_eps=1e-6, tie_word_embeddings=True, rope_parameters=ROPE,
    ),
    "Qwen3-1.7B": Qwen3Config(
        **SMALL, hidden_size=256, intermediate_size=768, num_attention_heads=16, num_key_value_heads=8, head_dim=16,
        max_position_embeddings=40960, rms_norm_eps=1e-6, tie_word_embeddings=True, rope_parameters=ROPE,
    ),
    "Qwen3-8B": Qwen3Config(
        **SMALL, hidden_size=64, intermediate_size=96, num_attention_heads=32, num_key_value_heads=8, head_dim=128,
        max_position_embeddings=40960, rms_norm_eps=1e-6, tie_word_embeddings=False, rope_parameters=ROPE,
    ),
    "Llama-3.2-1B": LlamaConfig(
        **SMALL, hidden_size=64, intermediate_size=96, num_attention_heads=32, num_key_value_heads=8, head_dim=64,
        max_position_embeddings=131072, rms_norm_eps=1e-5, tie_word_embeddings=True, rope_parameters=LLAMA3,
    ),
    "Mistral-7B": MistralConfig(
        **SMALL, hidden_size=64, intermediate_size=96, num_attention_heads=32, num_key_value_heads=8, head_dim=4,
        max_position_embeddings=32768, rms_norm_eps=1e-5, tie_word_embeddings=False, rope_parameters=ROPE,
        sliding_window=None,
    ),
    # Yarn as Qwen's model cards write it, with a context that the prompt exceeds.
    "Qwen2.5-yarn": Qwen2Config(
        **SMALL, hidden_size=112, intermediate_size=120, num_attention_heads=7, num_key_value_heads=1,
        max_position_embeddings=1024, rms_norm_eps=1e-6, tie_word_embeddings=False,
        rope_parameters={**ROPE, "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 256},
    ),
    # Every other key of yarn.
    "Llama-yarn": LlamaConfig(
        **SMALL, hidden_size=64, intermediate_size=96, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=1024, rms_norm_eps=1e-5, tie_word_embeddings=True,
        rope_parameters={
            "rope_type": "yarn", "rope_theta": 1e4, "factor": 8.0, "original_max_position_embeddings": 128,
            "beta_fast": 16, "beta_slow": 2, "mscale": 1.0, "mscale_all_dim": 0.6, "truncate": False,
        },
    ),
}


def noise(count, salt):
    """Numbers in [-1, 1) that float32 holds exactly."""
    index = torch.arange(count, dtype=torch.int64)
    mixed = ((index * 40503 + salt * 9973) * 2654435761) % 2**32
    return ((mixed // 256).double() / 2**23 - 1).float()


@torch.no_grad()
def greedy(model, ids):
    """The likeliest next tokens after the longest beginning of `ids` of which each is far enough ahead of the second for
    any order of float32 sums: {"prompt": its length, "tokens": them}."""
    for length in range(LENGTH, LENGTH // 2, -1):
        text = ids.tolist()[:length]
        while len(text) < length + GREEDY:
            best = model(input_ids=torch.tensor([text])).logits[0, -1].topk(2)
            if best.values[0] - best.values[1] < 1e-3:
                break
            text.append(best.indices[0].item())
            if text[-1] == model.config.eos_token_id:
                return {"prompt": length, "tokens": text[length:]}
        else:
            return {"prompt": length, "tokens": text[length:]}
    raise RuntimeError("no beginning has clear successors")


def main():
    torch.set_num_threads(1)
    path, made = os.path.join(HERE, "shapes.json"), {}
    if sys.argv[1:]:
        with open(path) as file:
            made = json.load(file)
    for name, config in SHAPES.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
        config.architectures = [type(model).__name__]
        parameters = sorted(model.named_parameters())
        with torch.no_grad():
            for salt, (_, parameter) in enumerate(parameters):
                values = noise(parameter.numel(), salt).reshape(parameter.shape)
                parameter.copy_(1 + values / 4 if parameter.ndim == 1 else values * 2 / math.sqrt(parameter.shape[1]))
        ids = (3 + (noise(LENGTH, 100) + 1) / 2 * (VOCABULARY - 3)).long()
        logits = model(input_ids=ids[None]).logits[0, -OUTPUTS - 1 : -1]
        logprobs = torch.log_softmax(logits, -1).gather(1, ids[-OUTPUTS:, None])[:, 0]
        (logprobs * noise(OUTPUTS, 101)).sum().backward()
        made[name] = {
            "config": {
                key: value for key, value in config.to_dict().items() if value is not None or key == "sliding_window"
            },
            "logits": [[round(x, 5) for x in row] for row in logits.tolist()],
            "gradients": {
                name: (p.grad.flatten().double() * noise(p.numel(), 200).double()).sum().item() for name, p in parameters
            },
            "gradient_norms": {name: p.grad.double().norm().item() for name, p in parameters},
            "greedy": greedy(model, ids),
        }
    with open(path, "w") as file:
        json.dump(made, file)
        file.write("\n")


if __name__ == "__main__":
    main()
