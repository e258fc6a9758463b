#!/usr/bin/env python3
"""Makes a model folder of Qwen's sizes with random weights: the code at full size where the real weights cannot be had.

The configuration is Qwen2-0.5B-Instruct's, or with --size that of Qwen2.5-1.5B or Qwen3-8B. Weights are drawn from a seed and
written in bfloat16 (1, 3 or 16 GB); another --device draws other ones. The tokenizer is a byte-level BPE trained on the problems'
kernels, so that prompts have a realistic length; Qwen's special tokens have Qwen's ids. Most other ids spell filler ("w70123"), every
100th one a suggestion of coder_offline: what a random model writes then makes the coder and the evaluator work now and then. Needs
torch, transformers and tokenizers; no network.

example: scripts/make_random_qwen2.py --out build/models/random_qwen2
         scripts/make_random_qwen2.py --size 8b --device cuda --out build/models/random_8b
"""

import argparse
import json
import pathlib

SPECIAL = {"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645}
CONFIG = {
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "vocab_size": 151936,
    "max_position_embeddings": 32768,
    "max_window_layers": 21,
    "sliding_window": 32768,
    "use_sliding_window": False,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "attention_dropout": 0.0,
    "tie_word_embeddings": True,
    "bos_token_id": 151643,
    "eos_token_id": 151645,
    "pad_token_id": 151643,
}
# Settings that differ from CONFIG, by size.
SIZES = {
    "0.5b": {},
    "1.5b": {"hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12},
    "8b": {"hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32,
           "num_key_value_heads": 8, "head_dim": 128, "tie_word_embeddings": False},
}
MERGED = 8192  # tokens with merges: text is split into these only
SUGGESTION_EVERY = 100

CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n"
    "You are a helpful assistant.<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def texts(problems):
    for path in sorted(problems.glob("*/*")):
        if path.suffix in (".cu", ".cc", ".yaml"):
            yield path.read_text(encoding="utf-8")


def write_tokenizer(out, problems, suggestions):
    from tokenizers import pre_tokenizers, trainers

    from make_tiny_model import qwen2_tokenizer

    tokenizer = qwen2_tokenizer()
    trainer = trainers.BpeTrainer(
        vocab_size=MERGED, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False
    )
    tokenizer.train_from_iterator(texts(problems), trainer)
    content = json.loads(tokenizer.to_str())
    vocabulary = content["model"]["vocab"]
    for number in range(len(vocabulary), min(SPECIAL.values())):
        if number % SUGGESTION_EVERY == 0:
            text = f" {suggestions[number // SUGGESTION_EVERY % len(suggestions)]}. w{number}"
        else:
            text = f" w{number}"
        vocabulary[text.replace(" ", "\u0120")] = number  # byte-level BPE's spelling of a space
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    content["added_tokens"] = [{"id": number, "content": token, **flags} for token, number in SPECIAL.items()]
    (out / "tokenizer.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    configuration = {
        "tokenizer_class": "Qwen2Tokenizer",
        "bos_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "chat_template": CHATML,
        "clean_up_tokenization_spaces": False,
    }
    (out / "tokenizer_config.json").write_text(json.dumps(configuration, indent=2) + "\n", encoding="utf-8")


def write_model(out, seed, size, layers, device):
    import torch
    import transformers

    torch.manual_seed(seed)
    kind = "Qwen3" if size == "8b" else "Qwen2"
    config = getattr(transformers, f"{kind}Config")(**{**CONFIG, **SIZES[size], **layers})
    with torch.device(device):
        model = getattr(transformers, f"{kind}ForCausalLM")(config).to(torch.bfloat16)
    # Qwen2 stops at either token; save_pretrained writes this list.
    model.generation_config.eos_token_id = [151645, 151643]
    model.generation_config.pad_token_id = 151643
    model.save_pretrained(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the folder to write")
    parser.add_argument("--problems", type=pathlib.Path, default=pathlib.Path("problems"), help="the problems' folder")
    parser.add_argument("--suggestions", type=pathlib.Path, default=pathlib.Path("build/models/suggestions.txt"),
                        help="a file with one suggestion a line (coder_offline_apply --suggestions)")
    parser.add_argument("--seed", type=int, default=1, help="of the weights")
    parser.add_argument("--size", choices=SIZES, default="0.5b", help="Qwen2-0.5B's, Qwen2.5-1.5B's or Qwen3-8B's shape")
    parser.add_argument("--layers", type=int, help="fewer, to try things out")
    parser.add_argument("--device", default="cpu", help="draws the weights; cuda is faster for large ones")
    arguments = parser.parse_args()
    suggestions = [line for line in arguments.suggestions.read_text(encoding="utf-8").splitlines() if line]
    if not suggestions:
        raise SystemExit(f"{arguments.suggestions} names no suggestion")
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_tokenizer(arguments.out, arguments.problems, suggestions)
    layers = {"num_hidden_layers": arguments.layers} if arguments.layers else {}
    write_model(arguments.out, arguments.seed, arguments.size, layers, arguments.device)


if __name__ == "__main__":
    main()
