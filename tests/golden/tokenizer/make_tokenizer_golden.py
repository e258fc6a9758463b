#!/usr/bin/env python3
"""Writes what Hugging Face's tokenizers says about hostile strings, for the tests of plugins/policy_qwen/tokenizer.

    pip install tokenizers==0.23.3
    scripts/setup_test_vocabularies
    tests/golden/tokenizer/make_tokenizer_golden.py build/test_vocabularies

Written to ../tokenizer.tar.xz:
    strings.jsonl             the strings, one JSON string a line
    VOCABULARY.ids            for each string: its ids; where they differ, " | " and the ids without parsing special tokens
    VOCABULARY.decode.jsonl   [ids, text, text without special tokens]: of strings that decode to another text, and of random ids
    tiny/STYLE/tokenizer.json small tokenizers, one for each way of cutting text into words, trained here
VOCABULARY is qwen, smollm2 (whole vocabularies, made by scripts/setup_test_vocabularies) or tiny/STYLE, which is tested on
the first strings only.
"""

import json
import pathlib
import random
import sys
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from pack import packed  # noqa: E402

COUNT = 3200
COUNT_TINY = 700

QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = QWEN.replace(r"\p{N}|", r"\p{N}{1,3}|")

BY_HAND = [
    "",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\r\n\r\n",
    " \n",
    "\n ",
    "\t\tint x;",
    "\x00",
    "\x00\x01\x02\x7f",
    "Hello, world!",
    "__global__ void kernel(const float* __restrict__ x, float* y, int n) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n}",
    "use shared-memory tiling with a 32x32 tile, then #pragma unroll 4",
    "I'll, I'LL, i'Ve, he'S, it'ſ, we'RE, 'tis, 'D'd'M",
    "don't can't won't DON'T",
    "1234567890 12 345.678e-9 0x1F",
    "½ ⅓ Ⅷ ² ① 一 二 三 ٠١٢ १२३ 𝟘𝟙 ௰",
    "e\u0301 \u00e9 A\u030a \u212b \u2126 \ufb01 \u1e9b\u0323 q\u0323\u0307 q\u0307\u0323",
    "\u1100\u1161\u11a8 \uac01 \u0958 \u2adc \u0344 \ud55c\uad6d\uc5b4",
    "\u0f73\u0f75\u0f71\u0f72 \u1fed \u0374",
    "a\u200bb\u200cc\u200dd\u2060e\ufefff",
    "\u00a0\u1680\u180e\u2000\u2028\u2029\u202f\u205f\u3000x",
    "\x1c\x1d\x1e\x1f\x85\x0b\x0c",
    "日本語のテキスト、句読点。「引用」",
    "中文没有空格12三",
    "русский текст, ещё раз",
    "العربية نص ٣٤",
    "हिन्दी क्षि",
    "ไทยไม่มีช่องว่าง",
    "👩‍👩‍👧‍👦 👍🏽 🇩🇪 ☺️",
    "\U00010ffff \U000f0000 \ufffd \ufffe \ue000",
    "\U00031350\U0002ebf0\U00011f50\U00010d40\U00016d63\U00011de0",
    "<|im_start|>system\nYou are<|im_end|>\n<|im_start|>user\nHi<|im_end|>",
    "<|im_end|><|im_end|>  <|endoftext|>",
    "<|im_start|",
    "|im_start|>",
    "<<|im_start|>>",
    "< |im_start| >",
    "<think>\n\n</think>\n\n",
    "<think><tool_call></tool_call>",
    "e\u0301<|im_end|>\u0301",
    "a<think>\u0301b",
    "a" * 200,
    " " * 200,
    "\n" * 100,
    " \n" * 60,
    "ab" * 120,
    "!" * 150,
    "é" * 120,
    "e\u0301\u0323" * 60,
    "1" * 100,
    "x" + " " * 70 + "y",
    "\u3042" * 100,
    "the the the the The THE tHe",
    "https://example.org/a/b?c=d&e=%20#f",
    "C:\\Users\\x\\y.txt",
    "{\"a\": [1, 2, {\"b\": null}]}",
    "$$\\int_0^1 x^2\\,dx$$",
    "if (x<y&&z>=w||!v){a+=b*c/d%e^f~g;}",
    "// コメント /* комментарий */",
    "foo_bar fooBar FooBar FOO_BAR foo-bar",
    "   leading and trailing   ",
    "word\t\t\tword\v\fword",
    "[MARK]x [MARK] y[MARK]",
    " wide  wide\n\twide",
    "xword word wordx _word word_ word.",
    "CAF\u00c9 cafe\u0301 caf\u00e9",
    "a--b--c, --, ---- -",
]


