"""The Python kit without the host: what a reward's author reads when something is wrong."""
import functools
import contextlib
import io
import json
import math
import pathlib
import sys
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import kgrpo_plugin as kit  # noqa: E402

NO_KERNEL = {"outcome": "failed"}


def message_of(function):
    try:
        function()
    except Exception as error:  # whatever the author would see
        return "%s: %s" % (type(error).__name__, error)
    return "nothing was raised"


def line_of(function):
    return function.__code__.co_firstlineno


class Names(unittest.TestCase):
    def test_a_typo_is_told_with_members_and_properties(self):
        message = message_of(lambda: kit.example_round().speed_up)
        self.assertIn("there is no 'speed_up' (did you mean 'speedup'?); there are: answer, baseline, ", message)
        for name in ("metric", "compiled", "correct", "previous_speedup", "best_speedup", "coder_error"):
            self.assertIn(" %s," % name, message)
        self.assertNotIn("setdefault", message)

    def test_evaluations_have_no_properties_of_rounds(self):
        message = message_of(lambda: kit.example_round().baseline.second)
        self.assertIn("there is no 'second' (did you mean 'seconds'?); there are: compiled, correct, diagnosis", message)

    def test_the_names_of_expressions(self):
        self.assertTrue(kit.example_round(outcome="not_applicable").not_applicable)
        self.assertTrue(kit.example_round(outcome="unclear").unclear)
        outcomes = ("ok", "not_applicable", "unclear", "refused", "truncated", "no_code", "failed", "no_kernel")
        errors = [outcome for outcome in outcomes if kit.example_round(outcome=outcome).coder_error]
        self.assertEqual(errors, ["refused", "truncated", "no_code", "failed"])
        self.assertTrue(kit.example_round(outcome="no_kernel").policy_error)

    def test_the_best_of_earlier_rounds(self):
        round = kit.example_round(speedup=4.0)
        self.assertEqual(round.best_speedup, 1.0)
        round["history"] = [kit.example_round(speedup=2.0).candidate, None, kit.example_round(correct=False).candidate]
        self.assertAlmostEqual(round.best_speedup, 2.0)


class Metrics(unittest.TestCase):
    metrics = {"registers": 32.0, "occupancy": 0.5}

    def test_one_that_was_measured(self):
        self.assertEqual(kit.example_round(metrics=self.metrics).metric("registers"), 32.0)
        self.assertEqual(kit.example_round(metrics=self.metrics).metric("registers", 7), 32.0)

    def test_the_best_of_earlier_rounds(self):
        self.assertEqual(kit.example_round(earlier=(0.5, 4.0, 0.0)).best_speedup, 4.0)
        self.assertEqual(kit.example_round(earlier=(0.5,)).best_speedup, 1.0)

    def test_an_idle_may_be_any_callable(self):
        def score(round, *, cap=8.0):
            return cap
        self.assertIs(kit.reward(score, idle=functools.partial(score, cap=2.0)), score)

    def test_of_any_evaluation(self):
        round = kit.example_round(metrics=self.metrics, correct=False)
        self.assertEqual(round.metric_of(round.current, "registers"), 32.0)
        self.assertEqual(round.metric_of(None, "registers", 7), 7)

    def test_a_default_is_returned_for_any_other(self):
        for made_up in ({"metrics": self.metrics}, {"correct": False}, NO_KERNEL):
            self.assertEqual(kit.example_round(**made_up).metric("nregs", 0.5), 0.5)
            self.assertIsNone(kit.example_round(**made_up).metric("nregs", None))

    def test_an_unknown_name_is_told(self):
        self.assertEqual(message_of(lambda: kit.example_round(metrics=self.metrics).metric("register")),
                         "UnknownMetric: there is no metric 'register' (did you mean 'registers'?)")
        self.assertEqual(message_of(lambda: kit.example_round(metrics=self.metrics).metric("joules")),
                         "UnknownMetric: there is no metric 'joules'; measured were: occupancy, registers")

    def test_without_a_correct_kernel_a_default_is_asked_for(self):
        remedy = "; test round.correct first, or give a default: metric('registers', 0.0)"
        self.assertEqual(message_of(lambda: kit.example_round(correct=False).metric("registers")),
                         "LookupError: there is no metric 'registers': the kernel is not correct (wrong)" + remedy)
        self.assertEqual(message_of(lambda: kit.example_round(**NO_KERNEL).metric("registers")),
                         "LookupError: there is no metric 'registers': the round has no candidate" + remedy)


