"""kernel_suite - a kernel for each problem of a folder, counted as papers do (fast_p). `kgrpo-host eval suite` runs it.

Each kernel is judged by a `kgrpo-host eval kernel --json` of its own. KERNELS/results.jsonl keeps each result by a key of
all that it depends on, so that the same command continues from there. docs/kernelbench.md describes the tables.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap

HOST = os.environ.get("KGRPO_HOST", "kgrpo-host")  # the program that runs this file sets it
RESULT_FORMAT = "3"  # version of the results; those of another one are judged again
NO_KERNEL, NOT_JUDGED = "no kernel", "not judged"
# A busy machine may have caused these, of the kernel or of the problem's reference: such kernels are judged again.
OF_THE_MOMENT = {"timeout", "interference", NOT_JUDGED}
# KernelBench only compares outputs, so it counts these as correct; they have no time. not_timed is left out: without
# correctness sizes, the correctness of such a kernel is unknown.
NOT_LOOKED_FOR = ("race", "uninitialised", "divergent", "input_modified", "non_deterministic", "implausible",
                  "unsynchronised", "hidden_work", "unfinished", "interference")
FAST_P = (0, 0.5, 0.8, 1, 1.5, 2)  # a kernel counts where it is correct and its speedup is more than p
EXCESSIVE = 10  # KernelBench flags larger speedups: they are rare for honest kernels and common for cheating ones
EPILOG = "Example:\n  kgrpo-host eval suite kernelbench/ --kernels mine/ --jobs 2 --as-kernelbench"
running = set()  # processes under way
state = argparse.Namespace(stopping=False, interrupted=False)


class Failure(Exception):
    """Ends the command. `shown`: what the host has written on standard error, in place of "error: MESSAGE"."""
    def __init__(self, code, message, shown=None):
        super().__init__(message)
        self.code, self.shown = code, "error: %s\n" % message if shown is None else shown


def on_signal(number, _):
    signal.signal(number, signal.SIG_DFL)  # a second one ends this process
    state.stopping = state.interrupted = True
    sys.stderr.write("kgrpo-host: stopping; a second signal ends it now\n")
    for process in list(running):
        process.terminate()


def ask(options, *words):
    """What a command of kgrpo-host prints as JSON, and its standard error."""
    process = subprocess.Popen([HOST, *options.globals, *words, *options.settings, "--json"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=None if options.verbose else subprocess.PIPE)
    running.add(process)
    if state.interrupted:
        process.terminate()
    out, err = (text.decode(errors="replace") if text else "" for text in process.communicate())
    running.discard(process)
    code = process.returncode
    try:
        answer = json.loads(out)
    except ValueError:
        raise Failure(code if code in (2, 4, 130) else 1, "%s ended with %d" % (" ".join(words), code), err or None) from None
    if code != 0:
        error = answer["error"]["message"] if "error" in answer else next(one["error"] for one in answer if "error" in one)
        raise Failure(code, error, err)
    return answer, err


def with_own_headers(file, folders, seen):
    """The bytes of a kernel and of its own headers, in whatever branches they are included."""
    if file.resolve() in seen:
        return []
    seen.add(file.resolve())
    texts = [file.read_bytes()]
    for name in re.findall(rb'#\s*include\s*["<]([^">\n]+)', texts[0]):
        places = [place / os.fsdecode(name) for place in [file.parent] + folders]
        texts += [text for header in places if header.is_file() for text in with_own_headers(header, folders, seen)]
    return texts


def pytorch_times(file):
    """Seconds by level and number, and the device, of a file in the form of KernelBench's results/timing."""
    if not os.path.isfile(file):
        raise Failure(3, "--pytorch-times %s: there is no such file" % file)
    seconds, hardware = {}, ""
    try:
        levels = json.loads(pathlib.Path(file).read_bytes())
        for level, name, row in [(level, name, row) for level, rows in levels.items() for name, row in rows.items()]:
            place = re.match(r"level0*(\d+) 0*(\d+)", level + " " + name)
            if place and row.get("mean", 0) > 0:
                seconds[place.groups()] = row["mean"] * 1e-3
                hardware = row.get("hardware", hardware)
    except (ValueError, AttributeError, TypeError):
        seconds = {}  # of another form
    if not seconds:
        raise Failure(3, '--pytorch-times %s: holds no times; expected {"level1": {"19_ReLU.py": {"mean": MS}}}, as in '
                         "KernelBench's results/timing" % file)
    return seconds, hardware


