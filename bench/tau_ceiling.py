#!/usr/bin/env python3
"""How well any model could order the measured kernels of a CSV: how much kernels with the same machine code differ.

    bench/tau_ceiling.py bench/results/h100_coder_offline_kernels.csv --build build [--sample 24] [--except a,b]
    bench/tau_ceiling.py ONE.csv --again OTHER.csv      # how two measurements of the same kernels agree
    bench/tau_ceiling.py PASSES.csv --passes            # how a file's own passes agree, and what errors would cost

Needs no GPU, but libnvrtc. Each kernel is written again by coder_offline_apply and compiled for sm_90. Those whose
machine code, launches and constants are equal are one kernel that was measured several times. Prints how far such
measurements lie apart, and how a model that knew each kernel's true time would do: of a sample as model_accuracy takes
it, true times are the medians, and measured ones are drawn around them as the repeated ones lie.
"""
import argparse
import collections
import ctypes
import hashlib
import math
import pathlib
import random
import re
import statistics
import struct
import subprocess
import tempfile

APART, NOISE, DRAWS = 1.1, 1.03, 20


def write_kernel(apply_tool, reference, schedule):
    """The source of a problem's kernel with this schedule."""
    source = re.sub(r"// schedule: .*", "// schedule: " + schedule, reference, count=1)
    with tempfile.NamedTemporaryFile("w", suffix=".cu") as file:
        file.write(source)
        file.flush()
        return subprocess.run([apply_tool, file.name], capture_output=True, text=True).stdout


def compile_device(nvrtc, source, cuda):
    """The ELF file that NVRTC makes of device code, or None."""
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    options = ["-arch=sm_90", "-std=c++17", "-default-device", f"-I{cuda}/include", f"-I{cuda}/include/cccl"]
    array = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    code = None
    if nvrtc.nvrtcCompileProgram(program, len(options), array) == 0:
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetCUBIN(program, buffer)
        code = buffer.raw
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return code


def machine_code(elf):
    """Instructions, constants and sizes of shared memory: what an ELF file has beside names and debugging."""
    offset, = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    sections = [struct.unpack_from("<IIQQQQ", elf, offset + i * size) for i in range(count)]
    found = []
    for name, kind, _, _, start, length in sections:
        at = sections[names][4] + name
        text = elf[at:elf.index(b"\0", at)].decode()
        if text.startswith((".text.", ".nv.constant", ".nv.shared")):
            found.append((text, elf[start:start + length] if kind != 8 else length))
    return sorted(found, key=lambda section: section[0])


def identity(nvrtc, source, cuda):
    """A key that kernels share which run the same: machine code, host code and constants that the host uses."""
    at = source.find('extern "C"')
    elf = compile_device(nvrtc, source[:at], cuda)
    if at < 0 or elf is None:
        return None
    host = re.sub(r"__restrict__ ?|//[^\n]*|\s+", "", source[at:])
    constants = sorted(re.findall(r"constexpr \w+ k\w+ = [^;]+;", source))
    return hashlib.sha256(repr((machine_code(elf), host, constants)).encode()).hexdigest()


def agreement(groups):
    """(tau-b, tau-b beyond noise, share of pairs correct, share of those apart) of problems' (measured, true) times."""
    taus, noisy, correct, pairs, apart_correct, apart = [], [], 0, 0, 0, 0
    for kernels in groups:
        for least, sums in ((1, taus), (NOISE, noisy)):
            score = count = tied = 0
            for i, (m, p) in enumerate(kernels):
                for n, q in kernels[:i]:
                    if m == n or abs(math.log(m / n)) < math.log(least):
                        continue
                    count += 1
                    tied += p == q
                    score += 0 if p == q else 1 if (m > n) == (p > q) else -1
            if count > tied:
                sums.append(score / math.sqrt(count * (count - tied)))
        for i, (m, p) in enumerate(kernels):
            for n, q in kernels[:i]:
                good = 0.5 if p == q else (m > n) == (p > q)
                far = abs(math.log(m / n)) > math.log(APART)
                pairs, correct, apart, apart_correct = pairs + 1, correct + good, apart + far, apart_correct + good * far
    return statistics.mean(taus), statistics.mean(noisy), correct / pairs, apart_correct / apart


def read_times(path, left_out):
    """Problem -> {schedule: its times in microseconds} of a CSV's correct kernels."""
    times = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in pathlib.Path(path).read_text().splitlines()[1:]:
        problem, schedule, verdict, microseconds = line.split(",")[:4]
        if verdict in ("ok", "right", "correct") and problem not in left_out:
            times[problem][schedule].append(float(microseconds))
    return times


