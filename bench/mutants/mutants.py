#!/usr/bin/env python3
"""How many wrong kernels evaluator_sim finds: the rules of rules.py applied to every shipped reference and honest kernel.

    bench/mutants/mutants.py --host build/bin/kgrpo-host                      # all of them: hours
    bench/mutants/mutants.py --host build/bin/kgrpo-host --sample 300 --seed 1 --out mutants.tsv
    bench/mutants/mutants.py --list                                           # rules, and mutants by rule

The sample takes its mutants by a hash of the seed, the kernels and the lines, in turns from each rule. --out keeps the
verdicts: a further run goes on behind them. A mutant that a quick evaluation calls correct is equivalent if nvcc makes
the same code of it as of the original, or if equivalents.tsv gives a reason. Else it is evaluated thoroughly, and is a
fault if that calls it correct, too. Printed are a table by kind, and the faults. Exits with 1 if there are any, or if
an unchanged kernel of the sample is not correct. `ctest -R mutants_sample` judges a fixed sample.
"""
import argparse
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

from rules import RULES

ROOT = pathlib.Path(__file__).resolve().parents[2]
EQUIVALENTS = pathlib.Path(__file__).with_name("equivalents.tsv")
KINDS = {name: kind for name, kind, _, _ in RULES}


@dataclasses.dataclass(frozen=True)
class Kernel:
    name: str  # "softmax_long" of a reference, "honest/softmax_online"
    problem: str
    source: str


@dataclasses.dataclass(frozen=True)
class Mutant:
    kernel: Kernel
    rule: str
    line: int  # from 0
    match: int  # of the rule's matches in lines of the same text
    source: str

    @property
    def text(self):
        return " ".join(self.kernel.source.splitlines()[self.line].split())

    @property
    def key(self):
        """Independent of the lines around it; what equivalents.tsv names."""
        return (self.kernel.name, self.rule, str(self.match), self.text)


def kernels():
    found = []
    for folder in sorted((ROOT / "problems").iterdir()):
        reference = folder / "reference.cu"
        if reference.exists():
            found.append(Kernel(folder.name, str(folder), reference.read_text()))
    sources = {path.stem: path.read_text() for path in (ROOT / "tests/judging/honest").glob("*.cu")}
    with tarfile.open(ROOT / "tests/golden/judging.tar.xz") as packed:
        for member in packed.getmembers():
            if "/honest/" in member.name and member.name.endswith(".cu"):
                sources[pathlib.PurePath(member.name).stem] = packed.extractfile(member).read().decode()
    for name, source in sorted(sources.items()):
        header = dict(re.findall(r"^// (\w+): (.*)$", source, re.M))
        if header.get("sim") == "correct":
            found.append(Kernel("honest/" + name, str(ROOT / header["problem"]), source))
    return found


def mutants_of(kernel):
    lines = kernel.source.splitlines()
    matches = {}
    for number, line in enumerate(lines):
        code = line.split("//")[0]
        if not code.strip() or code.lstrip().startswith(("#", "template", "namespace")):
            continue
        for rule, _, pattern, replacement in RULES:
            for match in re.finditer(pattern, code):
                same = (rule, " ".join(line.split()))
                i = matches[same] = matches.get(same, -1) + 1
                changed = code[: match.start()] + match.expand(replacement) + line[match.end() :]
                if changed != line:
                    source = "\n".join(lines[:number] + [changed] + lines[number + 1 :]) + "\n"
                    yield Mutant(kernel, rule, number, i, source)


def sample_of(mutants, seed, count):
    """`count` mutants (0: all): in turns from each rule, by a hash."""
    by_rule = {}
    for mutant in mutants:
        digest = hashlib.sha256("\0".join((str(seed), *mutant.key, str(mutant.line))).encode()).digest()
        by_rule.setdefault(mutant.rule, []).append((digest, mutant))
    ranked = []
    for rule in by_rule.values():
        rule.sort(key=lambda one: one[0])
        ranked += [(rank, digest, mutant) for rank, (digest, mutant) in enumerate(rule)]
    ranked.sort(key=lambda one: one[:2])
    return [mutant for _, _, mutant in ranked[: count or None]]


def judge(host, problem, source, thorough, folder, seed):
    path = pathlib.Path(folder) / (hashlib.sha256(source.encode()).hexdigest()[:16] + ".cu")
    path.write_text(source)
    command = [host, "eval", "--kernel", str(path), "--problem", problem, "--json", "--seed", str(seed)]
    if not thorough:
        command.append("--quick")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    try:
        answer = json.loads(done.stdout)
        return answer["verdict"], answer.get("diagnosis", "")
    except (ValueError, KeyError):
        raise SystemExit(f"{' '.join(command)} gave no verdict (exit code {done.returncode}): {done.stderr}") from None