def blank(problem):
    """A problem's result without a kernel. Its group is a level that a trait names, else its family."""
    group = next((trait for trait in problem["traits"] if " level " in trait), problem["family"])
    return {"problem": problem["name"], "group": group, "verdict": NO_KERNEL, "compiled": False, "correct": False,
            "seconds": 0.0, "modelled": False, "diagnosis": ""}


def judge(options, problem, kernel, times=None):
    """A kernel's result. With `times` by KernelBench's rules: the speedup is over PyTorch's time, listed there or else
    measured by the evaluator. Otherwise, and where there is neither, it is over the reference's time."""
    words = ["eval", "kernel", kernel, "--problem", problem["folder"], *options.includes]
    words += ["--quick"] if times is not None or not options.thorough else []
    words += ["--set", "rules=kernelbench"] if times is not None else []
    try:
        found, _ = ask(options, *words)
    except Failure as failure:
        if failure.code != 3:
            raise
        try:  # without the reference, which may not work on this device, there is no speedup
            found, _ = ask(options, *words, "--dispute-bound")
        except Failure as again:
            if again.code not in (3, 4):
                raise
            return dict(blank(problem), verdict=NOT_JUDGED, diagnosis=str(failure))
    result = dict(blank(problem), **{key: found[key] for key in ("verdict", "compiled", "correct", "diagnosis")})
    if found["correct"]:
        result.update(seconds=found["seconds"], modelled=found["modelled"], **{k: found[k] for k in ["speedup"] if k in found})
        if times is not None:
            place = re.match(r"kb_l0*(\d+)_0*(\d+)_", problem["name"])
            listed = times.get(place.groups()) if place and "small sizes" not in problem["traits"] else None
            seconds = listed or found.get("baseline", {}).get("metrics", {}).get("pytorch_seconds")
            if seconds:
                result.update(pytorch_seconds=seconds, pytorch_listed=bool(listed), speedup=seconds / found["seconds"])
        result.update({"excessive_speedup": True} if result.get("speedup", 0) > EXCESSIVE else {})
    result["correct"] = found["correct"] or (times is not None and found["verdict"] in NOT_LOOKED_FOR)
    return result


def known_results(file):
    """Results of earlier calls by key. A line that a killed process left unfinished is skipped."""
    known = {}
    for line in file.read_bytes().splitlines() if file.exists() else ():
        try:
            result = json.loads(line)
            if not {result["verdict"], result.get("as_kernelbench", result)["verdict"]} & OF_THE_MOMENT:
                known[result["key"]] = result
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return known


