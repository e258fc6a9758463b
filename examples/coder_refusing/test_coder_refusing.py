"""python3 test_coder_refusing.py: the coder's own test, without the host."""
import unittest

from coder_refusing import is_refused


class Test(unittest.TestCase):
    def test_refuses_the_share_and_always_the_same(self):
        requests = [("kernel %d" % number, "unroll 4") for number in range(10000)]
        refused = [request for request in requests if is_refused(*request, 0.1)]
        self.assertAlmostEqual(len(refused) / len(requests), 0.1, delta=0.012)  # four standard deviations
        self.assertEqual(refused, [request for request in requests if is_refused(*request, 0.1)])
        self.assertFalse(any(is_refused(*request, 0) for request in requests))
        self.assertTrue(all(is_refused(*request, 1) for request in requests))


if __name__ == "__main__":
    unittest.main()
