#!/usr/bin/env python3
"""Makes the quickstart's model folder: a 0.49 M parameter Qwen2 to be initialised at random, with a tokenizer of its own.

The folder holds what a Hugging Face folder without weights holds: config.json, generation_config.json, tokenizer.json,
tokenizer_config.json. The tokenizer is a byte-level BPE of 768 tokens, trained on the words that the quickstart's prompts and
suggestions are made of: the problems' names, titles, families and traits, and the suggestions that coder_offline understands.
Run by scripts/setup; needs only the `tokenizers` package.

example: scripts/make_tiny_model.py --out build/models/tiny --suggestions suggestions.txt
"""

import argparse
import json
import pathlib
import re

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from make_test_vocabularies import QWEN_PATTERN

VOCABULARY = 768
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]

CONFIG = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "vocab_size": VOCABULARY,
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "initializer_range": 0.05,
    "tie_word_embeddings": True,
    "use_sliding_window": False,
    "attention_dropout": 0.0,
    "bos_token_id": None,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "torch_dtype": "float32",
}

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def problem_lines(root):
    """The words of problem.yaml files that prompts show: one line a problem and key."""
    for path in sorted(root.glob("*/problem.yaml")):
        for line in path.read_text(encoding="utf-8").splitlines():
            match = re.match(r"(name|title|family|traits):\s*(.*)", line)
            if match:
                yield re.sub(r"[\[\]\"']", "", match.group(2)).replace("_", " ")


def qwen2_tokenizer():
    """Qwen2's tokenizer without a vocabulary. transformers 5 takes its normalizer and pre-tokenizer from the model's type, not
    from tokenizer.json: a Qwen2 folder with any others gets other ids there."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN_PATTERN), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def train_tokenizer(lines):
    tokenizer = qwen2_tokenizer()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=SPECIAL,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer


def write_model(folder, tokenizer, config):
    """A Hugging Face folder without weights."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    files = {
        "config.json": config,
        "generation_config.json": {"eos_token_id": [2, 0], "pad_token_id": 0},
        "tokenizer_config.json": {
            "tokenizer_class": "Qwen2Tokenizer",
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "chat_template": CHATML,
            "clean_up_tokenization_spaces": False,
        },
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the folder to write")
    parser.add_argument("--problems", type=pathlib.Path, default=pathlib.Path("problems"), help="the problems' folder")
    parser.add_argument("--suggestions", type=pathlib.Path, required=True, help="a file with one suggestion a line")
    arguments = parser.parse_args()

    suggestions = arguments.suggestions.read_text(encoding="utf-8").splitlines()
    words = list(problem_lines(arguments.problems))
    outcomes = ["applied: nothing. last: right, faster. slower. not applicable. unclear. suggest for"]
    # Suggestions weigh more, so that the policy's output takes few tokens.
    lines = 8 * suggestions + [" " + s for s in suggestions] + 2 * words + [" " + w for w in words] + 4 * outcomes
    tokenizer = train_tokenizer(lines)
    if tokenizer.get_vocab_size() > VOCABULARY:
        raise SystemExit(f"the tokenizer has {tokenizer.get_vocab_size()} tokens, the model {VOCABULARY}")

    write_model(arguments.out, tokenizer, CONFIG)


if __name__ == "__main__":
    main()