def chosen(by_problem, choose):
    """Problem -> {schedule: one time of its several}."""
    return {problem: {schedule: choose(times) for schedule, times in kernels.items()}
            for problem, kernels in by_problem.items()}


def compare_passes(by_problem):
    """Prints how passes of one file agree, one and two of each, and how a model with random errors would."""
    most = {problem: {schedule: times for schedule, times in kernels.items() if len(times) >= 4}
            for problem, kernels in by_problem.items()}
    for one, other in ((lambda t: t[0], lambda t: t[1]), (lambda t: t[0] + t[1], lambda t: t[2] + t[3])):
        compare_measurements(chosen(most, one), chosen(most, other))
    medians = [kernels for kernels in chosen(by_problem, statistics.median).values() if len(kernels) > 1]
    for error in (0.02, 0.04, 0.05, 0.06, 0.08):
        taus = []
        for seed in range(DRAWS):
            draw = random.Random(seed)
            groups = [[(time, time * math.exp(draw.gauss(0, error))) for time in kernels.values()]
                      for kernels in medians]
            taus.append(agreement(groups)[0])
        print(f"a model with errors of {error:.0%}: tau {statistics.mean(taus):.3f}")


def compare_measurements(one, other):
    """Prints how well the one orders kernels as the other does."""
    groups = [[(other[problem][schedule], microseconds) for schedule, microseconds in kernels.items()
               if schedule in other.get(problem, {})] for problem, kernels in one.items()]
    groups = [group for group in groups if len(group) > 1]
    if not groups:
        print("no two kernels of a problem were measured both times")
        return
    tau, beyond, correct, apart = agreement(groups)
    print(f"{sum(map(len, groups))} kernels in both: tau {tau:.3f}, over pairs more than 3% apart {beyond:.3f}, "
          f"pairs correct {correct:.1%}, more than 10% apart {apart:.1%}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv")
    parser.add_argument("--build", default="build")
    parser.add_argument("--problems", default="problems")
    parser.add_argument("--cuda", default="/usr/local/cuda")
    parser.add_argument("--sample", type=int, default=24)
    parser.add_argument("--except", dest="left_out", default="")
    parser.add_argument("--again", metavar="OTHER.csv")
    parser.add_argument("--passes", action="store_true")
    arguments = parser.parse_args()
    by_problem = read_times(arguments.csv, arguments.left_out.split(","))
    if arguments.again:
        other = read_times(arguments.again, arguments.left_out.split(","))
        compare_measurements(chosen(by_problem, statistics.median), chosen(other, statistics.median))
        return
    if arguments.passes:
        compare_passes(by_problem)
        return
    nvrtc = ctypes.CDLL(f"{arguments.cuda}/lib64/libnvrtc.so")
    apply_tool = f"{arguments.build}/bin/coder_offline_apply"
    repeats, key_of = collections.defaultdict(list), {}
    for problem, kernels in by_problem.items():
        reference = pathlib.Path(arguments.problems, problem, "reference.cu").read_text()
        for schedule, times in kernels.items():
            key = problem, identity(nvrtc, write_kernel(apply_tool, reference, schedule), arguments.cuda) or schedule
            key_of[problem, schedule] = key
            repeats[key].extend(times)
    noise = sorted(abs(math.log(a / b)) for times in repeats.values() for i, a in enumerate(times) for b in times[:i])
    shared = sum(len(times) for times in repeats.values() if len(times) > 1)
    print(f"{len(key_of)} kernels, {len(repeats)} different ones; {shared} were measured more than once")
    if not noise:
        return
    share = [math.expm1(noise[int(part * len(noise))]) for part in (0.5, 0.75, 0.9, 0.95)]
    print("pairs of the same: " + ", ".join(f"{s:.1%} at the {p}%" for s, p in zip(share, (50, 75, 90, 95))) +
          f"; {sum(n > math.log(APART) for n in noise) / len(noise):.1%} more than 10% apart")
    results = []
    for seed in range(DRAWS):
        draw = random.Random(seed)
        groups = []
        for problem, kernels in by_problem.items():
            taken = min(len(kernels), arguments.sample)
            schedules = list(kernels)
            true = [statistics.median(repeats[key_of[problem, schedules[i * len(kernels) // taken]]])
                    for i in range(taken)]
            # Two measurements differ by the noise of both.
            groups.append([(t * math.exp(draw.choice((-1, 1)) * draw.choice(noise) / math.sqrt(2)), t) for t in true])
        results.append(agreement(groups))
    tau, beyond, correct, apart = (statistics.mean(column) for column in zip(*results))
    print(f"who knew true times: tau {tau:.3f}, over pairs more than 3% apart {beyond:.3f}, pairs correct {correct:.1%}, "
          f"more than 10% apart {apart:.1%}")


if __name__ == "__main__":
    main()
