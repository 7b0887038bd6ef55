"""The Python package that the build made, for tests of it. Import this first.

Starts the test anew with the Python of SETTRAIN_PYTHON, which has PyTorch; exit code 77, which CTest shows as skipped, where it is not set.
"""

import json
import os
import pathlib
import sys
import unittest

SOURCE = pathlib.Path(os.environ["SETTRAIN_SOURCE_DIR"])
PROGRAM = pathlib.Path(os.environ["SETTRAIN_PROGRAM"])

if os.environ.get("SETTRAIN_STARTED_ANEW") != "1":
    if not os.environ.get("SETTRAIN_PYTHON"):
        print("skipped: SETTRAIN_PYTHON is not set")
        sys.exit(77)
    python = os.environ["SETTRAIN_PYTHON"]
    os.environ["SETTRAIN_STARTED_ANEW"] = "1"
    os.execv(python, [python, "-B", *sys.argv])

sys.path.insert(0, str(PROGRAM.parents[2] / "python"))

import torch  # noqa: E402

torch.set_num_threads(1)


def golden(path):
    return json.loads((SOURCE / "tests/golden" / path).read_text(encoding="utf-8"))


def drawn(samples=400, classes=12, seed=3, dtype=torch.float64):
    """Scores that say something of the labels, with ties."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(samples, classes, generator=generator, dtype=torch.float64).mul(4).round().div(4)
    labels = torch.randint(classes, (samples,), generator=generator)
    scores[torch.arange(samples), labels] += 1
    return scores.to(dtype), labels


class TensorTest(unittest.TestCase):
    """A test that compares tensors."""

    def assert_close(self, got, expected, relative, message=None):
        """|got - expected| <= relative max(1, |expected|) for every element."""
        expected = torch.as_tensor(expected, dtype=torch.float64)
        got = torch.as_tensor(got).detach().to(torch.float64)
        self.assertEqual(got.shape, expected.shape, message)
        error = ((got - expected).abs() / expected.abs().clamp_min(1)).max().item() if got.numel() else 0.0
        self.assertLessEqual(error, relative, message)


def main():
    """unittest.main(), with exit code 77 where a test was skipped, so that CTest says so."""
    result = unittest.main(module="__main__", exit=False).result
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)
