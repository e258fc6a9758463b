#!/usr/bin/env python3
"""Writes unicode_tables.inc, the differences between the Unicode versions of our libraries and of Hugging Face's tokenizers.

    pip install --target v16 unicodedata2==16.0.0
    pip install --target v17 unicodedata2==17.0.0
    pip install tokenizers==0.23.3
    python3.11 make_unicode_tables.py v16 v17 > unicode_tables.inc        # 3.11: its own unicodedata is Unicode 14

Their regular expressions know Unicode 16, their Digits Unicode 17, and their NFC an old version, which is found out here by
asking it. PCRE2 10.42 knows Unicode 14, utf8proc 15 or later.
"""

import importlib
import sys
import unicodedata

from tokenizers import normalizers

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


def load(folder, version):
    sys.path.insert(0, folder)
    sys.modules.pop("unicodedata2", None)
    module = importlib.import_module("unicodedata2")
    sys.path.pop(0)
    assert module.unidata_version == version, module.unidata_version
    return module


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


def addition(code_point, v14, v16, v17):
    character = chr(code_point)
    if v16.category(character) != v14.category(character):
        return v16.category(character), 16
    if v17.category(character) != v16.category(character) and v17.category(character)[0] == "N":
        return v17.category(character), 17
    return None


def is_reordered_by_reference(code_point, combining, nfc):
    character = chr(code_point)
    mark, first, second = ("\u0334", "a" + character, "a\u0334" + character) if combining > 1 else ("\u0301", "a\u0301" + character, "a" + character)
    first, second = (first + mark, second) if combining > 1 else (first, second + mark)
    return nfc.normalize_str(first) == nfc.normalize_str(second)


def unknown_to_reference(v17, nfc):
    """Characters that Unicode 17 reorders or composes and the reference's NFC leaves alone; of a composition, its first part too."""
    unknown = set()
    for code_point in CODE_POINTS:
        character = chr(code_point)
        decomposed = v17.normalize("NFD", character)
        combining = v17.combining(character)
        if combining != 0 and not is_reordered_by_reference(code_point, combining, nfc):
            unknown.add(code_point)
        if combining == 0 and decomposed != character and nfc.normalize_str(decomposed) != v17.normalize("NFC", character):
            unknown.update((code_point, ord(decomposed[0])))
    return unknown


def main():
    v14 = unicodedata
    assert v14.unidata_version == "14.0.0", v14.unidata_version
    v16, v17 = load(sys.argv[1], "16.0.0"), load(sys.argv[2], "17.0.0")
    nfc = normalizers.NFC()
    print("// Written by make_unicode_tables.py.")
    print("// clang-format off")
    print("constexpr UnicodeAddition kUnicodeAdditions[] = {")
    for first, last, (category, version) in ranges((c, addition(c, v14, v16, v17)) for c in CODE_POINTS):
        print(f'    {{0x{first:X}, 0x{last:X}, "{category}", {version}}},')
    print("};")
    print("constexpr std::pair<uint32_t, uint32_t> kUnknownToReferenceNfc[] = {")
    for first, last, _ in ranges((c, True) for c in sorted(unknown_to_reference(v17, nfc))):
        print(f"    {{0x{first:X}, 0x{last:X}}},")
    print("};")
    print("// clang-format on")


if __name__ == "__main__":
    main()
