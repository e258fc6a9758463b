#!/usr/bin/env python3
"""A reward in Python: the logarithm of the speedup up to a cap, less a toll on registers.

    cp $KGRPO/python/kgrpo_plugin.py .
    kgrpo-host pipeline.yaml --set reward.plugin=reward_program --set 'reward.options={command: [python3, reward_shaped.py]}'
"""
import math

from kgrpo_plugin import reward, run


def of_speedup(speedup, registers, cap, toll):
    return {"correct": 0.3, "speedup": math.log2(min(speedup, cap)), "registers": -toll * max(0.0, registers - 64)}


@reward(idle=lambda round, *, cap=8.0, toll=0.001: sum(of_speedup(round.previous_speedup, 0, cap, toll).values()))
def shaped(round, *, cap=8.0, toll=0.001):
    """-1 where it does not compile, -0.5 where it is wrong, else 0.3 + log2(speedup)."""
    if round.candidate is None:
        return -0.5
    if not round.correct:
        return -0.5 if round.compiled else -1.0
    return of_speedup(round.speedup, round.metric("registers"), cap, toll)


run()
