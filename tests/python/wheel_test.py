"""The wheel, as a new user makes and uses it: built, installed in a fresh environment, and docs/python.md's example run there."""

from package import SOURCE, main

import gzip
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

import torch

FASHION_MNIST = pathlib.Path("/usr/share/datasets/fashion-mnist")


class Wheel(unittest.TestCase):
    def test_it_installs_and_runs_the_example(self):
        if not FASHION_MNIST.is_dir():
            self.skipTest(f"no {FASHION_MNIST}: Debian's dataset-fashion-mnist")
        folder = tempfile.TemporaryDirectory(prefix="settrain-wheel-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        wheel = self.build()
        python = self.environment()
        self.run_command(python, "-m", "pip", "install", "--no-deps", "--no-index", wheel)
        self.unpack_images()
        example = re.search(r"```python\n(.*?)```", (SOURCE / "docs/python.md").read_text(encoding="utf-8"), re.DOTALL).group(1)
        printed = self.run_command(python, "-c", example)
        self.assertGreater(float(re.search(r"'top2': ([0-9.]+)", printed).group(1)), 0.85)
        self.assertAlmostEqual(float(re.search(r"coverage ([0-9.]+)", printed).group(1)), 0.98, delta=0.02)
        where = self.run_command(python, "-c", "import settrain; print(settrain.__file__, settrain.__version__)")
        self.assertIn(f"{python.parent.parent}/lib", where)

    def run_command(self, *command):
        done = subprocess.run([str(word) for word in command], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        return done.stdout

    def build(self):
        """Without build isolation, which would download the build backend."""
        options = ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", self.folder]
        # The CUDA kernels are compiled by the build of the program, where they can be.
        defines = {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "SETTRAIN_CUDA": "OFF"}
        settings = [f"--config-settings=cmake.define.{name}={value}" for name, value in defines.items()]
        self.run_command(sys.executable, "-m", "pip", "wheel", *options, *settings, SOURCE)
        wheels = list(self.folder.glob("settrain-*.whl"))
        self.assertEqual(len(wheels), 1)
        names = zipfile.ZipFile(wheels[0]).namelist()
        self.assertTrue({"settrain/__init__.py", "settrain/py.typed", "settrain/libsettrain_ops.so"} <= set(names), names)
        self.assertFalse([name for name in names if "torch" in name or "opencv" in name or name.endswith((".cpp", ".h", ".a"))], names)
        return wheels[0]

    def environment(self):
        """A fresh one that finds this one's PyTorch, which is half a gigabyte."""
        self.run_command(sys.executable, "-m", "venv", "fresh")
        python = self.folder / "fresh/bin/python"
        site = self.run_command(python, "-c", "import site; print(site.getsitepackages()[0])").strip()
        (pathlib.Path(site) / "torch.pth").write_text(f"{pathlib.Path(torch.__file__).parents[1]}\n")
        return python

    def unpack_images(self):
        raw = self.folder / "data/FashionMNIST/raw"
        raw.mkdir(parents=True)
        for path in FASHION_MNIST.glob("*.gz"):
            (raw / path.stem).write_bytes(gzip.decompress(path.read_bytes()))


if __name__ == "__main__":
    main()
