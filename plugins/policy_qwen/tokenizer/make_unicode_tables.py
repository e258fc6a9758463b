#!/usr/bin/env python3
"""Writes unicode_tables.inc, the differences between the Unicode versions of our libraries and of Hugging Face's tokenizers.

    pip install --target v17 unicodedata2==17.0.0
    pip install tokenizers==0.23.3
    python3.11 make_unicode_tables.py v17 > unicode_tables.inc        # 3.11: its own unicodedata is Unicode 14

The reference knows several versions: 16 in regular expressions, 17 in Digits and Lowercase, older ones in Punctuation and
in the normal forms. Each is found out here by asking it. Oniguruma 6.9.8 knows Unicode 14, utf8proc 15 or later.
"""

import sys
import unicodedata as v14

from tokenizers import Regex, normalizers, pre_tokenizers

sys.path.insert(0, sys.argv[1])
import unicodedata2 as v17

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Cf".split()


def ranges(values):
    """(first, last, value) of each run of code points with one value that is not None."""
    out = []
    for code_point, value in values:
        if value is None:
            continue
        if out and out[-1][1] == code_point - 1 and out[-1][2] == value:
            out[-1][1] = code_point
        else:
            out.append([code_point, code_point, value])
    return out


def categories_of_reference():
    """The general category that the reference's regular expressions know, and its Digits where that knows more numbers."""
    text = "".join(map(chr, CODE_POINTS))
    known = {}
    for category in CATEGORIES:
        marked = normalizers.Replace(Regex(rf"\p{{{category}}}"), "\0").normalize_str(text)
        known.update((c, (category, 16)) for c, mark in zip(CODE_POINTS, marked) if c and mark == "\0")
    digits = pre_tokenizers.Digits()
    for c in CODE_POINTS:
        if c not in known and v17.category(chr(c))[0] == "N" and len(digits.pre_tokenize_str("a" + chr(c))) == 2:
            known[c] = (v17.category(chr(c)), 17)
    return known


def is_reordered_by_reference(code_point, combining, nfc):
    character = chr(code_point)
    mark, first, second = ("\u0334", "a" + character, "a\u0334" + character) if combining > 1 else ("\u0301", "a\u0301" + character, "a" + character)
    first, second = (first + mark, second) if combining > 1 else (first, second + mark)
    return nfc.normalize_str(first) == nfc.normalize_str(second)


def unknown_to_reference():
    """Characters that Unicode 17 reorders, composes or decomposes and the reference leaves alone; of a composition, its first part too."""
    nfc, nfkd = normalizers.NFC(), normalizers.NFKD()
    unknown = set()
    for code_point in CODE_POINTS:
        character = chr(code_point)
        decomposed = v17.normalize("NFD", character)
        combining = v17.combining(character)
        if combining != 0 and not is_reordered_by_reference(code_point, combining, nfc):
            unknown.add(code_point)
        if combining == 0 and decomposed != character and nfc.normalize_str(decomposed) != v17.normalize("NFC", character):
            unknown.update((code_point, ord(decomposed[0])))
        if nfkd.normalize_str(character) != v17.normalize("NFKD", character):
            unknown.add(code_point)
    return unknown


def no_punctuation_to_reference():
    pre_tokenizer = pre_tokenizers.Punctuation()
    return {c for c in CODE_POINTS if v17.category(chr(c))[0] == "P" and len(pre_tokenizer.pre_tokenize_str("a" + chr(c))) == 1}


def lowercase_additions():
    lowercase = normalizers.Lowercase()
    for c in CODE_POINTS:
        lower = lowercase.normalize_str(chr(c))
        if len(lower) == 1 and lower != chr(c).lower():
            yield c, ord(lower) - c


def print_table(declaration, entries):
    print(f"constexpr {declaration}[] = {{")
    line = "   "
    for entry in entries:
        if len(line) + len(entry) > 117:
            print(line)
            line = "   "
        line += f" {{{entry}}},"
    print(line + "\n};")


def main():
    known = categories_of_reference()
    additions = ((c, known[c]) for c in CODE_POINTS if c in known and known[c][0] != v14.category(chr(c)))
    print("// Written by make_unicode_tables.py.\n// clang-format off")
    print_table("UnicodeAddition kUnicodeAdditions", (f'0x{a:X}, 0x{b:X}, "{v[0]}", {v[1]}' for a, b, v in ranges(additions)))
    for name, code_points in (("UnknownToReference", unknown_to_reference()), ("NoPunctuationToReference", no_punctuation_to_reference())):
        print_table(f"CodePointRange k{name}", (f"0x{a:X}, 0x{b:X}" for a, b, _ in ranges((c, 0) for c in sorted(code_points))))
    print_table("LowercaseAddition kLowercaseAdditions", (f"0x{a:X}, 0x{b:X}, {v}" for a, b, v in ranges(lowercase_additions())))
    print("// clang-format on")


if __name__ == "__main__":
    main()
