"""The trainings of scripts/gpu_check.sh, on the CPU: that they run, and that their settings are ones that settrain has."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import unittest

from program import PROGRAM, ProgramTest

SCRIPT = pathlib.Path(os.environ["SETTRAIN_SOURCE_DIR"]) / "scripts/gpu_check/trainings.py"


class Trainings(ProgramTest):
    def test_a_killed_run_ends_as_one_that_was_not(self):
        command = [sys.executable, SCRIPT, "resume", "--folder", self.folder / "runs", "--device", "cpu"]
        done = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"killed and resumed: (\d+) of \1 tensors have the same bits, results.json equal")

    def test_the_quickstart_s_settings_are_keys(self):
        os.environ.setdefault("SETTRAIN_PROGRAM", str(PROGRAM))
        spec = importlib.util.spec_from_file_location("trainings", SCRIPT)
        trainings = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(trainings)
        for config in (trainings.quickstart_config(self.folder), trainings.quickstart_config(None)):
            command = trainings.command(self.folder / "run", "cpu", config, ["seed=5"])
            shown = [part for part in command[1:] if part not in ("--device", "cpu")]
            done = subprocess.run([PROGRAM, "config", "show", *shown], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("seed: 5", done.stdout)


if __name__ == "__main__":
    unittest.main()
