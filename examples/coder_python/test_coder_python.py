"""python3 test_coder_python.py: the coder's own test, without the host."""
import unittest

from coder_python import write
from kgrpo_plugin import NotApplicable, Record, Unclear

KERNEL = "__global__ void copy(float* x) {}\n"


def asked(suggestion, code=KERNEL):
    return write(Record(suggestion=suggestion, code_b=code), threads=256)


class Test(unittest.TestCase):
    def test_bounds(self):
        source = asked("use launch bounds")["source"]
        self.assertEqual(source, "__global__ void __launch_bounds__(256) copy(float* x) {}\n")
        self.assertRaises(NotApplicable, asked, "use launch bounds", source)

    def test_says_what_it_knows(self):
        self.assertRaises(Unclear, asked, "go faster")


if __name__ == "__main__":
    unittest.main()
