#!/usr/bin/env python3
"""A reward in Python: the logarithm of the speedup up to a cap, less a penalty on registers. Needs kgrpo_plugin.py beside it.

In this folder:

    kgrpo-host plugins validate reward_program --options options.json

In the folder that the pipeline's paths start from, with this folder in it:

    kgrpo-host pipeline.yaml --set reward.plugin=reward_program --set 'reward.options={command: [python3, reward_python/reward_python.py]}'

round.candidate is None where the coder wrote no kernel; every member of `round`: help(kgrpo_plugin.Round). The arguments
after * are the options of the pipeline: reward.options={command: [...], options: {cap: 4}}.
"""
import math

from kgrpo_plugin import reward, run


def value(round, kernel, cap, penalty):
    """-1 where the kernel does not compile, -0.5 where it is wrong, otherwise the sum of the parts."""
    if not kernel.correct:
        return -0.5 if kernel.compiled else -1.0
    registers = round.metric_of(kernel, "registers")
    return {"correct": 0.3, "speedup": math.log2(min(round.speedup_of(kernel), cap)),
            "registers": -penalty * max(0.0, registers - 64)}


def idle(round, *, cap=8.0, penalty=0.001):
    """The score of a round that leaves the kernel as it is. That kernel may be a wrong one of the round before."""
    return value(round, round.current, cap, penalty)


@reward(idle=idle)
def score(round, *, cap=8.0, penalty=0.001):
    """-0.5 where the coder wrote no kernel, otherwise the value of its kernel."""
    return value(round, round.candidate, cap, penalty) if round.candidate else -0.5


if __name__ == "__main__":
    run()
