"""Reads the event file that tensorboard_python_test.cpp wrote, with TensorBoard's own reader. Usage: FOLDER."""
import struct
import sys
import time

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


events = EventAccumulator(sys.argv[1])
events.Reload()
assert sorted(events.Tags()["scalars"]) == ["train/loss", "val/top5"], events.Tags()
losses = events.Scalars("train/loss")
assert [event.step for event in losses] == [0, 300, 5_000_000_000], losses
assert [event.value for event in losses] == [2.5, float32(1e-30), -3.0], losses
assert all(abs(event.wall_time - time.time()) < 600 for event in losses), losses
assert [(event.step, event.value) for event in events.Scalars("val/top5")] == [(0, float32(0.1))]
assert events.file_version == 2.0, events.file_version
