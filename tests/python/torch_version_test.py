"""`import settrain` beside a PyTorch that its operators were not compiled for says so."""

from package import main

import subprocess
import sys
import unittest

import settrain
from settrain._version import CUDA_VERSION, TORCH_VERSION

# Makes the operators those of one PyTorch, and the installed PyTorch another, as far as the import looks.
IMPORT = """
import sys, types
package = sys.argv[1]
sys.path.insert(0, package)
import torch
sys.modules["settrain._version"] = types.SimpleNamespace(__version__="0.1.0", TORCH_VERSION=sys.argv[2], CUDA_VERSION=sys.argv[3])
torch.__version__, torch.version.cuda = sys.argv[4], sys.argv[5] or None
import settrain
print(len(settrain.losses.__all__))
"""


class Versions(unittest.TestCase):
    def import_with(self, built_for, installed):
        return subprocess.run([sys.executable, "-B", "-c", IMPORT, sys.path[0], *built_for, *installed], capture_output=True, text=True)

    def check_refused(self, built_for, installed, *words):
        done = self.import_with(built_for, installed)
        self.assertEqual(done.returncode, 1)
        last = done.stderr.strip().splitlines()[-1]
        self.assertTrue(last.startswith("ImportError: settrain was built for "), done.stderr)
        for word in words:
            self.assertIn(word, last)

    def test_another_release(self):
        self.check_refused(("2.11.0", ""), ("2.10.0+cu128", "12.8"), "for PyTorch 2.11.0, ", "has PyTorch 2.10.0+cu128 with CUDA 12.8", "pip install torch==2.11.0")
        self.check_refused(("2.11.0", "13"), ("2.12.1", "13.0"), "for PyTorch 2.11.0 with CUDA 13, ", "has PyTorch 2.12.1 with CUDA 13.0")

    def test_kernels_for_cuda_and_a_torch_without(self):
        self.check_refused(("2.11.0", "13"), ("2.11.0+cpu", ""), "for PyTorch 2.11.0 with CUDA 13, ", "has PyTorch 2.11.0+cpu without CUDA", "pip install --force-reinstall torch==2.11.0")

    def test_kernels_for_another_cuda(self):
        self.check_refused(("2.11.0", "13"), ("2.11.0+cu126", "12.6"), "has PyTorch 2.11.0+cu126 with CUDA 12.6")

    def test_what_goes_together_is_imported(self):
        cuda = f"{CUDA_VERSION or 13}.0"
        for built_for, installed in (
            ((TORCH_VERSION, CUDA_VERSION), (f"{TORCH_VERSION}+cu130", cuda)),
            ((TORCH_VERSION, ""), (f"{TORCH_VERSION}+cpu", "")),
            ((TORCH_VERSION, ""), (TORCH_VERSION, "12.6")),
        ):
            done = self.import_with(built_for, installed)
            self.assertEqual((done.returncode, done.stdout), (0, f"{len(settrain.losses.__all__)}\n"), done.stderr)


if __name__ == "__main__":
    main()