def code_of(nvcc, source):
    """The PTX and the host's machine code that nvcc makes; None if it does not compile."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "kernel.cu"
        path.write_text(source)
        command = [nvcc, "-c", "-O3", "-arch=sm_90", "-std=c++17", "--keep", "--keep-dir", folder, "-o", f"{folder}/kernel.o", str(path)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return None
        dump = ["objdump", "-d", "--no-addresses", "--no-show-raw-insn", "-j", ".text", f"{folder}/kernel.o"]
        host = subprocess.run(dump, capture_output=True, text=True, check=True).stdout
        ptx = next(pathlib.Path(folder).glob("*.ptx")).read_text()
    unnamed = re.compile(r"_\w*[0-9a-f]{8}_\w*|/\S+kernel\.o")  # names made of a digest of the file
    return unnamed.sub("_", ptx), unnamed.sub("_", host)


def read_equivalents():
    reasons = {}
    for line in EQUIVALENTS.read_text().splitlines():
        if line and not line.startswith("#"):
            kernel, rule, match, text, reason = line.split("\t")
            reasons[(kernel, rule, match, text)] = reason
    return reasons


def read_known(path):
    known = {}
    if path and path.exists():
        for line in path.read_text().splitlines():
            *key, verdict, diagnosis = line.split("\t")
            known[tuple(key)] = (verdict, diagnosis)
    return known


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", help="kgrpo-host")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="so many mutants (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample and of the secret inputs")
    parser.add_argument("--kernel", help="only kernels whose names match this regular expression")
    parser.add_argument("--rule", help="only such rules")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE.tsv")
    parser.add_argument("--nvcc", default=shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()

    every = [m for k in kernels() if re.search(options.kernel or "", k.name) for m in mutants_of(k)]
    every = [m for m in every if re.search(options.rule or "", m.rule)]
    chosen = sample_of(every, options.seed, options.sample)
    if options.list:
        for rule, kind, _, _ in RULES:
            print(f"{rule:24}{kind:16}{sum(m.rule == rule for m in every):6}{sum(m.rule == rule for m in chosen):6}")
        print(f"{len(RULES)} rules, {len(every)} mutants, {len(chosen)} in the sample")
        return 0
    if not options.host:
        parser.error("--host is required")
    os.nice(10)
    known, reasons = read_known(options.out), read_equivalents()
    faults, accused = [], []
    table = {}
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:

        def verdict_of(key, problem, source, thorough=False):
            if thorough:
                key = (*key[:3], key[3] + " (thorough)")
            if key not in known:
                verdict, diagnosis = judge(options.host, problem, source, thorough, folder, options.seed)
                known[key] = (verdict, " ".join(diagnosis.split()))
                if options.out:
                    with options.out.open("a") as out:
                        out.write("\t".join((*key, *known[key])) + "\n")
            return known[key][0]

        used = sorted({m.kernel for m in chosen}, key=lambda k: k.name)
        for kernel, verdict in zip(used, pool.map(lambda k: verdict_of((k.name, "-", "-", "-"), k.problem, k.source), used)):
            if verdict != "correct":
                accused.append(f"{kernel.name}: {verdict}: {known[(kernel.name, '-', '-', '-')][1]}")
        verdicts = pool.map(lambda m: verdict_of(m.key, m.kernel.problem, m.source), chosen)
        for mutant, verdict in zip(chosen, verdicts):
            if verdict == "correct" and mutant.key not in reasons:
                code = code_of(options.nvcc, mutant.source)
                if code is not None and code == code_of(options.nvcc, mutant.kernel.source):
                    verdict = "equivalent"
                else:
                    verdict = verdict_of(mutant.key, mutant.kernel.problem, mutant.source, thorough=True)
            row = table.setdefault(KINDS[mutant.rule], {"found": 0, "equivalent": 0, "fault": 0, "not judged": 0})
            if verdict in ("not_compiled", "forbidden", "unsupported", "unavailable"):
                row["not judged"] += 1
            elif verdict == "equivalent" or (verdict == "correct" and mutant.key in reasons):
                row["equivalent"] += 1
            elif verdict != "correct":
                row["found"] += 1
                if mutant.key in reasons:
                    faults.append((mutant, f"equivalents.tsv calls it equivalent, and the verdict is {verdict}"))
            else:
                row["fault"] += 1
                faults.append((mutant, "survives"))
    print(f"{'kind':16}{'found':>8}{'equivalent':>12}{'fault':>8}{'not judged':>12}")
    total = {name: sum(row[name] for row in table.values()) for name in ("found", "equivalent", "fault", "not judged")}
    for kind, row in [*sorted(table.items()), ("all", total)]:
        print(f"{kind:16}{row['found']:8}{row['equivalent']:12}{row['fault']:8}{row['not judged']:12}")
    real = total["found"] + total["fault"]
    print(f"{100 * total['found'] / max(1, real):.1f}% of {real} mutants that are not equivalent are found; "
          f"{len(accused)} of {len(used)} unchanged kernels are accused")
    for mutant, what in faults:
        print(f"\n{mutant.kernel.name}:{mutant.line + 1}: {mutant.rule}: {what}\n- {mutant.text}\n+ "
              f"{' '.join(mutant.source.splitlines()[mutant.line].split())}\n  " + "\t".join(mutant.key))
    for one in accused:
        print(f"\nunchanged, and accused: {one}")
    return 1 if faults or accused else 0


if __name__ == "__main__":
    sys.exit(main())