def judge_all(options, problems, results, file, times):
    """Judges the kernels without a result, several at a time, and writes each result as a line."""
    todo = [i for i, result in enumerate(results) if result["verdict"] == NO_KERNEL and result["key"]]
    shown, done = sys.stderr.isatty() and not options.quiet, []

    def work(i):
        if state.stopping:
            return
        try:
            last = {"kernel": results[i]["kernel"], "key": results[i]["key"]}
            if options.as_kernelbench:
                last = dict(as_kernelbench=judge(options, problems[i], last["kernel"], times), **last)
            result = dict(judge(options, problems[i], last["kernel"]), **last)
            lines.write(json.dumps(result, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
            results[i] = result
            done.append(i)
            if shown:
                sys.stderr.write("\r%d/%d %-60.60s" % (len(done), len(todo), result["problem"]))
        except BaseException:
            state.stopping = True  # no further kernel begins
            raise

    try:
        with open(file, "ab", buffering=0) as lines:
            if lines.tell() and not file.read_bytes().endswith(b"\n"):
                lines.write(b"\n")  # after a killed process's line
            with concurrent.futures.ThreadPoolExecutor(options.jobs or os.cpu_count()) as pool:
                futures = [pool.submit(work, i) for i in todo]
            if shown:
                sys.stderr.write("\r%80s\r" % "")
            for future in futures if not state.interrupted else ():
                future.result()
    except OSError as error:
        raise Failure(4, "%s: cannot be written (%s); is there room?" % (file, error.strerror)) from None
    if state.interrupted:
        raise Failure(130, "interrupted; the same command continues from here")


def share(count, of):
    """A share with its 95% interval by Wilson's score, which holds for small numbers and for shares of 0 and 1."""
    if of == 0:
        return {"value": 0.0, "low": 0.0, "high": 1.0}
    z, value = 1.959963984540054, count / of  # z: quantile for 95%
    half = z * math.sqrt(value * (1 - value) / of + z * z / of / (4 * of))
    low, high = ((value + z * z / of / 2 + sign * half) / (1 + z * z / of) for sign in (-1, 1))
    return {"value": value, "low": max(0.0, low), "high": min(1.0, high)}


def student_t(degrees):
    """Student's t for a 95% interval. Its distribution is the integral of cos^(degrees-1) up to atan(t / sqrt(degrees))."""
    step = math.pi / 2 / 20000
    weights = [math.cos((i + 0.5) * step) ** (degrees - 1) for i in range(20000)]
    i, left = 0, 0.95 * sum(weights)
    while left > weights[i]:
        i, left = i + 1, left - weights[i]
    return math.sqrt(degrees) * math.tan((i + left / weights[i]) * step)


def counts_of(group, results):
    """fast_0 also counts correct kernels without a baseline; fast_p with p > 0 cannot."""
    correct = [one for one in results if one["correct"]]
    speedups = [one["speedup"] for one in correct if "speedup" in one]
    fast = {"%g" % p: share(sum(s > p for s in speedups) if p else len(correct), len(results)) for p in FAST_P}
    logarithms, n = [math.log(speedup) for speedup in speedups], len(speedups)
    mean = sum(logarithms) / max(n, 1)
    counts = {"group": group, "problems": len(results), "kernels": sum(one["verdict"] != NO_KERNEL for one in results),
              "compiled": sum(one["compiled"] for one in results), "correct": len(correct), "fast_p": fast,
              "timed": n, "geometric_mean": math.exp(mean) if n else 0.0}
    if n > 1:  # Student's t over the logarithms
        half = student_t(n - 1) * math.sqrt(sum((one - mean) ** 2 for one in logarithms) / (n - 1) / n)
        counts.update(geometric_mean_low=math.exp(mean - half), geometric_mean_high=math.exp(mean + half))
    return counts


def counts_by_group(results):
    groups = sorted({one["group"] for one in results})
    counts = [counts_of(group, [one for one in results if one["group"] == group]) for group in groups]
    return counts + ([counts_of("all", results)] if len(groups) > 1 else [])


def print_table(options, header, rows, numbers=False):
    """On a terminal the last column is wrapped to its width."""
    table = [[re.sub(r"[\x00-\x08\n-\x1f\x7f]", lambda c: "     " if c[0] == "\n" else "\\x%02x" % ord(c[0]), cell)
              for cell in row] for row in [header] + rows]
    if options.markdown:
        lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in table]
        return print("\n".join([lines[0], "|---|" + ("---:|" if numbers else "---|") * (len(header) - 1)] + lines[1:]))
    widths = [max(map(len, column)) + 2 for column in list(zip(*table))[:-1]]
    room = (os.get_terminal_size(1).columns if os.isatty(1) else 0) - sum(widths)
    for row in table:
        last = textwrap.wrap(row[-1], room, break_long_words=False, break_on_hyphens=False) if room > 20 else [row[-1]]
        print(("".join(map(str.ljust, row, widths)) + ("\n" + " " * sum(widths)).join(last)).rstrip())
    return None


def print_counts(options, title, counts):
    if options.as_kernelbench:
        print(("**%s**\n" if options.markdown else "%s:\n") % title)
    rows = []
    for one in counts:
        mean = "%.3f" % one["geometric_mean"] if one["timed"] else "-"
        mean += " (%.2f-%.2f)" % (one["geometric_mean_low"], one["geometric_mean_high"]) if one["timed"] > 1 else ""
        rows.append([one["group"]] + [str(one[key]) for key in ("problems", "kernels", "compiled", "correct")] +
                    ["%.3f (%.2f-%.2f)" % tuple(of.values()) for of in one["fast_p"].values()] + [mean])
    header = ["GROUP", "PROBLEMS", "KERNELS", "COMPILED", "CORRECT"] + ["fast_%g" % p for p in FAST_P] + ["GEOMEAN"]
    print_table(options, header, rows, numbers=True)


def first_words(text):
    """The first words of a sentence or of a compiler's first line."""
    line = text.partition("\n")[0]
    return line if len(line) <= 100 else (line[:101].rpartition(" ")[0] or line[:100]) + " ..."


def print_suite(options, results, refused, hardware):
    published = [one.get("as_kernelbench", one) for one in results]
    rows = [[one["problem"], one["verdict"], first_words(one["diagnosis"]) if not one["correct"] else
             "%.2f" % one["speedup"] if "speedup" in one else "-"] for one in results if one["verdict"] != NO_KERNEL]
    if rows:
        print_table(options, ["PROBLEM", "VERDICT", "SPEEDUP OR DIAGNOSIS"], rows)
        print()
    print_counts(options, "as we judge", counts_by_group(results))
    if options.as_kernelbench:
        print()
        print_counts(options, "as KernelBench counts", counts_by_group(published))
        rows = [[ours["problem"], ours["verdict"], theirs["verdict"], (theirs if ours["correct"] else ours)["diagnosis"]]
                for ours, theirs in zip(results, published) if ours["correct"] != theirs["correct"]]
        print("\nkernels that only one of the two counts as correct: %d\n" % len(rows) if rows else
              "\nboth count the same kernels as correct")
        if rows:
            print_table(options, ["PROBLEM", "KGRPO", "KERNELBENCH", "WHY"], rows)
    rows = [[one["problem"], "%.1f" % one["speedup"]] for one in published if one.get("excessive_speedup")]
    if rows:
        print("\nspeedups above %d, which KernelBench flags as excessive (look at these kernels): %d\n" % (EXCESSIVE, len(rows)))
        print_table(options, ["PROBLEM", "SPEEDUP"], rows)
    if options.markdown:
        return
    verdicts = sorted(collections.Counter(one["verdict"] for one in results).items())
    print("\nverdicts: " + ", ".join("%d %s" % (count, verdict) for verdict, count in verdicts))
    if refused:
        print("refused problems, not counted: %d" % refused)
    print("shares are of all problems of a group, with 95%% intervals; speedups are over the problems' references%s" %
          (", by modelled times" if any(one["modelled"] for one in results) else ""))
    timed = [one for one in published if one["correct"] and "speedup" in one]
    listed, measured = (sum(one.get("pytorch_listed") is kind for one in timed) for kind in (True, False))
    parts = ["%d over PyTorch's times of %s, measured on %s" % (
        listed, options.pytorch_times, hardware or "a device that it does not name")] if options.pytorch_times else []
    parts += ["%d over PyTorch eager, measured on this device" % measured] if measured else []
    others = len(timed) - listed - measured
    parts += ["%d over the reference (small sizes, or no time of PyTorch's)" % others] if parts and others else []
    if parts:
        print("as KernelBench counts, of %d speedups: %s" % (len(timed), "; ".join(parts)))
    print("results of each kernel: %s" % os.path.join(options.kernels, "results.jsonl"))


def warn_of_other_kernels(folder, problems):
    names = {problem["name"] for problem in problems}
    others = sorted(file.name for file in folder.glob("*.cu") if file.stem not in names)
    expected = sorted(one["name"] + ".cu" for one in problems
                      if not one.get("refused") and not (folder / (one["name"] + ".cu")).exists())
    listed = [", ".join(some[:10]) + (" and %d more" % (len(some) - 10) if len(some) > 10 else "") for some in (others, expected)]
    if others:
        sys.stderr.write("warning: %s: not judged, as no problem of the suite has the name: %s; %s\n" % (
            folder, listed[0], "expected: " + listed[1] if expected else "every problem has its kernel"))


def suite(options):
    kernels, folders = pathlib.Path(options.kernels), [pathlib.Path(folder) for folder in options.include]
    if not kernels.is_dir():
        raise Failure(3, "--kernels %s: there is no such folder; it holds PROBLEM.cu" % options.kernels)
    times, hardware = pytorch_times(options.pytorch_times) if options.pytorch_times else ({}, "")
    problems, notes = ask(options, "problems", "list", options.DIR)
    sys.stderr.write(notes)
    if options.as_kernelbench:  # an evaluator without this option is refused now
        ask(options, "problems", "list", problems[0]["folder"], "--set", "rules=kernelbench")
    warn_of_other_kernels(kernels, problems)
    counted = [problem for problem in problems if not problem.get("refused")]
    known, results = known_results(kernels / "results.jsonl"), []
    for problem in counted:
        kernel = kernels / (problem["name"] + ".cu")
        parts = [RESULT_FORMAT, problem["name"], problem["evaluator"], options.settings, options.thorough,
                 options.as_kernelbench, sorted(times.items())]
        if kernel.exists():
            parts += [(str(file.relative_to(problem["folder"])), hashlib.sha256(file.read_bytes()).digest())
                      for file in sorted(pathlib.Path(problem["folder"]).rglob("*")) if file.is_file()]
            parts += with_own_headers(kernel, folders, set())
        key = hashlib.sha256(repr(parts).encode()).hexdigest()[:32] if kernel.exists() else ""
        results.append(dict(known.get(key, blank(problem)), kernel=str(kernel), key=key))
    judge_all(options, counted, results, kernels / "results.jsonl", times)
    if not options.json:
        return print_suite(options, results, len(problems) - len(counted), hardware)
    whole = {"suite": options.DIR, "kernels": options.kernels, "refused_problems": len(problems) - len(counted),
             "groups": counts_by_group(results)}
    if options.as_kernelbench:
        whole["groups_as_kernelbench"] = counts_by_group([one["as_kernelbench"] if one["key"] else one for one in results])
    whole.update({"pytorch_hardware": hardware} if hardware else {}, results=results, evaluator=problems[0]["evaluator"])
    return print(json.dumps(whole, indent=2, ensure_ascii=False))


def parse_arguments(words):
    parser = argparse.ArgumentParser(prog="kgrpo-host eval suite", add_help=False, allow_abbrev=False, epilog=EPILOG,
                                     description="Evaluate a kernel for each problem of a folder, and count fast_p",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser._optionals.title = "Options"
    add = parser.add_argument
    add("DIR", help="the folder of problems")
    add("--help", action="help", help="print this help message and exit")
    add("-h", action="help", help=argparse.SUPPRESS)
    add("--kernels", metavar="FOLDER", required=True, help="PROBLEM.cu of each; results.jsonl is kept there")
    add("--evaluator", metavar="PLUGIN", help="the evaluator plugin (default: evaluator_sim)")
    add("--include", metavar="DIR", action="append", default=[], help="a folder of own headers, besides each kernel's folder")
    add("--thorough", action="store_true", help="thorough evaluation: all inputs, the optimising compiler")
    add("--jobs", metavar="N", type=int, default=0, help="kernels evaluated at a time (default: the number of cores)")
    add("--as-kernelbench", action="store_true", help="count by KernelBench's rules too, and name each verdict that differs")
    add("--pytorch-times", metavar="FILE.json", default="",
        help="speedups over PyTorch's times, by a file of KernelBench's results/timing; as --as-kernelbench")
    add("--set", metavar="KEY=VALUE", action="append", default=[], help="changes an option of the evaluator")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print as JSON")
    form.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    add("--plugin-path", metavar="DIR", action="append", default=[], help=argparse.SUPPRESS)
    add("-v", "--verbose", action="store_true", help=argparse.SUPPRESS)
    add("-q", "--quiet", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.jobs < 0:
        parser.error("--jobs: %d is not a number of kernels" % options.jobs)
    options.as_kernelbench = options.as_kernelbench or bool(options.pytorch_times)
    options.globals = [word for path in options.plugin_path for word in ("--plugin-path", path)]
    options.globals += ["--verbose"] * options.verbose + ["--quiet"] * options.quiet
    options.includes = [word for folder in options.include for word in ("--include", folder)]
    options.settings = [word for setting in options.set for word in ("--set", setting)]
    options.settings += ["--evaluator", options.evaluator] if options.evaluator else []
    return options


def main(words):
    for word in ("eval", "suite"):  # kgrpo-host gives its own words, with options of every command among them
        words.remove(word)
    options = parse_arguments(words)
    sys.stdout.reconfigure(errors="backslashreplace")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, on_signal)
    try:
        return suite(options)
    except (Failure, OSError) as error:
        failure = error if isinstance(error, Failure) else Failure(3, "%s: %s" % (error.filename, error.strerror))
        sys.stderr.write(failure.shown)
        if options.json:
            word = {3: "invalid", 4: "unavailable", 130: "interrupted"}.get(failure.code, "failed")
            print(json.dumps({"error": {"code": word, "exit_code": failure.code, "message": str(failure)}}, indent=2))
        return failure.code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
