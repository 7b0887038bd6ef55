"""Compute threads beside other processes that take the cores."""

import os
import subprocess
import sys

from program import PROGRAM, TINY, ProgramTest, environment, main, tensors_of

BUSY = "while True: pass"


class SharedCores(ProgramTest):
    def train(self, name):
        self.write(f"{name}.yaml", TINY)
        settings = ["--set", "run.threads=2", "--set", "train.epochs=20"]
        self.run_program("--config", f"{name}.yaml", "--device", "cpu", *settings)
        return tensors_of(self.folder / f"runs/{name}/checkpoints/last.safetensors")

    def test_busy_processes_change_no_bit(self):
        alone = self.train("alone")
        busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(os.cpu_count())]
        try:
            beside = self.train("beside")
        finally:
            for process in busy:
                process.kill()
                process.wait()
        model = {name: tensor for name, tensor in alone.items() if name.startswith("model.")}
        self.assertTrue(model)
        self.assertEqual(model, {name: tensor for name, tensor in beside.items() if name.startswith("model.")})

    def test_too_many_threads_are_refused_at_once(self):
        for command in (["bench", "train"], ["list", "models"]):
            done = subprocess.run([PROGRAM, *command], env={**environment(), "OMP_NUM_THREADS": "5000"}, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("OMP_NUM_THREADS is 5000: at most 1024", done.stderr)


if __name__ == "__main__":
    main()
