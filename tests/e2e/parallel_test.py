"""Training in several processes: the bits of one process, and three launchers."""

import array
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys

from processes import VARIANTS, Parallel, children_of, free_port
from program import PROGRAM, environment, main, tensors_of


class SameBits(Parallel):
    def test_the_number_of_processes_changes_no_bit(self):
        for name in VARIANTS:
            with self.subTest(name):
                self.train(name, "one", "--set", "train.accumulate=4")
                expected = self.result("one")
                for world in (2, 4):
                    self.train(name, "several", "--set", f"train.accumulate={4 // world}", "--processes", str(world), "--overwrite")
                    self.assertEqual(self.result("several"), expected, world)
                shutil.rmtree(self.folder / "runs" / "one")

    def test_a_run_goes_on_in_another_number_of_processes(self):
        self.train("noised", "whole", "--set", "train.accumulate=4")
        self.train("noised", "run", "--set", "train.accumulate=4", "--set", "train.epochs=1", "--set", "schedule.name=constant")
        shutil.rmtree(self.folder / "runs" / "run")
        process = self.start([*self.arguments("noised", "run"), "--processes", "4", "--set", "train.checkpoint_every.steps=1"])
        metrics = self.folder / "runs" / "run" / "metrics.jsonl"
        self.wait_for(lambda: metrics.exists() and metrics.stat().st_size > 0, process)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143, errors)
        self.assertIn("go on by --resume runs/run, in 4 processes as before", errors)
        refused = self.run_program("--resume", "runs/run", "--device", "cpu", "--processes", "2", expect=2)
        self.assertIn("train.accumulate: 1 in each of 4 processes there, 1 in each of 2 processes (2 would make the same steps) now", refused.stderr)
        resume = ["--resume", "runs/run", "--device", "cpu", "--processes", "2", "--set", "train.accumulate=2", "--set", "run.threads=1"]
        config = self.folder / "runs" / "run" / "config.yaml"
        self.assertIn("accumulate: 1\n", config.read_text())
        last = self.folder / "runs" / "run" / "checkpoints" / "last.safetensors"
        checkpoint = last.read_bytes()
        killed = self.start(resume)
        self.wait_for(lambda: "accumulate: 2\n" in config.read_text(), killed)
        for child in children_of(killed.pid):
            os.kill(child, signal.SIGKILL)
        killed.communicate(timeout=60)
        last.unlink(missing_ok=True)
        last.write_bytes(checkpoint)  # the config was written, its first checkpoint was not
        self.run_program(*resume)
        self.assertEqual(self.result("run"), self.result("whole"))

    def test_a_run_without_a_checkpoint_begins_in_another_number_of_processes(self):
        self.train("noised", "run", "--processes", "2")
        expected = self.result("run")
        run = self.folder / "runs" / "run"

        def take_back():
            for file in (*(run / "checkpoints").iterdir(), *run.glob("metrics*"), *run.glob("results*")):
                file.unlink()

        take_back()
        refused = self.run_program("--resume", "runs/run", "--device", "cpu", "--processes", "4", expect=2)
        self.assertIn("train.accumulate: 1 in each of 2 processes there, 1 in each of 4 processes now", refused.stderr)
        self.run_program("--resume", "runs/run", "--device", "cpu", "--set", "train.accumulate=2", "--set", "run.threads=1")
        self.assertEqual(self.result("run"), expected)
        # Now recorded with one process, though it was begun by two.
        take_back()
        self.run_program("--resume", "runs/run", "--device", "cpu", "--processes", "2", "--set", "train.accumulate=1", "--set", "run.threads=1")
        self.assertEqual(self.result("run"), expected)

    def test_sums_of_the_backend_come_close(self):
        # One step of 15 batches: in the last of four rounds the fourth process has none.
        one_step = ["--processes", "4", "--set", "train.accumulate=4", "--set", "train.epochs=1", "--set", "schedule.name=constant"]
        self.train("noised", "still", *one_step, "--set", "optimizer.lr=1e-12")
        self.train("noised", "ordered", *one_step)
        self.train("noised", "buckets", *one_step, "--set", "train.deterministic=false", "--set", "parallel.bucket_size=0.002")

        def weights(folder):
            tensors = tensors_of(self.folder / "runs" / folder / "checkpoints" / "last.safetensors")
            return {name: array.array("f", data) for name, (dtype, _, data) in tensors.items() if name.startswith("model.") and dtype == "F32"}

        def largest_difference(one, other):
            return max(abs(x - y) for name in one for x, y in zip(one[name], other[name], strict=True))

        still, ordered, buckets = weights("still"), weights("ordered"), weights("buckets")
        self.assertGreater(4 * sum(map(len, ordered.values())), 5 * 0.002 * 2**20)  # several buckets
        self.assertGreater(largest_difference(ordered, still), 1e-2)
        self.assertLess(largest_difference(ordered, buckets), 1e-5)

    def test_batch_norm_over_processes(self):
        self.train("mixed", "whole", "--set", "data.batch_size=40", "--set", "train.mix=none", "--set", "train.epochs=1")
        self.train(
            "mixed", "halves", "--set", "data.batch_size=20", "--set", "train.mix=none", "--set", "train.epochs=1",
            "--set", "model.sync_batch_norm=true", "--processes", "2",
        )
        self.assertAlmostEqual(self.metrics("halves")[0]["train/loss"], self.metrics("whole")[0]["train/loss"], delta=1e-3)
        # 24 batches for 5 processes: in the last step one of them has none.
        self.train("mixed", "uneven", "--set", "data.batch_size=20", "--set", "model.sync_batch_norm=true", "--processes", "5")


