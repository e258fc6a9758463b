#!/usr/bin/env python3
"""Writes released/FORM: folders in the form of released models, with tiny vocabularies trained here, and what transformers makes of them.

    pip install transformers==5.24.0 tokenizers==0.23.3
    tests/golden/tokenizer/make_released_golden.py

Written to released/ of ../tokenizer.tar.xz:
    strings.jsonl             the strings, one JSON string a line: some of make_tokenizer_golden.py's, and the ones below
    FORM/                     tokenizer.json and the files beside it, as the model's folder has them
    FORM/golden.ids           for each string: its ids; where they differ, " | " and the ids without parsing special tokens
    FORM/golden.decode.jsonl  [ids, text, text without special tokens]
    FORM/golden.json          {"prefix": what transformers puts in front of a plain text, "eos": the id of eos_token}
"""

import json
import os
import random

from make_tokenizer_golden import LLAMA3, QWEN, byte_level, hostile_strings, packed, record, split
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

os.environ["HF_HUB_OFFLINE"] = "1"
from transformers import AutoTokenizer  # noqa: E402

HARD = [
    "<s>[INST] tile it [/INST] done</s>",
    "▁a ▁ ▁▁ <0x41><0x0A> <unk>",
    "<s> x</s> <s>\n\n</s>  y",
    " <|eot_id|>\n<|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>",
    "<|begin_of_text|><|begin_of_text|> <|eom_id|>",
    "<｜begin▁of▁sentence｜><｜User｜>hi<｜Assistant｜><think>\nhm\n</think>\n\nok<｜end▁of▁sentence｜>",
    "12 345 6789 ٣٤٥ ½",
    "a\r\nb\rc\t\td\0e\x7f",
    "ภาษาไทย العَرَبِيَّة नमस्ते 한국어 日本語",
    "👩‍👩‍👧‍👦👍🏽🇩🇪 e\u0323\u0301\u0316",
    "don't DON'T it'ſ we'll",
]


def flags(special, normalized=False):
    return {"lstrip": False, "normalized": normalized, "rstrip": False, "single_word": False, "special": special}


def typed(content):
    return {"__type": "AddedToken", "content": content, **{k: v for k, v in flags(True, True).items() if k != "special"}}


def sentencepiece(normalizer, pre_tokenizer, added):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(steps)
    special = ["<unk>", "<s>", "</s>"] + added + [f"<0x{byte:02X}>" for byte in range(256)]
    return tokenizer, trainers.BpeTrainer(vocab_size=620, special_tokens=special, limit_alphabet=120, max_token_length=12, show_progress=False)


def byte_level_bpe(pattern, normalizer, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split(Regex(pattern), "isolated"), byte_level()])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer, trainers.BpeTrainer(vocab_size=480, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)


def begins_with(token):
    return processors.TemplateProcessing(single=f"{token} $A", pair=f"{token} $A {token}:1 $B:1", special_tokens=[(token, 0)])


LLAMA_32 = ["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>"]
R1 = [("<｜end▁of▁sentence｜>", True), ("<｜User｜>", False), ("<｜Assistant｜>", False), ("<｜begin▁of▁sentence｜>", True), ("<think>", False), ("</think>", False)]
PREPEND = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
LLAMA_ROLES = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": None}

# name: tokenizer and trainer, added tokens (content, special), what a text begins with, model_type, tokenizer_config.json
FORMS = {
    "llama32": (
        byte_level_bpe(LLAMA3, None, ignore_merges=True),
        [(token, True) for token in LLAMA_32],
        "<|begin_of_text|>",
        "llama",
        {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>", "clean_up_tokenization_spaces": True, "tokenizer_class": "PreTrainedTokenizerFast"},
    ),
    "r1_qwen": (
        byte_level_bpe(QWEN, normalizers.Sequence([])),
        R1,
        "<｜begin▁of▁sentence｜>",
        "qwen2",
        {"add_bos_token": True, "add_eos_token": False, "bos_token": typed("<｜begin▁of▁sentence｜>"), "eos_token": typed("<｜end▁of▁sentence｜>"), "pad_token": typed("<｜end▁of▁sentence｜>"), "legacy": True, "unk_token": None, "tokenizer_class": "LlamaTokenizerFast"},
    ),
    "llama2": (sentencepiece(PREPEND, None, []), [(token, True) for token in ("<unk>", "<s>", "</s>")], "<s>", "llama", {**LLAMA_ROLES, "add_bos_token": True, "legacy": False, "tokenizer_class": "LlamaTokenizer"}),
    "mistral": (
        sentencepiece(None, pre_tokenizers.Metaspace("▁", "first", False), ["[INST]", "[/INST]"]),
        [(token, True) for token in ("<unk>", "<s>", "</s>", "[INST]", "[/INST]")],
        "<s>",
        "mistral",
        {**LLAMA_ROLES, "add_bos_token": True, "legacy": False, "tokenizer_class": "LlamaTokenizer"},
    ),
}


def make(name, corpus, folder):
    (tokenizer, trainer), added, begin, model_type, config = FORMS[name]
    tokenizer.train_from_iterator(corpus, trainer)
    value = json.loads(tokenizer.to_str())
    vocabulary = value["model"]["vocab"]
    ids = {token: vocabulary.get(token, len(vocabulary) + i) for i, (token, _) in enumerate(added)}
    value["added_tokens"] = [{"id": ids[token], "content": token, **flags(special)} for token, special in added]
    template = json.loads(begins_with(begin).__getstate__())
    template["special_tokens"][begin]["ids"] = [ids[begin]]
    byte_level_step = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}
    value["post_processor"] = {"type": "Sequence", "processors": [byte_level_step, template]} if name == "llama32" else template
    if name != "r1_qwen":
        config = {"added_tokens_decoder": {str(ids[token]): {"content": token, **flags(special)} for token, special in added}, **config}
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in (("tokenizer.json", value), ("tokenizer_config.json", config), ("config.json", {"model_type": model_type})):
        (folder / file).write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n")


def main():
    strings = hostile_strings()
    chosen = HARD + strings[:70] + random.Random(3).sample(strings[70:700], 120)
    with packed("tokenizer") as data:
        write_forms(data / "released", strings, chosen)


def write_forms(released, strings, chosen):
    for name in FORMS:
        make(name, strings[:1400] + HARD, released / name)
        tokenizer = AutoTokenizer.from_pretrained(released / name)
        prefix = tokenizer("x").input_ids[: -len(tokenizer("x", add_special_tokens=False).input_ids)]
        (released / name / "golden.json").write_text(json.dumps({"prefix": prefix, "eos": tokenizer.eos_token_id}) + "\n")
        record(tokenizer.backend_tokenizer, chosen, released / name / "golden")
    with open(released / "strings.jsonl", "w", encoding="utf-8") as file:
        for string in chosen:
            print(json.dumps(string), file=file)


if __name__ == "__main__":
    main()
