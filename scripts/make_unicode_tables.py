#!/usr/bin/env python3
"""Writes unicode_tables.inc, the differences between the Unicode versions of our libraries and of Hugging Face's tokenizers.

    pip install --target v17 unicodedata2==17.0.0
    pip install tokenizers==0.23.3
    python3.11 scripts/make_unicode_tables.py v17 > plugins/policy_qwen/tokenizer/unicode_tables.inc  # 3.11 knows Unicode 14

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
    numbers = (c for c in CODE_POINTS if c not in known and v17.category(chr(c))[0] == "N")
    known.update((c, (v17.category(chr(c)), 17)) for c in numbers if is_cut_off(pre_tokenizers.Digits(), c))
    return known


def is_cut_off(pre_tokenizer, code_point):
    return len(pre_tokenizer.pre_tokenize_str("a" + chr(code_point))) == 2


def is_reordered_by_reference(character, combining):
    mark, first, second = ("\u0334", "a", "a\u0334") if combining > 1 else ("\u0301", "a\u0301", "a")
    texts = (first + character + mark, second + character) if combining > 1 else (first + character, second + character + mark)
    return len(set(map(normalizers.NFC().normalize_str, texts))) == 1


def unknown_to_reference():
    """Characters that Unicode 17 reorders, composes or decomposes and the reference leaves alone; of a composition, its first part too."""
    unknown = set()
    for c in CODE_POINTS:
        decomposed, combining = v17.normalize("NFD", chr(c)), v17.combining(chr(c))
        if combining and not is_reordered_by_reference(chr(c), combining):
            unknown.add(c)
        if not combining and decomposed != chr(c) and normalizers.NFC().normalize_str(decomposed) != v17.normalize("NFC", chr(c)):
            unknown.update((c, ord(decomposed[0])))
        if normalizers.NFKD().normalize_str(chr(c)) != v17.normalize("NFKD", chr(c)):
            unknown.add(c)
    return sorted(unknown)


def lowercase_additions():
    for c in CODE_POINTS:
        lower = normalizers.Lowercase().normalize_str(chr(c))
        if len(lower) == 1 and lower != chr(c).lower():
            yield c, ord(lower) - c


def main():
    tables = {}
    for c, (category, version) in sorted(categories_of_reference().items()):
        if category != v14.category(chr(c)):
            tables.setdefault(("category", category, version), []).append(c)
    tables["unknown", "", 0] = unknown_to_reference()
    tables["no punctuation", "", 0] = [c for c in CODE_POINTS if v17.category(chr(c))[0] == "P" and not is_cut_off(pre_tokenizers.Punctuation(), c)]
    for c, distance in lowercase_additions():
        tables.setdefault(("lowercase", "", distance), []).append(c)
    print("// Written by make_unicode_tables.py.\n// clang-format off\nconstexpr UnicodeTable kTables[] = {")
    for (kind, category, value), code_points in sorted(tables.items()):
        text = textwrap.fill(ranges(code_points), 112, initial_indent=f'    {{"{kind}", "{category}", {value}, "', subsequent_indent='     "')
        print(text.replace("\n", ' "\n') + '"},')
    print("};\n// clang-format on")


if __name__ == "__main__":
    main()
