"""Opens a run's folder as other programs do: its export with `datasets`, events with TensorBoard. Prints what it found.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install tensorboard datasets
    build/bin/kgrpo-host export runs/quickstart --format datasets
    /tmp/venv/bin/python tests/golden/store/open_run.py runs/quickstart
"""

import sqlite3
import sys

import datasets
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def main(run):
    rollouts = datasets.load_dataset(f"{run}/dataset", split="train")
    print(f"rollouts: {len(rollouts)} rows")
    print(rollouts.features)
    with sqlite3.connect(f"{run}/run.sqlite") as database:
        rows = database.execute("SELECT COUNT(*) FROM rounds WHERE purpose = 'train'").fetchone()[0]
        curve = database.execute("SELECT step, value FROM metrics WHERE name = 'reward' ORDER BY step").fetchall()
    assert rows == len(rollouts), (rows, len(rollouts))
    events = EventAccumulator(run)
    events.Reload()
    scalars = [(event.step, event.value) for event in events.Scalars("reward")]
    assert [step for step, _ in scalars] == [step for step, _ in curve], (scalars, curve)
    assert all(abs(a - b) <= 1e-6 * max(1, abs(b)) for (_, a), (_, b) in zip(scalars, curve))
    print(f"events: {len(events.Tags()['scalars'])} scalars, reward over {len(scalars)} steps")


if __name__ == "__main__":
    main(sys.argv[1])