def hostile_strings():
    rng = random.Random(20240607)
    assigned = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF and unicodedata.category(chr(c)) not in ("Cn", "Co")]
    marks = [c for c in assigned if unicodedata.combining(chr(c))]
    decomposing = [c for c in assigned if unicodedata.decomposition(chr(c))]
    numbers = [c for c in assigned if unicodedata.category(chr(c))[0] == "N"]
    spaces = [c for c in range(0x3001) if chr(c).isspace()] + [0x180E, 0x200B, 0xFEFF]
    words = "the kernel loop's shared memory tile we'll DON'T int float x[i] = 0; ++i -> :: #pragma //".split(" ")
    tokens = "<|im_start|> <|im_end|> <|endoftext|> <think> </think> <tool_call> <|im_ [MARK] wide word caf\u00e9 --".split(" ")
    sources = [
        lambda: chr(rng.choice(assigned)),
        lambda: chr(rng.choice(marks)),
        lambda: chr(rng.choice(decomposing)),
        lambda: unicodedata.normalize("NFD", chr(rng.choice(decomposing))),
        lambda: chr(rng.choice(numbers)),
        lambda: chr(rng.choice(spaces)),
        lambda: chr(rng.randrange(0x80)),
        lambda: chr(rng.choice([c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF])) if rng.random() < 0.02 else "'",
        lambda: rng.choice(words),
        lambda: rng.choice(words) + " ",
        lambda: " " + rng.choice(words),
        lambda: rng.choice(tokens),
        lambda: rng.choice("\r\n \t'"),
        lambda: rng.choice("sSſtTdDmM"),
        lambda: str(rng.randrange(100000)),
        lambda: chr(rng.randrange(0x4E00, 0x9FFF)),
    ]
    strings = list(BY_HAND)
    while len(strings) < COUNT:
        mix = rng.sample(sources, rng.randrange(1, 6))
        strings.append("".join(rng.choice(mix)() for _ in range(rng.randrange(1, 16))))
    return strings


def byte_level(**options):
    return pre_tokenizers.ByteLevel(add_prefix_space=options.get("prefix", False), use_regex=options.get("regex", False))


def split(pattern, behavior, invert=False):
    return pre_tokenizers.Split(pattern, behavior, invert)


