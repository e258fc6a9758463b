"""scripts/skipped_tests over files as ctest writes them: which skips it reports, and which of them are an error."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/skipped_tests"
PASSED = "[ RUN      ] A.runs\na.cc:3: a message: Skipped\n[       OK ] A.runs (2 ms)\n"
NO_GPU = "[ RUN      ] A.gpu\na.cc:9: Skipped\nneeds an NVIDIA GPU\n\n[  SKIPPED ] A.gpu (0 ms)\n"
NO_CLANG = ("[ RUN      ] A.compiles/1\na.cc:9: Skipped\nclang is not\ninstalled\n\n[  SKIPPED ] A.compiles/1, where GetParam() = \"clang\" (0 ms)\n"
            "[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] A.compiles/1\n")
OUTSIDE = "[ RUN      ] C.one\nc.cc:1: Skipped\nnot in CI: no LiteLLM\n\n[  SKIPPED ] C.one (4 ms)\n"
KNOWN = "[ RUN      ] B.one\nb.cc:1: Skipped\nopen: sim: by chance\n\n[  SKIPPED ] B.one (4 ms)\n"


class SkippedTests(unittest.TestCase):
    def report(self, *cases):
        """Exit code and lines for (name, output, whether ctest itself skipped it) of each test."""
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write("<testsuite>" + "".join(
                f'<testcase name="{name}">{"<skipped/>" if skip else ""}<system-out>{output}</system-out></testcase>'
                for name, output, skip in cases) + "</testsuite>")
            file.flush()
            done = subprocess.run([sys.executable, SCRIPT, file.name], stdout=subprocess.PIPE, text=True)
        return done.returncode, done.stdout.splitlines()

    def test_nothing_skipped(self):
        self.assertEqual(self.report(("one", PASSED, False)), (0, []))

    def test_a_missing_gpu_a_known_fault_and_what_is_too_large_are_no_error(self):
        self.assertEqual(self.report(("one", PASSED + NO_GPU + NO_GPU.replace("A.gpu", "A.two"), False), ("two", KNOWN + OUTSIDE, False)),
                         (0, ["[skipped] no GPU (2): one", "[skipped] known fault (1): two", "[skipped] not in CI (1): two"]))

    def test_a_test_inside_a_program_that_passed(self):
        code, lines = self.report(("one", NO_GPU + NO_CLANG + PASSED, False))
        self.assertEqual(code, 1)
        self.assertEqual(lines[:2], ["[skipped] no GPU (1): one", "[skipped] clang is not installed: one: A.compiles/1"])

    def test_a_program_that_ctest_skipped(self):
        code, lines = self.report(("one", "skipped: Chromium is not installed\n", True), ("two", "", True))
        self.assertEqual(code, 1)
        self.assertIn("[skipped] Chromium is not installed: one", lines)
        self.assertIn("[skipped] it gives no reason (a line that begins with 'skipped: '): two", lines)
        self.assertIn("2 tests were skipped", lines[-1])


if __name__ == "__main__":
    unittest.main()
