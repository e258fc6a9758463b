#!/usr/bin/env python3
"""Writes kgrpo-host.1 from the help of the program and of each of its commands. Run by `cmake --install`.

    scripts/make_man_page.py build/bin/kgrpo-host build/kgrpo-host.1
"""

import re
import subprocess
import sys


def help_of(host, words):
    return subprocess.run([host, *words, "--help"], check=True, capture_output=True, text=True).stdout.strip("\n")


def commands(text):
    """The names in a help's list of subcommands."""
    block = re.search(r"^Subcommands:\n((?:  .*\n)+)", text + "\n", flags=re.M)
    return re.findall(r"^  (\S+)", block[1], flags=re.M) if block else []


def verbatim(text):
    """Lines that troff leaves as they are."""
    lines = []
    for line in text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").splitlines():
        lines.append("\\&" + line if line.startswith(".") else line)
    return ".nf\n" + "\n".join(lines) + "\n.fi\n"


def sections(host, words):
    """One section a command, its own commands behind it."""
    text = help_of(host, words)
    title = " ".join(["kgrpo-host", *words]).replace("-", "\\-")
    yield f".SS {title}\n" + verbatim(text)
    for name in commands(text):
        yield from sections(host, [*words, name])


def page(host):
    text = help_of(host, [])
    version = subprocess.run([host, "--version"], check=True, capture_output=True, text=True).stdout.split("(")[0].strip()
    summary, rest = text.split("\n", 1)
    body = [
        f'.TH KGRPO\\-HOST 1 "" "{version}" "User Commands"\n',
        f".SH NAME\nkgrpo\\-host \\- {summary[0].lower() + summary[1:].rstrip('.')}\n",
        ".SH SYNOPSIS\n.B kgrpo\\-host\n[\\fIOPTIONS\\fR] \\fICOMMAND\\fR ...\n.br\n.B kgrpo\\-host\n\\fIPIPELINE.yaml\\fR\n",
        ".SH DESCRIPTION\n" + verbatim(rest.split("\n", 1)[1].strip("\n")),
        ".SH COMMANDS\n",
    ]
    for name in commands(text):
        body += sections(host, [name])
    body.append(".SH SEE ALSO\nshare/doc/kgrpo/README.md and docs/ beside it.\n")
    return "".join(body)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[2], "w") as file:
        file.write(page(sys.argv[1]))


if __name__ == "__main__":
    main()