MARKS = [
    AddedToken("[MARK]", lstrip=True, rstrip=True, normalized=False, special=True),
    AddedToken("wide", lstrip=True, normalized=True),
    AddedToken("word", single_word=True, normalized=False),
    AddedToken("caf\u00e9", rstrip=True, normalized=True),
    AddedToken("--", normalized=False),
    AddedToken("----", normalized=False),
]
CHAT = [AddedToken(token, normalized=False, special=True) for token in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")]

# name: normalizer, pre-tokenizer, model options, added tokens, changes to the file
STYLES = {
    "qwen": ("nfc", [split(Regex(QWEN), "isolated"), byte_level()], {}, CHAT + [AddedToken("<think>"), AddedToken("</think>")]),
    "gpt2": (None, [byte_level(regex=True)], {}, CHAT),
    "gpt2_prefix": (None, [byte_level(regex=True, prefix=True)], {}, CHAT),
    "smollm": (None, [pre_tokenizers.Digits(True), byte_level(regex=True)], {}, CHAT),
    "digits_together": ("nfc", [pre_tokenizers.Digits(False), byte_level(prefix=True)], {}, CHAT),
    "llama3": (None, [split(Regex(LLAMA3), "isolated"), byte_level()], {"ignore_merges": True}, CHAT),
    "added_tokens": ("nfc", [split(Regex(QWEN), "isolated"), byte_level()], {}, CHAT + MARKS),
    "removed": (None, [split(" ", "removed"), split(Regex(r"\d+"), "merged_with_previous"), byte_level()], {}, CHAT),
    "merged": (None, [split("e", "merged_with_next"), split(Regex(r"[\r\n]"), "contiguous"), byte_level(regex=True)], {}, CHAT),
    "inverted": (None, [split(Regex(r"\w+|[^\w\s]+"), "removed", True), split(Regex(r"\p{Lu}|\W|\p{Han}"), "merged_with_next", True), byte_level()], {}, CHAT),
    "unknown": (None, [split(Regex(r"\s*\S*"), "isolated"), byte_level()], {"unk_token": "<unk>"}, CHAT),
    "unknown_fused": (None, [byte_level(regex=True)], {"unk_token": "<unk>", "fuse_unk": True}, CHAT),
    "dropped": (None, [byte_level(regex=True)], {}, CHAT),
}
LACKS_BYTES = ("unknown", "unknown_fused", "dropped")


def train(style, strings, folder):
    normalizer, steps, options, added = STYLES[style]
    tokenizer = Tokenizer(models.BPE(**options))
    if normalizer:
        tokenizer.normalizer = normalizers.Sequence([normalizers.NFC()]) if style == "added_tokens" else normalizers.NFC()
    tokenizer.pre_tokenizer = steps[0] if len(steps) == 1 else pre_tokenizers.Sequence(steps)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<unk>"] if "unk_token" in options else []
    # Without an initial alphabet, bytes that the corpus lacks get no token.
    initial = [] if style in LACKS_BYTES else alphabet
    corpus = [s for s in strings if s.isascii()] if style in LACKS_BYTES else strings
    trainer = trainers.BpeTrainer(vocab_size=512 - len(added), initial_alphabet=initial, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(corpus, trainer)
    tokenizer.add_tokens([token for token in added if not token.special])
    tokenizer.add_special_tokens([token for token in added if token.special])
    value = json.loads(tokenizer.to_str())
    if style in ("gpt2", "merged"):  # as older files have them
        value["model"]["merges"] = [" ".join(merge) for merge in value["model"]["merges"]]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def encode_all(tokenizer, strings, parse_special):
    tokenizer.encode_special_tokens = not parse_special
    return [tokenizer.encode(string, add_special_tokens=False).ids for string in strings]


def record(tokenizer, strings, out):
    out.parent.mkdir(parents=True, exist_ok=True)
    parsed, unparsed = encode_all(tokenizer, strings, True), encode_all(tokenizer, strings, False)
    with open(f"{out}.ids", "w", encoding="ascii") as file:
        for ids, other in zip(parsed, unparsed):
            line = " ".join(map(str, ids))
            print(line if ids == other else line + " | " + " ".join(map(str, other)), file=file)
    rng = random.Random(7)
    size = tokenizer.get_vocab_size()
    samples = [[rng.randrange(size + 20) for _ in range(rng.randrange(1, 9))] for _ in range(150)]
    changed = [ids for ids, string in zip(parsed, strings) if tokenizer.decode(ids, skip_special_tokens=False) != string]
    with open(f"{out}.decode.jsonl", "w", encoding="utf-8") as file:
        for ids in samples + changed[:150]:
            row = [ids, tokenizer.decode(ids, skip_special_tokens=False), tokenizer.decode(ids, skip_special_tokens=True)]
            print(json.dumps(row, ensure_ascii=False), file=file)


def main():
    strings = hostile_strings()
    with packed("tokenizer") as data:
        with open(data / "strings.jsonl", "w", encoding="utf-8") as file:
            for string in strings:
                print(json.dumps(string), file=file)
        for style in STYLES:
            folder = data / "tiny" / style
            record(train(style, strings[: 2 * COUNT_TINY], folder), strings[:COUNT_TINY], folder / "golden")
        for name in ("qwen", "smollm2"):
            tokenizer = Tokenizer.from_file(str(pathlib.Path(sys.argv[1]) / name / "tokenizer.json"))
            record(tokenizer, strings, data / name)


if __name__ == "__main__":
    main()
