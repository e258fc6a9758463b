"""python3 test_evaluator_python.py: the evaluator's own test, without the host."""
import os
import unittest

from evaluator_python import judge
from kgrpo_plugin import Record

HERE = os.path.dirname(os.path.abspath(__file__))


def judged(source):
    return judge(Record(directory=os.path.join(HERE, "problems/polynomial"), source=source, seed=7), seconds=2.0)


def kernel(name):
    with open(os.path.join(HERE, "kernels", name), encoding="utf-8") as file:
        return file.read()


class Test(unittest.TestCase):
    def test_correct(self):
        found = judged(kernel("faster.c"))
        self.assertTrue(found["correct"], found)
        self.assertGreater(found["seconds"], 0)

    def test_mistakes(self):
        loop = "void kernel(const float* x, float* y, int n) { for (volatile int i = 0;; ++i); }"
        crash = "void kernel(const float* x, float* y, int n) { *(volatile int*)0 = 1; }"
        for source, verdict in ((kernel("wrong.c"), "wrong"), ("int kernel", "not_compiled"), (loop, "timeout"),
                                (crash, "crash")):
            self.assertEqual(judged(source)["verdict"], verdict)


if __name__ == "__main__":
    unittest.main()
