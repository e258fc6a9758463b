#!/usr/bin/env python3
"""Writes unicode_tables.inc, the differences between the Unicode versions of our libraries and of Hugging Face's tokenizers.

    pip install --target v17 unicodedata2==17.0.0
    pip install tokenizers==0.23.3
    python3.11 make_unicode_tables.py v17 > unicode_tables.inc        # 3.11: its own unicodedata is Unicode 14

The reference knows several versions: 16 in regular expressions, 17 in Digits and Lowercase, older ones in Punctuation and
in the normal forms. Each is found out here by asking it. Oniguruma 6.9.8 knows Unicode 14, utf8proc 15 or later.
"""

import sys
import textwrap
import unicodedata as v14

from tokenizers import Regex, normalizers, pre_tokenizers

sys.path.insert(0, sys.argv[1])
import unicodedata2 as v17

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Cf".split()


def ranges(code_points):
    """"41-5A 61": the runs of ascending code points."""
    runs = []
    for code_point in code_points:
        if runs and runs[-1][1] == code_point - 1:
            runs[-1][1] = code_point
        else:
            runs.append([code_point, code_point])
    return " ".join(f"{first:X}" if first == last else f"{first:X}-{last:X}" for first, last in runs)


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


def main():
    tables = {}
    for c, (category, version) in sorted(categories_of_reference().items()):
        if category != v14.category(chr(c)):
            tables.setdefault(("category", category, version), []).append(c)
    tables["unknown", "", 0] = sorted(unknown_to_reference())
    tables["no punctuation", "", 0] = sorted(no_punctuation_to_reference())
    for c, distance in lowercase_additions():
        tables.setdefault(("lowercase", "", distance), []).append(c)
    print("// Written by make_unicode_tables.py.\n// clang-format off\nconstexpr UnicodeTable kTables[] = {")
    for (kind, category, value), code_points in sorted(tables.items()):
        text = textwrap.fill(ranges(code_points), 112, initial_indent=f'    {{"{kind}", "{category}", {value}, "', subsequent_indent='     "')
        print(text.replace("\n", ' "\n') + '"},')
    print("};\n// clang-format on")


if __name__ == "__main__":
    main()
