"""The command lines of scripts/gpu_check.sh's steps, tried without a GPU: options, and names of models, losses and configs.

The program's own commands run on the CPU, with little data. The comparisons with PyTorch and the trainings are parsed, and the program's
commands that they make run on the CPU too.
"""

import contextlib
import importlib.util
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from program import PROGRAM

ROOT = pathlib.Path(os.environ["SETTRAIN_SOURCE_DIR"])
LITTLE = {
    ("check", "models"): [str(ROOT / "tests/golden/models/resnet20.json")],
    ("bench", "losses"): ["--batch", "4", "--rounds", "1"],
    ("bench", "metrics"): ["--samples", "100", "--classes", "20", "--rounds", "1", "--sort-rounds", "1"],
    ("bench", "train"): ["--rounds", "1", "--steps", "1", "--warm-up", "0", "--set", "data.train_size=300"],
    ("bench", "loader"): ["--rounds", "1", "--set", "data.train_size=300"],
}
# Arguments: the folder of the scripts, then command lines as JSON. Parses each, and measures the program with little data.
PAIRS = """
import json, sys
sys.path.insert(0, sys.argv[1])
import bench_against_python as bench
parsed = []
bench.compare_training = bench.compare_losses = parsed.append
for sys.argv in json.loads(sys.argv[2]):
    bench.main()
for args in parsed:
    assert args.device == "cuda" and args.program.name == "settrain", args
    if hasattr(args, "model"):
        with bench.torch.device("meta"):
            bench.make(args.model, bench.usual_classes(args.model))
        args.classes, args.size, args.threads, args.device = bench.usual_classes(args.model), 32, 1, "cpu"
        args.batch, args.steps, args.warm_up = 2, 1, 0
        bench.measure_settrain(args)
    else:
        assert args.k < args.classes, args
print(len(parsed), "comparisons")
"""


def step_commands():
    """With this build's program in place of the one that is built there."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "SETTRAIN_GPU_CHECK": folder}
        shown = subprocess.run([ROOT / "scripts/gpu_check.sh", "--dry-run", "run"], env=environment, capture_output=True, text=True, check=True)
        built = f"{folder}/build/apps/settrain/settrain"
        return [shlex.split(line.replace(built, str(PROGRAM))) for line in shown.stdout.splitlines()]


def trainings():
    spec = importlib.util.spec_from_file_location("trainings", ROOT / "scripts/gpu_check/trainings.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Steps(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.commands = step_commands()

    def commands_with(self, text):
        return [command for command in self.commands if any(text in part for part in command)]

    def succeeds(self, command):
        with self.subTest(command=" ".join(command)):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return done.stdout
        return ""

    def test_the_programs_own_commands_run_on_the_cpu(self):
        own = [command for command in self.commands if command[0] == str(PROGRAM)]
        self.assertEqual(len(own), 7)
        for command in own:
            on_cpu = ["cpu" if part == "cuda" else part for part in command]
            self.succeeds(on_cpu + LITTLE.get(tuple(command[1:3]), []))

    def test_the_trainings_are_configs_that_the_program_takes(self):
        module = trainings()
        commands = self.commands_with("trainings.py")
        self.assertEqual(len(commands), 2)
        runs = []
        with tempfile.TemporaryDirectory() as folder:
            for command in commands:
                arguments = command[1:]
                arguments[arguments.index("--folder") + 1] = folder
                with mock.patch.object(module, "run", lambda place, device, config, settings: runs.append((place, device, config, settings))), \
                        mock.patch.object(module, "kill_in_mid_epoch", side_effect=SystemExit), \
                        mock.patch.object(module, "last_row", side_effect=SystemExit), \
                        mock.patch.object(sys, "argv", arguments), contextlib.suppress(SystemExit):
                    module.main()
            self.assertEqual(len(runs), 2)
            for place, device, config, settings in runs:
                self.assertIn(device, ("cpu", "cuda"))
                self.succeeds(module.command(place, "cpu", config, settings) + ["--dry-run"])

    def test_the_comparisons_take_their_options_and_name_models_of_both_sides(self):
        python = os.environ.get("SETTRAIN_PYTHON", "")
        if not python:
            self.skipTest("no Python with PyTorch (SETTRAIN_PYTHON)")
        commands = self.commands_with("bench_against_python.py")
        self.assertEqual(len(commands), 5)
        lines = [command[next(i for i, part in enumerate(command) if part.endswith("bench_against_python.py")):] for command in commands]
        self.assertIn("5 comparisons", self.succeeds([python, "-c", PAIRS, str(ROOT / "scripts"), json.dumps(lines)]))


if __name__ == "__main__":
    unittest.main()
