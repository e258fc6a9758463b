"""The PTX of several Triton kernels as one file. Used by record_triton.py."""
import os
import re


class Modules:
    """The PTX of all kernels as one file: a name that several of them define gets the kernel's number."""

    def __init__(self, source):
        self.source, self.entries, self.used = source, {}, set()
        self.bodies, self.files, self.strings, self.externals = [], [], [], []

    def entry(self, key, name, ptx):
        if key not in self.entries:
            number = len(self.entries)
            own_name, tries = name, number
            while own_name in self.used:
                own_name, tries = f"{name}_{tries}", tries + 1
            self.used.add(own_name)
            self.entries[key] = own_name
            # Variables and functions of the module; not the dynamic shared memory and what the system defines.
            own = re.findall(r"^(?:\.(?:visible|weak)\s+)*\.(?:global|const|func)\b[^;{=]*?([A-Za-z_$][\w$]*)\s*(?:\[|\(|=|;)", ptx, re.M)
            own += re.findall(r"^(\$L__info_string\d+):", ptx, re.M)
            # A name without _ or $ might be an instruction's.
            self.add(ptx.replace(f".entry {name}(", f".entry {own_name}("),
                     {one: f"{one}$of{number}" for one in own if "_" in one or "$" in one})
        return self.entries[key]

    def add(self, ptx, names):
        def renamed(line):
            return re.sub(r"(?<![\w$.%@])[A-Za-z_$][\w$]*", lambda word: names.get(word[0], word[0]), line)

        first, text, lines = len(self.files), [], iter(ptx.splitlines())
        for line in lines:
            stripped = line.strip()
            if not stripped or stripped.startswith((".version", ".target", ".address_size", "//")):
                continue
            if stripped.startswith(".extern"):
                while not line.rstrip().endswith(";"):
                    line += "\n" + next(lines)
                self.externals += [line] if line not in self.externals else []
            elif match := re.match(r"\s*\.file\s+\d+\s+(.*)", line):
                parts = re.findall(r'"([^"]*)"', match[1])
                self.files.append('"kernel.py"' if os.path.join(*parts) == self.source else match[1])
            elif stripped.startswith(".section"):  # only the names of inlined functions are used
                kept = ".debug_str" in stripped
                for line in lines:
                    if line.strip() == "}":
                        break
                    if kept and line.strip() != "{":
                        self.strings.append(renamed(line))
            else:
                line = re.sub(r"(\.loc\s+|inlined_at\s+)(\d+)", lambda place: place[1] + str(int(place[2]) + first), line)
                text.append(renamed(line))
        self.bodies.append("\n".join(text))

    def text(self, version, sm):
        parts = [f".version {version}\n.target sm_{sm}\n.address_size 64"] + self.externals + self.bodies
        parts += [f"\t.file\t{number} {name}" for number, name in enumerate(self.files, 1)]
        if self.strings:
            parts.append("\t.section\t.debug_str\n\t{\n" + "\n".join(self.strings) + "\n\t}")
        return "\n".join(parts) + "\n"
