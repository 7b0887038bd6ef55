"""The installed wheel on a system that has Python alone, for .ci/wheel. SETTRAIN_PROGRAM is the installed command, SETTRAIN_WHEEL_INPUTS a folder with

    fashion-mnist/         the four files of Fashion-MNIST
    quickstart.safetensors a checkpoint that the program built from source made of quickstart.yaml, on this processor
    photographs/           one image in the five formats; JPEG alone loses something
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))
from program import PROGRAM, ProgramTest, tensors_of  # noqa: E402

INPUTS = pathlib.Path(os.environ["SETTRAIN_WHEEL_INPUTS"])
PYTHON = pathlib.Path(PROGRAM).parent / "python"
QUICKSTART = ("--config", "quickstart.yaml", "--device", "cpu", "--set", "run.dir=quickstart")

LOSSES = """
import pathlib, torch, settrain
torch.manual_seed(0)
scores = torch.randn(64, 10)
labels = torch.arange(64) % 10
for loss in (settrain.losses.NoisedTopK(k=2, epsilon=1.0, seed=1), settrain.losses.ExactTopK(k=2, epsilon=1.0), settrain.losses.SmoothedTopKHinge(k=2)):
    results = []
    for f in (loss, torch.compile(loss, backend="aot_eager", fullgraph=True)):
        if hasattr(loss, "step"): loss.step.zero_()
        inputs = scores.clone().requires_grad_()
        value = f(inputs, labels)
        value.backward()
        results.append((value.detach(), inputs.grad))
    assert all(torch.equal(a, b) for a, b in zip(*results)), results
    assert results[0][1].abs().sum() > 0
print(*{line.split()[-1] for line in open("/proc/self/maps") if "settrain_loss_kernels" in line})
"""


class Installed(ProgramTest):
    def test_the_version_comes_within_a_second(self):
        self.run_program("--version")  # reads the files from the disk
        start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        version = self.run_program("--version").stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = time.monotonic() - start
        print(f"settrain --version: {seconds:.2f} s, {after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.2f} s of processor time")
        self.assertRegex(version, r"^settrain [0-9.]+\n$")
        self.assertLess(seconds, 1)

    def test_the_quickstart_gives_the_tensors_of_a_build_from_source_and_its_model_is_used(self):
        start = time.monotonic()
        done = subprocess.run([PROGRAM, *QUICKSTART, "--set", f"data.root={INPUTS}/fashion-mnist"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        print(f"quickstart: {time.monotonic() - start:.0f} s")
        got, expected = tensors_of(self.folder / "quickstart/checkpoints/last.safetensors"), tensors_of(INPUTS / "quickstart.safetensors")
        self.assertEqual(sorted(got), sorted(expected))
        different = [name for name in got if got[name] != expected[name]]
        self.assertEqual(different, [])
        self.assertGreater(len(got), 50)

        files = sorted((INPUTS / "photographs").iterdir())
        self.assertEqual({file.suffix for file in files}, {".jpg", ".png", ".webp", ".tiff", ".bmp"})
        self.run_program("predict", "quickstart", *files, "--rule", "top:2", "--out", "sets.jsonl", "--device", "cpu")
        rows = [json.loads(line) for line in (self.folder / "sets.jsonl").read_text().splitlines()]
        sets = {pathlib.Path(row["path"]).suffix: row["sets"] for row in rows}
        self.assertEqual(len(sets), 5)
        for suffix in (".bmp", ".tiff", ".webp"):
            self.assertEqual(sets[suffix], sets[".png"], suffix)

        self.run_program("report", "quickstart", "--device", "cpu")
        self.assertIn("data:image/png;base64,iVBOR", (self.folder / "quickstart/report.html").read_text())

    def test_the_losses_have_their_recorded_values(self):
        self.run_program("check", "losses", "--device", "cpu")

    def test_python_computes_the_losses_by_the_kernels_of_the_program(self):
        done = subprocess.run([PYTHON, "-c", LOSSES], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        environment = {**os.environ, "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(self.folder / "loaded")}
        subprocess.run([PROGRAM, "--version"], env=environment, check=True, capture_output=True)
        started = [line.split("calling init: ")[1] for file in self.folder.glob("loaded.*") for line in file.read_text().splitlines() if "calling init: " in line]
        kernels = {os.path.realpath(path) for path in started if "settrain_loss_kernels" in path}
        self.assertEqual({os.path.realpath(done.stdout.strip())}, kernels)

    def test_what_the_system_lacks_is_named_with_ways_to_get_it(self):
        missing = subprocess.run([PROGRAM, *QUICKSTART], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(missing.returncode, 1)
        for way in ("settrain data fetch fashion_mnist", "dataset-fashion-mnist", "--set data.name=synthetic"):
            self.assertIn(way, missing.stderr)
        error = self.run_program("data", "fetch", "fashion_mnist", expect=1).stderr
        for way in ("no curl in PATH", "package curl", "conda-forge"):
            self.assertIn(way, error)
        self.run_program(*QUICKSTART, "--set", "data.name=synthetic", "--set", "train.epochs=1")
        error = self.run_program("data", "stats", "quickstart/config.yaml", "--out", "statistics", expect=1).stderr
        for way in ("no gnuplot in PATH", "gnuplot-nox", "conda-forge"):
            self.assertIn(way, error)


if __name__ == "__main__":
    unittest.main(verbosity=2)