class Launchers(Parallel):
    def expected(self):
        self.train("noised", "expected", "--set", "train.accumulate=2")
        return self.result("expected")

    def test_torchrun(self):
        python = os.environ.get("SETTRAIN_PYTHON", sys.executable)
        launcher = [python, "-m", "torch.distributed.run", "--no-python", "--nproc-per-node", "2", "--master-port", str(free_port())]
        if subprocess.run([python, "-c", "import torch.distributed.run"], capture_output=True).returncode != 0:
            self.skipTest(f"{python} has no torch")
        expected = self.expected()
        command = [*launcher, PROGRAM, *self.arguments("noised", "run")]
        done = subprocess.run(command, cwd=self.folder, env=environment(), capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.result("run"), expected)
        again = subprocess.run(command, cwd=self.folder, env=environment(), capture_output=True, text=True, timeout=300)
        self.assertEqual(again.returncode, 1)
        self.assertIn("'runs/run' already holds a run", again.stderr.split("Root Cause")[-1])  # from the error file

    def test_variables_of_slurm(self):
        expected = self.expected()
        started = self.start_tasks(2, self.arguments("noised", "run"))
        for process in started:
            _, errors = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(self.result("run"), expected)

    def test_two_steps_of_a_slurm_job_at_a_time(self):
        expected = self.expected()
        job = {"SLURM_JOB_ID": str(random.randrange(1_000_000)), "MASTER_PORT": None}
        steps = [self.start_tasks(2, self.arguments("noised", f"step{i}"), {**job, "SLURM_STEP_ID": str(i)}) for i in (0, 1)]
        for process in (*steps[0], *steps[1]):
            _, errors = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(self.result("step0"), expected)
        self.assertEqual(self.result("step1"), expected)

    def test_only_the_first_process_speaks(self):
        done = self.train("noised", "run", "--processes", "3")
        self.assertEqual(done.stdout.count("best-val-top1"), 1)
        self.assertEqual(done.stderr.count("[train] epoch 1/2"), 1)
        self.assertIn("3 processes on", done.stderr)
        self.assertIn("a step takes 96 images, 3 batches of 32", done.stderr)

    def test_a_benchmark_of_processes_is_stopped_by_a_signal(self):
        command = ["bench", "train", "--model", "resnet8", "--batch", "4", "--processes", "2", "--device", "cpu", "--rounds", "1000", "--steps", "20"]
        process = self.start(command)
        self.wait_for(lambda: len(children_of(process.pid)) == 2, process)
        children = children_of(process.pid)
        # They measure where they catch the signal.
        self.wait_for(lambda: all(self.catches(child, signal.SIGTERM) for child in children), process)
        os.kill(children[1], signal.SIGTERM)  # the other one ends with it
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143, errors)
        self.assertEqual(errors, "")

    @staticmethod
    def catches(pid, number):
        fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
        return bool(int(fields["SigCgt"], 16) >> (number - 1) & 1)

    def test_what_is_started_again_goes_on(self):
        arguments = self.arguments("noised", "run", "--processes", "2", "--resume-if-there")
        self.run_program(*arguments)
        self.assertIn("is finished", self.run_program(*arguments).stderr)


if __name__ == "__main__":
    main()
