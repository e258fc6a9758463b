#!/usr/bin/env python3
"""Finds functions of unnamed namespaces that share a name with a function of another file of the same target.

scripts/quickstart sets up a build that compiles several files as one unit. There the other file's overload may match a
call better, so the two builds would behave differently without an error. Called by scripts/lint.
example: scripts/anonymous_names.py"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = re.compile(r"\b(?:kgrpo_library|kgrpo_host_library|kgrpo_plugin|add_library|add_executable|judge_room)"
                    r"\(\s*(\S+)\s+(.*?)\)", re.S)
FUNCTION = re.compile(r"(?:\[\[\w+\]\] )?[A-Za-z_][\w:<>,*& ]*[ *&](\w+)\(")


def sources_of(lists: pathlib.Path):
    """Each target of a CMakeLists.txt of core and plugins, with its C++ files."""
    text = re.sub(r"#.*", "", lists.read_text())
    for name, rest in TARGET.findall(text):
        files = [lists.parent / word for word in rest.split() if word.endswith(".cc")]
        if "${sources}" in rest:  # file(GLOB ...)
            files += [file for file in lists.parent.glob("*.cc") if not file.name.endswith("_main.cc")]
        if not files:  # judge_room(NAME ...): the folder of that name
            files = [file for file in (lists.parent / name).glob("*.cc") if not file.name.endswith("_main.cc")]
        yield name, [file for file in files if file.exists()]


def functions_of(file: pathlib.Path):
    """(name, whether it is in the unnamed namespace) of the functions that begin a line."""
    unnamed = False
    text = re.sub(r'R"(\w*)\(.*?\)\1"', "", file.read_text(), flags=re.S)  # kernels in raw strings
    for line in text.splitlines():
        if line == "namespace {":
            unnamed = True
        elif line == "}  // namespace":
            unnamed = False
        elif match := FUNCTION.match(line):
            yield match[1], unnamed


def main() -> int:
    mistakes = set()
    for lists in sorted([*ROOT.glob("core/**/CMakeLists.txt"), *ROOT.glob("plugins/**/CMakeLists.txt"),
                         *ROOT.glob("tools/**/CMakeLists.txt")]):
        for target, files in sources_of(lists):
            places = collections.defaultdict(lambda: (set(), set()))  # name: files where it is unnamed, where it is not
            for file in files:
                for name, unnamed in functions_of(file):
                    places[name][0 if unnamed else 1].add(file.relative_to(ROOT))
            for name, (own, others) in places.items():
                if own and len(own | others) > 1:
                    mistakes.add(f"{min(own)}: {name} is also a function of "
                                 f"{', '.join(map(str, sorted((own | others) - {min(own)})))}: give it another name")
    print("\n".join(sorted(mistakes)), end="\n" if mistakes else "", file=sys.stderr)
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
