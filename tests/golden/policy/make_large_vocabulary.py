"""Writes large_vocabulary.json: forward and backward of a model whose logits are computed in several blocks of rows.

    python tests/golden/policy/make_large_vocabulary.py     (needs numpy alone)

One layer of Llama in float64, written out below; weights by a formula that tests/policy/large_vocabulary_test.cc repeats,
since a vocabulary of 120,000 is too large to store. Of each gradient the file holds the products with three fixed vectors:
the derivatives in those directions, by central differences.
"""

import json
import math
import os

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
VOCABULARY, HIDDEN, HEADS, INTERMEDIATE, EPSILON, THETA = 120_000, 8, 2, 12, 1e-6, 1e4
TEMPERATURE = 0.7
NAMES = {  # in the order of the salts
    "model.embed_tokens.weight": (VOCABULARY, HIDDEN),
    "model.layers.0.input_layernorm.weight": (HIDDEN,),
    "model.layers.0.self_attn.q_proj.weight": (HIDDEN, HIDDEN),
    "model.layers.0.self_attn.k_proj.weight": (HIDDEN, HIDDEN),
    "model.layers.0.self_attn.v_proj.weight": (HIDDEN, HIDDEN),
    "model.layers.0.self_attn.o_proj.weight": (HIDDEN, HIDDEN),
    "model.layers.0.post_attention_layernorm.weight": (HIDDEN,),
    "model.layers.0.mlp.gate_proj.weight": (INTERMEDIATE, HIDDEN),
    "model.layers.0.mlp.up_proj.weight": (INTERMEDIATE, HIDDEN),
    "model.layers.0.mlp.down_proj.weight": (HIDDEN, INTERMEDIATE),
    "model.norm.weight": (HIDDEN,),
    "lm_head.weight": (VOCABULARY, HIDDEN),
}


def noise(count, salt):
    """Numbers in [-1, 1) that float32 holds exactly."""
    mixed = (np.arange(count, dtype=np.uint64) * np.uint64(40503) + np.uint64(salt * 9973)) * np.uint64(2654435761)
    return ((mixed % np.uint64(2**32)) // np.uint64(256)).astype(np.float64) / 2**23 - 1


def ids(count, salt):
    return (3 + (noise(count, salt) + 1) / 2 * (VOCABULARY - 3)).astype(np.int64)


def weights():
    made = {}
    for salt, (name, shape) in enumerate(NAMES.items()):
        values = noise(math.prod(shape), salt).reshape(shape)
        made[name] = 1 + values / 4 if len(shape) == 1 else values
    return made


def norm(x, weight):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * weight


def rotate(x):
    """x [heads, rows, size]."""
    half = x.shape[-1] // 2
    angles = np.arange(x.shape[1])[:, None] * THETA ** (-np.arange(half) / half)
    first, second = x[..., :half], x[..., half:]
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], -1)


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def forward(w, sequence):
    layer = "model.layers.0."
    x = w["model.embed_tokens.weight"][sequence]
    y = norm(x, w[layer + "input_layernorm.weight"])
    q, k, v = ((y @ w[f"{layer}self_attn.{p}_proj.weight"].T).reshape(-1, HEADS, HIDDEN // HEADS).swapaxes(0, 1) for p in "qkv")
    scores = rotate(q) @ rotate(k).swapaxes(1, 2) / math.sqrt(HIDDEN // HEADS)
    scores = np.where(np.tri(len(sequence), dtype=bool), scores, -np.inf)
    x = x + (np.exp(log_softmax(scores)) @ v).swapaxes(0, 1).reshape(-1, HIDDEN) @ w[layer + "self_attn.o_proj.weight"].T
    y = norm(x, w[layer + "post_attention_layernorm.weight"])
    gate, up = (y @ w[f"{layer}mlp.{p}_proj.weight"].T for p in ("gate", "up"))
    x = x + (gate / (1 + np.exp(-gate)) * up) @ w[layer + "mlp.down_proj.weight"].T
    return norm(x, w["model.norm.weight"]) @ w["lm_head.weight"].T


def score(w):
    """Log-probabilities and entropies of the completion's tokens."""
    prompt, completion = ids(10, 100), ids(190, 101)  # 69 rows are a block
    all_logprobs = log_softmax(forward(w, np.concatenate([prompt, completion]))[9:-1] / TEMPERATURE)
    logprobs = all_logprobs[np.arange(190), completion]
    return logprobs, -(np.exp(all_logprobs) * all_logprobs).sum(-1)


def main():
    w = weights()
    logprobs, entropies = score(w)
    gradients, step = {}, 1e-5
    for name, parameter in w.items():
        gradients[name] = []
        for direction in range(3):
            vector = noise(parameter.size, 200 + direction).reshape(parameter.shape)
            ends = [(noise(190, 102) * score({**w, name: parameter + s * vector})[0]).sum() for s in (step, -step)]
            gradients[name].append((ends[0] - ends[1]) / (2 * step))
    expected = {"temperature": TEMPERATURE, "logprobs": logprobs.tolist(), "entropies": entropies.tolist(), "gradients": gradients}
    with open(os.path.join(HERE, "large_vocabulary.json"), "w") as file:
        json.dump(expected, file)
        file.write("\n")


if __name__ == "__main__":
    main()
