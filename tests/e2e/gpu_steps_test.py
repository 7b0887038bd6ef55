"""The command lines of scripts/gpu_check.sh's steps are ones that the programs take: without a GPU each gets as far as to miss one."""

import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

from program import PROGRAM

ROOT = pathlib.Path(os.environ["SETTRAIN_SOURCE_DIR"])
MISSING = ("no GPU was found", "this build has no CUDA", "there is no CUDA device that this PyTorch can use")


def step_commands():
    """Of the steps that take --device cuda, with this build's program in place of the one that is built there."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "SETTRAIN_GPU_CHECK": folder}
        shown = subprocess.run([ROOT / "scripts/gpu_check.sh", "--dry-run", "run"], env=environment, capture_output=True, text=True, check=True)
        built = f"{folder}/build/apps/settrain/settrain"
        commands = [shlex.split(line.replace(built, str(PROGRAM))) for line in shown.stdout.splitlines()]
    return [command for command in commands if "--device" in command]


class Steps(unittest.TestCase):
    def test_each_is_stopped_by_the_missing_gpu_alone(self):
        if os.path.exists("/proc/driver/nvidia/version"):
            print("[skipped] there is a GPU, on which the steps would run")
            sys.exit(77)
        python = os.environ.get("SETTRAIN_PYTHON", "")
        commands = step_commands()
        self.assertGreaterEqual(len(commands), 11)
        for command in commands:
            if "bench_against_python.py" in " ".join(command) and not python:
                continue  # no Python with PyTorch here
            with self.subTest(command=" ".join(command)):
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertTrue(any(text in done.stdout + done.stderr for text in MISSING), done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
