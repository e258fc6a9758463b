"""Writes events.json: what TensorBoard's own record writer makes of a few scalar events, byte by byte.

The scalars, steps and times are repeated in tests/observer/event_writer_test.cc, which holds our event file to these bytes.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install tensorboard
    /tmp/venv/bin/python tests/golden/observer/make_events.py
"""

import importlib.metadata
import io
import json
import pathlib

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import crc32c
from tensorboard.summary.writer.record_writer import RecordWriter

SCALARS = [
    (1, 1700000000.25, [("reward", 0.5), ("kernel/correct_rate", 1.0)]),
    (2, 1700000001.5, [("reward", -0.125)]),
    (300, 1700000002.75, [("reward", 1e-30), ("loss", -3.4028234663852886e38)]),
]


def main():
    stream = io.BytesIO()
    writer = RecordWriter(stream)
    writer.write(Event(wall_time=1700000000.0, file_version="brain.Event:2").SerializeToString())
    writer.write(Event(wall_time=1700000000.0, step=7, session_log=SessionLog(status=SessionLog.START)).SerializeToString())
    for step, wall_time, scalars in SCALARS:
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars]
        writer.write(Event(wall_time=wall_time, step=step, summary=Summary(value=values)).SerializeToString())
    texts = ["", "a", "123456789", "\x00" * 32, "kgrpo" * 100]
    result = {
        "made_with": "tensorboard " + importlib.metadata.version("tensorboard"),
        "events": stream.getvalue().hex(),
        "crc32c": [[text, crc32c(text.encode("latin-1"))] for text in texts],
    }
    path = pathlib.Path(__file__).parent / "events.json"
    path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
