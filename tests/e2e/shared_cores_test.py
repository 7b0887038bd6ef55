"""Compute threads beside other processes that take the cores."""

import contextlib
import os
import subprocess
import sys
import time

from program import PROGRAM, TINY, ProgramTest, environment, main, tensors_of

BUSY = "while True: pass"


class SharedCores(ProgramTest):
    def train(self, name, **variables):
        """The checkpoint's tensors of the model, and the most threads that the process had."""
        self.write(f"{name}.yaml", TINY)
        settings = ["--set", "run.threads=2", "--set", "train.epochs=20"]
        command = [PROGRAM, "--config", f"{name}.yaml", "--device", "cpu", *settings]
        variables = {"OMP_WAIT_POLICY": None, "GOMP_SPINCOUNT": None, "OMP_PROC_BIND": None, "GOMP_CPU_AFFINITY": None, **variables}
        environment_ = {key: value for key, value in {**environment(), **variables}.items() if value is not None}
        with (self.folder / f"{name}.out").open("w") as out:
            process = subprocess.Popen(command, cwd=self.folder, env=environment_, stdout=out, stderr=out)
            threads = 0
            while process.poll() is None:
                with contextlib.suppress(OSError):
                    threads = max(threads, len(os.listdir(f"/proc/{process.pid}/task")))
                time.sleep(0.02)
        self.assertEqual(process.returncode, 0, (self.folder / f"{name}.out").read_text())
        tensors = tensors_of(self.folder / f"runs/{name}/checkpoints/last.safetensors")
        return {tensor: value for tensor, value in tensors.items() if tensor.startswith("model.")}, threads

    def test_busy_processes_change_no_bit(self):
        with contextlib.ExitStack() as stack:
            for _ in range(os.cpu_count()):
                stack.callback(stack.enter_context(subprocess.Popen([sys.executable, "-c", BUSY])).kill)
            beside, threads = self.train("beside")
        alone, fewer_threads = self.train("alone", GOMP_SPINCOUNT="1000")  # is not watched
        self.assertTrue(alone)
        self.assertEqual(alone, beside)
        if os.cpu_count() <= 64:
            self.assertGreater(threads, fewer_threads + os.cpu_count())  # the idle team, which shortens the spinning

    def test_too_many_threads_are_refused_at_once(self):
        for command in (["bench", "train"], ["list", "models"]):
            done = subprocess.run([PROGRAM, *command], env={**environment(), "OMP_NUM_THREADS": "5000"}, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("OMP_NUM_THREADS is 5000: at most 1024", done.stderr)


if __name__ == "__main__":
    main()
