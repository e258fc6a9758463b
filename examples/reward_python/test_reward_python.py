"""python3 test_reward_python.py: the reward's own test, without the host."""
import unittest

import kgrpo_plugin
from reward_python import idle, score


def example_round(registers=32.0, **changes):
    return kgrpo_plugin.example_round(metrics={"registers": registers}, **changes)


class Test(unittest.TestCase):
    def test_order(self):
        broken, wrong = score(example_round(compiled=False)), score(example_round(correct=False))
        slow, fast = (sum(score(example_round(speedup=s)).values()) for s in (1.0, 2.0))
        self.assertLess(broken, wrong)
        self.assertLess(wrong, slow)
        self.assertLess(slow, fast)

    def test_no_kernel(self):
        self.assertEqual(score(example_round(outcome="failed")), -0.5)

    def test_cap(self):
        self.assertEqual(score(example_round(speedup=100.0), cap=4.0)["speedup"], 2.0)

    def test_registers(self):
        self.assertEqual(score(example_round(registers=64.0))["registers"], 0.0)
        self.assertAlmostEqual(score(example_round(registers=100.0), penalty=0.01)["registers"], -0.36)

    def test_idle(self):
        self.assertEqual(idle(example_round()), score(example_round(speedup=1.0)))
        self.assertEqual(idle(example_round(current_correct=False)), -0.5)


if __name__ == "__main__":
    unittest.main()
