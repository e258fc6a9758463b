#!/usr/bin/env python3
"""A reward in Python: the logarithm of the speedup up to a cap, less a toll on registers. Needs kgrpo_plugin.py beside it.

    kgrpo-host plugins validate reward_program --options options.json
    kgrpo-host pipeline.yaml --set reward.plugin=reward_program --set 'reward.options={command: [python3, reward_python.py]}'

The keyword arguments are the options of the pipeline: reward.options={command: [...], options: {cap: 4}}.
"""
import math

from kgrpo_plugin import reward, run


def parts(speedup, registers, cap, toll):
    return {"correct": 0.3, "speedup": math.log2(min(speedup, cap)), "registers": -toll * max(0.0, registers - 64)}


def idle(round, *, cap=8.0, toll=0.001):
    """The score of a round that leaves the kernel as it is."""
    return parts(round.previous_speedup, 0, cap, toll)


@reward(idle=idle)
def score(round, *, cap=8.0, toll=0.001):
    """-1 where the kernel does not compile, -0.5 where it is wrong or there is none, otherwise the sum of the parts."""
    if not round.correct:
        return -1.0 if round.candidate and not round.compiled else -0.5
    return parts(round.speedup, round.metric("registers"), cap, toll)


if __name__ == "__main__":
    run()
