"""Opens what `kgrpo-host export RUN --format datasets` wrote, as other programs do, and holds it against the run.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install datasets==4.8.5
    /tmp/venv/bin/python tests/golden/store/open_export.py runs/quickstart my_samples
"""

import sqlite3
import struct
import sys

import datasets


def main(run, folder):
    samples = datasets.load_dataset(folder)
    print(samples)
    with sqlite3.connect(f"file:{run}/run.sqlite?mode=ro", uri=True) as database:
        for split, rows in samples.items():
            found = database.execute(
                "SELECT suggestion, reward, logprobs FROM rounds WHERE purpose = ? ORDER BY step, trajectory, round",
                (split,),
            ).fetchall()
            assert len(found) == len(rows), (split, len(found), len(rows))
            for (suggestion, reward, logprobs), row in zip(found, rows):
                assert row["completion"] == [{"role": "assistant", "content": suggestion}]
                assert row["reward"] == reward
                assert row["logprobs"] == list(struct.unpack(f"<{len(logprobs) // 4}f", logprobs))
                assert {message["role"] for message in row["prompt"]} <= {"system", "user", "assistant"}
            print(f"{split}: {len(rows)} rows hold what the run holds")


if __name__ == "__main__":
    main(*sys.argv[1:])
