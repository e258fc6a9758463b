"""Writes best_of.json and schedules.json: advantages for the best of k, and learning rates of transformers' schedules.

    python3 -m venv venv && venv/bin/pip install numpy transformers torch
    venv/bin/python tests/golden/trainer/make_best_of.py

max@k follows Walder and Karkhanis (2505.15201) by its definition: the gradient's weight of a sample is the mean, over all subsets
of k samples that contain it, of the subset's greatest reward (their equation 19, times the group's size over k), less the mean over all
subsets of k others. Their equation 29 divides that baseline by the group's size less 1 instead; then equal rewards have weights that are
not 0. All subsets are enumerated. Read by tests/trainer/advantage_test.cc and trainer_shared_test.cc.
"""

import itertools
import json
import pathlib
import sys

import numpy as np
import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from pack import packed  # noqa: E402


def max_at_k(rewards, k):
    weights = []
    for i, own in enumerate(rewards):
        others = np.delete(rewards, i)
        holding = np.mean([max((own, *subset)) for subset in itertools.combinations(others, k - 1)])
        without = np.mean([max(subset) for subset in itertools.combinations(others, k)])
        weights.append(k * (holding - without))
    return weights


def rates(make, updates, **settings):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    schedule = make(optimizer, num_training_steps=updates, **settings)
    values = []
    for _ in range(updates):
        values.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return values


def main():
    random = np.random.default_rng(0)
    cases = []
    for size in (2, 3, 4, 8):
        for rewards in (random.normal(size=size) * 2, np.round(random.normal(size=size) * 2)):
            if np.ptp(rewards) == 0:
                rewards[0] += 1
            cases.append({"rewards": rewards.tolist(), "max_at_k": {str(k): max_at_k(rewards, k) for k in range(1, size)}})
    make = transformers.optimization
    updates = 20
    schedules = [
        {"type": "cosine_with_restarts", "num_cycles": 3,
         "rates": rates(make.get_cosine_with_hard_restarts_schedule_with_warmup, updates, num_warmup_steps=0, num_cycles=3)},
        {"type": "cosine", "min_lr_ratio": 0.1,
         "rates": rates(make.get_cosine_with_min_lr_schedule_with_warmup, updates, num_warmup_steps=0, min_lr_rate=0.1)},
        {"type": "warmup_stable_decay", "decay_steps": 7, "min_lr_ratio": 0.2,
         "rates": rates(make.get_wsd_schedule, updates, num_warmup_steps=0, num_decay_steps=7, min_lr_ratio=0.2)},
    ]
    with packed("trainer") as folder:
        (folder / "best_of.json").write_text(json.dumps(cases, indent=1) + "\n")
        (folder / "schedules.json").write_text(json.dumps(schedules, indent=1) + "\n")


if __name__ == "__main__":
    main()
