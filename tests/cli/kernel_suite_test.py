"""`eval suite` (python/kernel_suite.py): its figures, and what it makes of each way in which `eval kernel` can end. A fake
kgrpo-host answers; suite_rules_test.cc has the real one.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "python" / "kernel_suite.py"
sys.path.insert(0, str(SCRIPT.parent))
import kernel_suite as suite  # noqa: E402

# Ends as the first line of the kernel says: "// CODE", or with --dispute-bound as the second says; waits where it says so.
HOST = '''#!%s
import json, os, pathlib, sys, time
words = sys.argv[1:]
if "list" in words:
    print(json.dumps([{"name": folder.name, "folder": str(folder), "family": "f", "traits": [], "evaluator": "a fake"}
                      for folder in sorted(pathlib.Path("problems").iterdir())]))
    sys.exit(0)
file = pathlib.Path(words[words.index("kernel") + 1])
open("asked", "a").write(file.name + "\\n")
lines = file.read_text().splitlines()
pathlib.Path(file.name + ".begun").touch()
while "wait" in lines: time.sleep(0.01)
code = int(lines["--dispute-bound" in words])
if code:
    print(json.dumps({"error": {"code": "", "exit_code": code, "message": "it ended with %%d" %% code}}))
    sys.stderr.write("error: it ended with %%d\\n" %% code)
    sys.exit(code)
found = {"verdict": "correct", "compiled": True, "correct": True, "seconds": 1.0, "modelled": True, "diagnosis": ""}
print(json.dumps(found if "--dispute-bound" in words else dict(found, speedup=2.0, baseline={"metrics": {}})))
''' % sys.executable


class Figures(unittest.TestCase):
    def test_shares_have_wilsons_interval(self):
        for count, of, low, high in ((0, 0, 0, 1), (0, 10, 0, 0.277533), (5, 10, 0.236593, 0.763407), (10, 10, 0.722467, 1)):
            share = suite.share(count, of)
            self.assertAlmostEqual(share["low"], low, 5)
            self.assertAlmostEqual(share["high"], high, 5)

    def test_students_t_is_that_of_the_tables(self):
        for degrees, t in ((1, 12.706205), (2, 4.302653), (3, 3.182446), (10, 2.228139), (30, 2.042272), (249, 1.969537)):
            self.assertAlmostEqual(suite.student_t(degrees), t, 4)

    def test_only_a_kernel_with_a_speedup_counts_beyond_fast_0(self):
        results = [{"verdict": "correct", "compiled": True, "correct": True, "speedup": speedup} for speedup in (0.5, 1, 2)]
        results += [{"verdict": "correct", "compiled": True, "correct": True}]
        results += [{"verdict": suite.NO_KERNEL, "compiled": False, "correct": False}]
        counts = suite.counts_of("f", results)
        self.assertEqual([counts[key] for key in ("problems", "kernels", "compiled", "correct", "timed")], [5, 4, 4, 4, 3])
        self.assertEqual([share["value"] for share in counts["fast_p"].values()], [0.8, 0.4, 0.4, 0.2, 0.2, 0.0])
        self.assertAlmostEqual(counts["geometric_mean"], 1)
        self.assertEqual(suite.counts_of("f", results[3:])["geometric_mean"], 0)


class Endings(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.write("host", HOST)
        (self.folder / "host").chmod(0o755)
        for name in ("a", "b", "c"):
            self.write("problems/%s/problem.yaml" % name, "")
            self.write("kernels/%s.cu" % name, "0\n0\n")

    def write(self, name, text):
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text)

    def start(self, *words):
        return subprocess.Popen([sys.executable, "-B", str(SCRIPT), "eval", "suite", "problems", "--kernels", "kernels", *words],
                                cwd=self.folder, env=dict(os.environ, KGRPO_HOST=str(self.folder / "host")),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run_suite(self, *words):
        process = self.start(*words)
        out, err = process.communicate()
        return process.returncode, out, err

    def results(self):
        return {one["problem"]: one for one in json.loads(self.run_suite("--json")[1])["results"]}

    def asked(self):
        text = (self.folder / "asked").read_text()
        self.write("asked", "")
        return sorted(text.split())

    def test_a_kernel_is_judged_again_only_if_something_that_it_depends_on_changed(self):
        self.write("asked", "")
        first = self.results()
        self.assertEqual(self.asked(), ["a.cu", "b.cu", "c.cu"])
        self.write("kernels/results.jsonl", (self.folder / "kernels/results.jsonl").read_text() + '{"key": "unfini')
        self.assertEqual(self.results(), first)
        self.assertEqual(self.asked(), [])
        self.write("kernels/own.h", "// one")
        self.write("kernels/a.cu", '0\n0\n#include "own.h"\n')
        self.results()
        self.assertEqual(self.asked(), ["a.cu"])
        self.write("kernels/own.h", "// two")
        self.write("problems/b/problem.yaml", "changed")
        self.results()
        self.assertEqual(self.asked(), ["a.cu", "b.cu"])
        self.run_suite("--thorough")
        self.assertEqual(self.asked(), ["a.cu", "b.cu", "c.cu"])

    def test_a_reference_that_does_not_work_ends_no_suite(self):
        self.write("kernels/a.cu", "3\n0\n")
        self.write("kernels/b.cu", "3\n3\n")
        results = self.results()
        self.assertTrue(results["a"]["correct"])
        self.assertNotIn("speedup", results["a"])
        self.assertEqual((results["b"]["verdict"], results["b"]["diagnosis"]), ("not judged", "it ended with 3"))
        self.assertEqual(results["c"]["speedup"], 2)

    def test_a_missing_device_ends_it_in_the_hosts_words(self):
        self.write("kernels/b.cu", "4\n4\n")
        code, out, err = self.run_suite("--json", "--jobs", "1")
        self.assertEqual((code, err), (4, "error: it ended with 4\n"))
        self.assertEqual(json.loads(out)["error"], {"code": "unavailable", "exit_code": 4, "message": "it ended with 4"})

    def test_ctrl_c_keeps_the_results(self):
        self.write("kernels/b.cu", "0\n0\nwait\n")
        process = self.start("--jobs", "2")
        while not ((self.folder / "b.cu.begun").exists() and (self.folder / "kernels/results.jsonl").exists() and
                   (self.folder / "kernels/results.jsonl").read_text().count("\n") == 2):
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        self.assertEqual((process.returncode, out), (130, ""))
        self.assertEqual(err, "kgrpo-host: stopping; a second signal ends it now\n"
                              "error: interrupted; the same command continues from here\n")
        self.write("asked", "")
        self.write("kernels/b.cu", "0\n0\n")
        self.results()
        self.assertEqual(self.asked(), ["b.cu"])


if __name__ == "__main__":
    unittest.main()
