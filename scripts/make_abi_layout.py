#!/usr/bin/env python3
"""Writes tests/plugin/abi_layout.c: where each member of each struct of the plugin ABI lies, as assertions.

    scripts/make_abi_layout.py            # after a struct has grown
    scripts/make_abi_layout.py --check    # as ctest does: exit code 1 where the file is not what the headers say

The file is compiled with the tests, so a member that moved, or became another size, fails the build. A struct that grew
at its end, as the ABI allows, fails --check until the new member is written down here. An assertion of the file that
changes or goes away is a broken ABI.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, "core/abi/kgrpo")
WIDTH = 120
FILE = os.path.join(ROOT, "tests/plugin/abi_layout.c")


def members(body):
    """The names of a struct's members, in order; those of a struct within it by their path."""
    names = []
    for inner in re.finditer(r"struct \{([^{}]*)\} (\w+);", body):
        body = body.replace(inner[0], " ".join(f"x {inner[2]}.{name};" for name in members(inner[1])))
    for declaration in body.split(";"):
        declaration = " ".join(declaration.split())
        if not declaration:
            continue
        function = re.search(r"\(\*(\w+)\)\s*\(", declaration)
        name = function or re.search(r"([\w.]+)(?:\[[^\]]*\])?$", declaration)
        if not name or (not function and "," in declaration):
            sys.exit(f"make_abi_layout: cannot read the member \"{declaration}\": declare one name in it")
        names.append(name[1])
    return names


def structs():
    """(header, struct, members) of each that the headers define."""
    for header in sorted(name for name in os.listdir(FOLDER) if name.endswith(".h")):  # not those of draft/
        with open(os.path.join(FOLDER, header)) as file:
            text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
        opened = re.findall(r"typedef struct \w+ \{", text)
        found = re.findall(r"typedef struct (\w+) \{(.*?)\n\} \1;", text, flags=re.S)
        if len(found) != len(opened):
            sys.exit(f"make_abi_layout: {header} has {len(opened)} structs, of which {len(found)} were read")
        for name, body in found:
            yield header, name, members(body)


def measured(every):
    """{(struct, member): (offset, size)} as the C compiler has it."""
    lines = [f"#include <kgrpo/{header}>" for header in sorted({header for header, _, _ in every})]
    lines += ["#include <stdio.h>", "#include <stddef.h>", "int main(void) {"]
    for _, name, names in every:
        for member in names:
            lines.append(f'  printf("{name} {member} %zu %zu\\n", offsetof({name}, {member}), sizeof((({name}*)0)->{member}));')
    lines += ["  return 0;", "}"]
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
        with open(source, "w") as file:
            file.write("\n".join(lines) + "\n")
        subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-I", os.path.dirname(FOLDER), source, "-o", program], check=True)
        output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    rows = (line.split() for line in output.splitlines())
    return {(name, member): (int(offset), int(size)) for name, member, offset, size in rows}


def text():
    every = list(structs())
    places = measured(every)
    lines = [
        "/* Where each member of each struct of the plugin ABI lies, on machines of 64-bit pointers. Written by",
        " * scripts/make_abi_layout.py; a plugin that was built years ago relies on each assertion. */",
        "/* clang-format off */",
        "#include <stddef.h>",
        "",
    ]
    lines += [f"#include <kgrpo/{header}>" for header in sorted({header for header, _, _ in every})]
    lines += [
        "",
        "#define AT(type, member, offset, size)                                                   \\",
        '  _Static_assert(offsetof(type, member) == (offset), #type "." #member " has moved");     \\',
        "  _Static_assert(sizeof(((type*)0)->member) == (size), #type \".\" #member \" has another size\")",
    ]
    for _, name, names in every:
        line = ""
        for member in names:
            assertion = f"AT({name}, {member}, {places[name, member][0]}, {places[name, member][1]});"
            if line and len(line) + len(assertion) >= WIDTH:
                lines.append(line)
                line = ""
            line += " " * bool(line) + assertion
        lines.append(line)
    return "\n".join(lines) + "\n"


def assertions(source):
    return re.findall(r"^#include .*|AT\(kgrpo_.*?\);", source, re.M)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; compare")
    arguments = parser.parse_args()
    wanted = text()
    if not arguments.check:
        with open(FILE, "w") as file:
            file.write(wanted)
        return
    with open(FILE) as file:
        there = file.read()
    missing = [line for line in assertions(wanted) if line not in set(assertions(there))]
    gone = [line for line in assertions(there) if line not in set(assertions(wanted))]
    if missing or gone:
        print("the headers of core/abi and tests/plugin/abi_layout.c differ")
        for line in gone:
            print("  broken: a released member moved, changed or went away:", line)
        for line in missing:
            print("  not written down yet: run scripts/make_abi_layout.py:", line)
        sys.exit(1)


if __name__ == "__main__":
    main()
