"""Writes the tiny models of this folder and what transformers computes with them.

    python -m venv venv && venv/bin/pip install torch==2.11.0 'transformers==5.17.*' tokenizers safetensors
    venv/bin/python tests/golden/policy/make_models.py

For each architecture: a model folder as save_pretrained leaves it, with random weights (biases and norms too) that make
the logits spread; expected.json (logits, log-probabilities, entropies, greedy continuations); gradients/, the derivative
of sum_i c_i logprob_i by every parameter. tests/policy/ compares policy_qwen with them.
"""

import json
import math
import os
import shutil

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers import Regex
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

HERE = os.path.dirname(os.path.abspath(__file__))
VOCABULARY = 300
TEMPERATURE = 0.7
QWEN_SPLIT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

COMMON = dict(
    vocab_size=VOCABULARY,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=256,
    bos_token_id=None,
    pad_token_id=0,
    eos_token_id=2,
)
PLAIN_ROPE = {"rope_type": "default", "rope_theta": 1e6}
MODELS = {
    # Biases on q, k, v; tied head.
    "qwen2": (Qwen2ForCausalLM, Qwen2Config(**COMMON, tie_word_embeddings=True, rope_parameters=PLAIN_ROPE)),
    # Norms of q and k; heads larger than hidden / heads; stored in bfloat16; its own head.
    "qwen3": (Qwen3ForCausalLM, Qwen3Config(**COMMON, head_dim=16, tie_word_embeddings=False, rope_parameters=PLAIN_ROPE)),
    # All biases there are; scaled rotary positions; an odd number of layers' worth of heads each (3 / 1).
    "llama": (
        LlamaForCausalLM,
        LlamaConfig(
            **{**COMMON, "hidden_size": 48, "num_attention_heads": 3, "num_key_value_heads": 1, "num_hidden_layers": 3},
            attention_bias=True,
            mlp_bias=True,
            tie_word_embeddings=True,
            rope_parameters={
                "rope_type": "llama3",
                "rope_theta": 1e4,
                "factor": 4.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64,
            },
        ),
    ),
    # One layer, linear scaling, every head its own keys.
    "llama_one_layer": (
        LlamaForCausalLM,
        LlamaConfig(
            **{**COMMON, "num_hidden_layers": 1, "num_key_value_heads": 4},
            tie_word_embeddings=False,
            rope_parameters={"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0},
        ),
    ),
}


def make_tokenizer():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(QWEN_SPLIT), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=special, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False
    )
    text = ["tile the loop through shared memory", "unroll the inner loop by four", "use vector loads and shuffle reductions"]
    tokenizer.train_from_iterator(text * 4, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=CHATML)


def save(folder, *parts):
    """Models and tokenizers; a JSON file is one line."""
    for part in parts:
        part.save_pretrained(folder)
    for name in os.listdir(folder):
        if name.endswith(".json"):
            with open(os.path.join(folder, name)) as file:
                content = json.load(file)
            if name == "tokenizer.json":
                content["post_processor"] = None  # PreTrainedTokenizerFast puts a template there that adds nothing
            with open(os.path.join(folder, name), "w") as file:
                json.dump(content, file, ensure_ascii=False, separators=(",", ":") if name == "tokenizer.json" else None)
                file.write("\n")


def token_logprobs(model, prompt, completion):
    ids = torch.tensor([prompt + completion])
    logits = model(ids).logits[0, len(prompt) - 1 : -1].float() / TEMPERATURE
    logprobs = torch.log_softmax(logits, -1)
    entropies = -(logprobs.exp() * logprobs).sum(-1)
    return logprobs.gather(1, torch.tensor(completion)[:, None])[:, 0], entropies


def greedy(model, prompt, count):
    """Without a cache, a token at a time: the plainest way. Also the smallest gap between the two best logits."""
    ids, gap = list(prompt), math.inf
    for _ in range(count):
        top = model(torch.tensor([ids])).logits[0, -1].topk(2)
        gap = min(gap, (top.values[0] - top.values[1]).item())
        ids.append(top.indices[0].item())
    return ids[len(prompt) :], gap


def main():
    tokenizer = make_tokenizer()
    for name, (model_class, config) in MODELS.items():
        folder = os.path.join(HERE, name)
        shutil.rmtree(folder, ignore_errors=True)
        generator = torch.Generator().manual_seed(12)  # one that leaves no near-ties among greedy tokens
        model = model_class(config).eval()
        with torch.no_grad():
            for parameter_name, parameter in model.named_parameters():
                noise = torch.randn(parameter.shape, generator=generator)
                if parameter_name.endswith("norm.weight"):
                    parameter.copy_(1 + 0.2 * noise)
                else:
                    parameter.copy_(noise * (0.2 if parameter.ndim == 1 else 1.5 / math.sqrt(parameter.shape[1])))
        if name == "qwen3":
            model = model.to(torch.bfloat16)
        model.generation_config.eos_token_id = [2, 0]
        model.generation_config.pad_token_id = 0
        save(folder, model, tokenizer)
        # Read again: .to(bfloat16) has rounded the rotary frequencies too, which are no weights.
        model = model_class.from_pretrained(folder, dtype=torch.float32).eval()

        def random_ids(count):
            return torch.randint(3, VOCABULARY, (count,), generator=generator).tolist()

        prompts = [random_ids(count) for count in (7, 1, 23, 12, 12)]
        completions = [random_ids(count) for count in (5, 3, 1, 9, 30)]
        expected = {"temperature": TEMPERATURE, "prompts": prompts, "completions": completions}
        model.zero_grad()
        scalar, weights = torch.zeros(()), []
        expected["logprobs"], expected["entropies"] = [], []
        for prompt, completion in zip(prompts, completions):
            logprobs, entropies = token_logprobs(model, prompt, completion)
            coefficients = [math.cos(1.7 * (len(weights) + i)) for i in range(len(completion))]
            weights += coefficients
            scalar = scalar + (torch.tensor(coefficients) * logprobs).sum()
            expected["logprobs"] += logprobs.tolist()
            expected["entropies"] += entropies.tolist()
        scalar.backward()
        expected["coefficients"] = weights
        os.makedirs(os.path.join(folder, "gradients"))
        save_file(
            {n: p.grad.contiguous() for n, p in model.named_parameters()},
            os.path.join(folder, "gradients", "model.safetensors"),
            metadata={"format": "pt"},
        )
        with torch.no_grad():
            expected["logits"] = [round(x, 6) for x in model(torch.tensor([prompts[0]])).logits[0].flatten().tolist()]
            singles = [greedy(model, prompt, 64) for prompt in prompts]
            expected["greedy"] = [tokens for tokens, _ in singles]
            # transformers' own batch, padded on the left, must agree with its single runs.
            longest = max(map(len, prompts))
            ids = torch.tensor([[0] * (longest - len(p)) + p for p in prompts])
            mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts])
            model.generation_config.eos_token_id = None
            batch = model.generate(input_ids=ids, attention_mask=mask, do_sample=False, max_new_tokens=64, min_new_tokens=64)
            assert batch[:, longest:].tolist() == expected["greedy"], name
        with open(os.path.join(folder, "expected.json"), "w") as file:
            json.dump(expected, file)
            file.write("\n")
        print(name, "smallest gap between the two best logits:", min(gap for _, gap in singles))


if __name__ == "__main__":
    main()
