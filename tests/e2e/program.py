"""Runs the program as a user would. SETTRAIN_PROGRAM is its path."""

import json
import os
import pathlib
import select
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

PROGRAM = os.environ["SETTRAIN_PROGRAM"]

# A run of a second or two: made images, a narrow network.
TINY = """
seed: 3
data:
  name: synthetic
  num_classes: 6
  group_size: 3
  train_size: 480
  val_size: 120
  test_size: 120
  image_size: 12
  batch_size: 32
  workers: 1
  label_noise: {kind: superclass, rate: 0.2}
model: {name: resnet8, width: 4}
loss: {name: noised_topk, k: 2, epsilon: 1.0, num_draws: 3}
optimizer: {lr: 0.05}
schedule: {name: cosine, warmup_epochs: 0.5}
train: {epochs: 2}
select: [val/top1, val/top2]
eval: {top_k: [1, 2], average_k: [1.5, 2]}
"""


def write_png(path, width, height, level):
    """A colour image of one level and a brighter stripe, for data without labels."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    row = b"\0" + bytes([level] * 3 * (width - 2) + [255] * 6)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(row * height)) + chunk(b"IEND", b""))


def tensors_of(path):
    """Name to (dtype, shape, bytes) of a safetensors file."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"], content[start + entry["data_offsets"][0] : start + entry["data_offsets"][1]]) for name, entry in header.items()}


def environment():
    own = {name: value for name, value in os.environ.items() if name != "SETTRAIN_WEIGHTS"}  # with weights init chooses another network
    return {**own, "OMP_NUM_THREADS": "1"}


def line_with(process, text, seconds):
    """The first line of the process' standard output (bytes) that holds `text`. TimeoutError; RuntimeError where it ends before."""
    limit, read = time.monotonic() + seconds, b""
    while not any(text in line for line in read.decode(errors="replace").splitlines(keepends=True) if line.endswith("\n")):
        if not select.select([process.stdout], [], [], max(0, limit - time.monotonic()))[0]:
            raise TimeoutError(f"no line with '{text}' within {seconds} s, but: {read!r}")
        more = process.stdout.read1()
        if not more:
            raise RuntimeError(f"the process ended without a line with '{text}', but: {read!r}")
        read += more
    return next(line for line in read.decode(errors="replace").splitlines() if text in line)


def main():
    """unittest.main(), with exit code 77 where a test was skipped, so that CTest says so."""
    result = unittest.main(module="__main__", exit=False).result
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)


class ProgramTest(unittest.TestCase):
    """A test in a folder of its own, which goes away afterwards."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="settrain-e2e-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def write_pictures(self, classes, images, step):
        """An image folder `pictures`: so many images a class in each split, of levels that are `step` apart from class to class.
        No two splits have the same image."""
        for first, split in enumerate(("train", "val", "test")):
            for number, name in enumerate(classes):
                folder = self.folder / "pictures" / split / name
                folder.mkdir(parents=True)
                for i in range(images):
                    write_png(folder / f"{i}.png", 20 + i, 24, step * number + 3 * i + first)

    def run_program(self, *arguments, expect=0):
        done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, env=environment(), capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, expect, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def start_program(self, *arguments):
        return subprocess.Popen(
            [PROGRAM, *map(str, arguments)], cwd=self.folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def train_tiny(self, name="tiny", *arguments, expect=0):
        config = self.write(f"{name}.yaml", TINY)
        return self.run_program("--config", config, "--device", "cpu", *arguments, expect=expect)

    def metrics(self, name="tiny"):
        """The rows of metrics.jsonl without what the clock measured."""
        rows = [json.loads(line) for line in (self.folder / "runs" / name / "metrics.jsonl").read_text().splitlines()]
        return [{key: value for key, value in row.items() if not key.startswith("time/")} for row in rows]