class Answers(unittest.TestCase):
    def ask(self, function, round=None, times=1):
        """The kit's answer to `score`, and what it wrote to standard error."""
        kit.reward(function)
        answers, said = io.StringIO(), io.StringIO()
        server = kit._Server(answers)
        server.role = "reward"
        request = kit.Record(id=3, method="score", params=kit.Record(round or kit.example_round()))
        with contextlib.redirect_stderr(said):
            for _ in range(times):
                server.handle(request)
        return json.loads(answers.getvalue().splitlines()[0]), said.getvalue()

    def error(self, function, round=None):
        return self.ask(function, round)[0]["error"]["message"]

    def test_numbers_and_parts(self):
        self.assertEqual(self.ask(lambda round: 2)[0]["result"], {"score": 2.0})
        self.assertEqual(self.ask(lambda round: {"a": 1, "b": True})[0]["result"],
                         {"score": 2.0, "parts": {"a": 1.0, "b": 1.0}})

    def test_a_round_may_get_no_score(self):
        def score(round):
            raise kit.NoScore("its time is too uncertain")
        answer, said = self.ask(score)
        self.assertEqual((answer["result"], said), ({"no_score": "its time is too uncertain"}, ""))

    def test_what_is_no_finite_number_is_told_with_its_function(self):
        for value in (None, math.nan, -math.inf, "1.5", [1.0], {"speed": None}, {"a": 1e308, "b": 1e308}):
            def score(round):
                return value
            self.assertEqual(self.error(score), "TypeError: score() returned %r (kit_test.py:%d): expected a finite "
                                                "number or a dict of them" % (value, line_of(score)))

    def test_a_missing_candidate_is_explained(self):
        def score(round):
            return round.candidate["metrics"]["registers"]
        self.assertEqual(self.error(score, kit.example_round(**NO_KERNEL)),
                         "TypeError: 'NoneType' object is not subscriptable (kit_test.py:%d); in this round candidate "
                         "is None, as the coder wrote no kernel: test `if round.candidate:` first" % (line_of(score) + 1))
        self.assertNotIn("candidate is None", self.error(lambda round: None.seconds))

    def test_a_refused_metric_has_the_code_of_invalid_parameters(self):
        unknown = self.ask(lambda round: round.metric("registers"))[0]["error"]
        wrong = self.ask(lambda round: round.metric("registers"), kit.example_round(correct=False))[0]["error"]
        self.assertEqual((unknown["code"], wrong["code"]), (-32602, -32000))

    def test_a_traceback_is_printed_once_without_the_kits_frames(self):
        def score(round):
            return 1 / 0
        said = self.ask(score, times=3)[1]
        self.assertEqual(said.count("Traceback"), 1)
        self.assertIn("return 1 / 0", said)
        self.assertIn("ZeroDivisionError: division by zero", said)
        self.assertNotIn("kgrpo_plugin.py", said)

    def test_an_exception_of_the_kit_alone_is_a_line(self):
        self.assertEqual(self.ask(lambda round: None)[1].count("\n"), 1)


class Decorated(unittest.TestCase):
    def test_suggestions_that_are_a_text_are_refused(self):
        self.assertEqual(message_of(lambda: kit.coder(suggestions="unroll")),
                         'TypeError: suggestions is a list of texts: ["..."]')

    def test_an_option_before_the_star_is_refused(self):
        def score(round, limit=1, *, cap=8.0):
            return 0.0

        self.assertEqual(message_of(lambda: kit.reward(score)),
                         "TypeError: score(): write its options after *: def score(round, *, limit=1, cap=8.0)")

        def idle(round, limit: int = 1):
            return 0.0
        self.assertIn("def idle(round, *, limit: int = 1)", message_of(lambda: kit.reward(lambda round: 0, idle=idle)))

    def test_idle_takes_the_options_of_the_reward(self):
        def score(round, *, cap=8.0, penalty=0.1):
            return 0.0

        def idle(round, *, cap=8.0):
            return 0.0
        self.assertEqual(message_of(lambda: kit.reward(score, idle=idle)),
                         "TypeError: score() and idle() must take the same options: idle() lacks penalty")
        self.assertIn(": idle() lacks penalty", message_of(lambda: kit.reward(idle, idle=score)))
        for same in (score, lambda round, **options: 0.0):
            self.assertEqual(message_of(lambda: kit.reward(score, idle=same)), "nothing was raised")

    def hello(self, offered, role):
        with unittest.mock.patch.dict(kit._offered, offered, clear=True):
            return kit._Server(io.StringIO()).hello(kit.Record(role=role))

    def test_a_script_that_offers_nothing_of_the_role(self):
        self.assertEqual(message_of(lambda: self.hello({}, "coder")),
                         "ValueError: no function of this script is decorated with @coder")
        self.assertEqual(message_of(lambda: self.hello({"reward": None}, "coder")),
                         "ValueError: this script offers reward, no coder")

    def test_a_script_says_its_name_and_the_version_that_it_sets(self):
        def write(request):
            return ""
        hello = self.hello({"coder": (write, {})}, "coder")
        self.assertEqual((hello["name"], hello["version"]), ("function write", ""))
        with unittest.mock.patch.dict(globals(), __version__=1.2):
            self.assertEqual(self.hello({"coder": (write, {})}, "coder")["version"], "1.2")


if __name__ == "__main__":
    unittest.main()
