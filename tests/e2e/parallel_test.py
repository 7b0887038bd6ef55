"""Training in several processes: the bits of one process, three launchers, and what happens where a process is lost.

SETTRAIN_KILLS is the number of kills (4 where it is not set), SETTRAIN_KILL_SEED the seed of their moments:

    SETTRAIN_KILLS=40 scripts/test -R e2e/parallel
"""

import array
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

from program import PROGRAM, TINY, ProgramTest, environment, main, tensors_of

KILLS = int(os.environ.get("SETTRAIN_KILLS", "4"))
SEED = int(os.environ.get("SETTRAIN_KILL_SEED", time.time_ns() % 1_000_000))

# 15 batches an epoch: the last of 4 steps has 3 where the others have 4.
VARIANTS = {
    "noised": """
extends: tiny.yaml
run: {threads: 1}
train: {clip_norm: 1.0, ema_decay: 0.9, top_k: [2], gradient_nonzeros: true}
""",
    "mixed": """
extends: tiny.yaml
run: {threads: 1}
data: {sampler: square_root, drop_last: true, batch_size: 50, eval_batch_size: 32}
loss: {name: cross_entropy, class_weights: effective_number}
optimizer: {name: adamw, lr: 0.005}
train: {mix: either}
""",
    "random_depth": """
extends: tiny.yaml
run: {threads: 1}
data: {image_size: 32, train_size: 80, val_size: 20, test_size: 20, batch_size: 10}
model: {name: convnext_tiny}
loss: {name: cross_entropy}
train: {epochs: 1}
""",
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def children_of(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Parallel(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("tiny.yaml", TINY)
        for name, text in VARIANTS.items():
            self.write(f"{name}.yaml", text)

    def arguments(self, name, folder, *more):
        return ["--config", f"{name}.yaml", "--device", "cpu", "--set", f"run.dir=runs/{folder}", *more]

    def train(self, name, folder, *more, expect=0):
        return self.run_program(*self.arguments(name, folder, *more), expect=expect)

    def result(self, folder):
        path = self.folder / "runs" / folder
        checkpoints = {file.name: tensors_of(file) for file in sorted((path / "checkpoints").iterdir())}
        return checkpoints, self.metrics(folder), (path / "results.json").read_text(), (path / "results.txt").read_text()

    def start(self, arguments, variables=()):
        process = subprocess.Popen(
            [PROGRAM, *arguments],
            cwd=self.folder,
            env={**environment(), **dict(variables)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(process.__exit__, None, None, None)
        return process

    def start_ranks(self, world, arguments, host="127.0.0.1", ranks=None, each=lambda rank: []):
        """Processes with torchrun's variables, started one by one."""
        port = str(free_port())
        variables = {"WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(world), "MASTER_ADDR": host, "MASTER_PORT": port}
        return [
            self.start([*arguments, *each(rank)], {**variables, "RANK": str(rank), "LOCAL_RANK": str(rank)})
            for rank in (range(world) if ranks is None else ranks)
        ]

    def start_tasks(self, world, arguments, more=()):
        """Processes with the variables of a Slurm step, of which the first keeps the store."""
        variables = {
            "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": str(world), "SLURM_STEP_NODELIST": "127.0.0.1",
            "MASTER_PORT": str(free_port()), **dict(more),
        }
        variables = {name: value for name, value in variables.items() if value is not None}
        return [self.start(arguments, {**variables, "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)}) for rank in range(world)]

    def wait_for(self, condition, process):
        deadline = time.monotonic() + 120
        while not condition():
            self.assertIsNone(process.poll(), process.stderr.read() if process.poll() is not None else "")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)


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


class Faults(Parallel):
    def test_kills(self):
        draw = random.Random(SEED)
        expected = {}
        for world in (2, 3):
            self.train("noised", "whole", "--processes", str(world), "--set", "train.epochs=3", "--overwrite")
            expected[world] = self.result("whole")
        for kill in range(KILLS):
            world = 2 + kill % 2
            command = self.arguments(
                "noised", "run", "--processes", str(world), "--set", "train.epochs=3", "--set", "train.checkpoint_every.steps=2", "--resume-if-there"
            )
            process = self.start(command)
            self.wait_for(lambda: len(children_of(process.pid)) == world, process)
            time.sleep(draw.uniform(0, 3))
            victims = children_of(process.pid)
            if process.poll() is None and len(victims) == world:
                os.kill(draw.choice(victims), signal.SIGKILL)
                killed = time.monotonic()
                _, errors = process.communicate(timeout=90)
                self.assertLess(time.monotonic() - killed, 60)
                if process.returncode != 0:
                    self.assertIn("was ended by signal 9", errors, f"seed {SEED}")
            else:
                process.communicate(timeout=90)
            self.run_program(*command)
            self.assertEqual(self.result("run"), expected[world], f"kill {kill}, seed {SEED}")
            shutil.rmtree(self.folder / "runs" / "run")

    def test_a_process_that_hangs_is_named(self):
        process = self.start(self.arguments("noised", "run", "--processes", "2", "--set", "train.epochs=1000", "--set", "parallel.timeout=3"))
        log = self.folder / "runs" / "run" / "metrics.jsonl"
        self.wait_for(lambda: log.exists() and log.stat().st_size > 0, process)
        hanging = children_of(process.pid)[1]
        os.kill(hanging, signal.SIGSTOP)
        text = self.folder / "runs" / "run" / "log.txt"
        self.wait_for(lambda: "process 1 of 2 was killed or hangs" in text.read_text(), process)
        os.kill(hanging, signal.SIGKILL)
        self.assertNotEqual(process.wait(timeout=60), 0)

    def test_a_process_that_ends_by_an_error_is_named_with_it(self):
        def other_seed(rank):
            return ["--set", f"seed={rank}", "--set", f"run.dir=runs/run{rank}"]

        def other_splits(rank):
            return ["--set", "eval.splits=[val]"] if rank else []

        for each, expected in ((other_seed, "seed: 1 instead of 0"), (other_splits, "eval.splits: [val] instead of [val, test]")):
            first, second = self.start_ranks(2, self.arguments("noised", "run"), each=each)
            _, errors = first.communicate(timeout=60)
            _, other_errors = second.communicate(timeout=60)
            self.assertEqual((first.returncode, second.returncode), (1, 1), errors)
            self.assertIn("process 1 of 2:\n    " + expected, errors)
            self.assertEqual(other_errors, "")  # said once
        self.assertFalse((self.folder / "runs").exists())

    def test_a_process_that_ends_before_it_came_is_told_to_the_others(self):
        def no_such_key(rank):
            return ["--set", "train.epoch=1"] if rank else []

        start = time.monotonic()
        first, _ = self.start_ranks(2, self.arguments("noised", "run", "--set", "parallel.timeout=100"), each=no_such_key)
        _, errors = first.communicate(timeout=90)
        self.assertEqual(first.returncode, 1, errors)
        self.assertIn("process 1: ", errors)
        self.assertIn("train.epoch", errors)
        self.assertLess(time.monotonic() - start, 60)

    def test_a_loss_that_is_not_finite_is_told_once(self):
        for more in ([], ["--set", "model.sync_batch_norm=true"]):
            with self.subTest(more):
                failed = self.train("noised", "run", "--processes", "2", "--set", "optimizer.lr=1e30", "--set", "train.clip_norm=0", *more, expect=1)
                self.assertRegex(failed.stderr, r"process [01]: the loss is not finite at step \d+: \d+ of the batch's \d+ samples \(ids ")
                self.assertEqual(failed.stderr.count("not finite at step"), 1, failed.stderr)
                shutil.rmtree(self.folder / "runs")

    def test_what_keeps_processes_from_connecting_is_told(self):
        refused = self.train("noised", "run", "--processes", "2", "--set", "parallel.backend=nccl", expect=2)
        self.assertIn("parallel.backend: nccl is for GPUs; expected auto or gloo", refused.stderr)
        process = self.start(self.arguments("noised", "run", "--processes", "2"), {"GLOO_SOCKET_IFNAME": "nosuch"})
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn("nosuch", errors)

    def start_tasks_that_train(self, world, *more):
        started = self.start_tasks(world, self.arguments("noised", "run", "--set", "train.epochs=1000", *more))
        log = self.folder / "runs" / "run" / "metrics.jsonl"
        self.wait_for(lambda: log.exists() and log.stat().st_size > 0, started[0])
        return started

    def test_a_kill_is_told_by_all_others_alike(self):
        started = self.start_tasks_that_train(4)
        started[1].kill()
        killed = time.monotonic()
        for rank in (0, 2, 3):
            _, errors = started[rank].communicate(timeout=60)
            self.assertEqual(started[rank].returncode, 1, errors)
            self.assertIn("process 1 of 4 was killed or hangs", errors, rank)
        self.assertLess(time.monotonic() - killed, 20)

    def test_who_keeps_the_store_and_hangs_is_named(self):
        first, second = self.start_tasks_that_train(2, "--set", "parallel.timeout=3")
        os.kill(first.pid, signal.SIGSTOP)
        _, errors = second.communicate(timeout=60)
        os.kill(first.pid, signal.SIGKILL)
        self.assertEqual(second.returncode, 1, errors)
        self.assertIn("process 0 of 2, which keeps the store, does not answer", errors)

    def test_a_full_disk_keeps_the_last_checkpoint(self):
        self.train("noised", "whole", "--processes", "2")
        size = (self.folder / "runs" / "whole" / "checkpoints" / "last.safetensors").stat().st_size
        arguments = self.arguments("noised", "run", "--processes", "2", "--set", "train.checkpoint_every.steps=1")
        process = self.start(arguments)
        last = self.folder / "runs" / "run" / "checkpoints" / "last.safetensors"
        self.wait_for(last.exists, process)
        for child in children_of(process.pid):
            resource.prlimit(child, resource.RLIMIT_FSIZE, (size // 2, size // 2))
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn("last.safetensors", errors)
        self.assertNotIn("process 1: ", errors)  # said once
        self.run_program("--resume", "runs/run", "--device", "cpu", "--processes", "2")
        self.assertEqual(self.result("run"), self.result("whole"))

    def test_who_does_not_come_is_named(self):
        arguments = self.arguments("noised", "run", "--set", "parallel.timeout=2")
        (alone,) = self.start_ranks(2, arguments, ranks=[0])
        (nowhere,) = self.start_ranks(2, arguments, ranks=[1], host="host.invalid")
        self.assertIn("process 1 of 2 has not come within 2 s (parallel.timeout)", alone.communicate(timeout=60)[1])
        self.assertIn("cannot reach the store at host.invalid:", nowhere.communicate(timeout=60)[1])
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            variables = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            self.assertIn(f"cannot open the store at 127.0.0.1:{port}", self.start(arguments, variables).communicate(timeout=60)[1])

    def test_what_several_processes_cannot_do_is_refused(self):
        refused = self.run_program(*self.arguments("tiny", "run", "--set", "loss.name=role", "--set", "loss.lambda=1", "--processes", "2"), expect=2)
        self.assertIn("role keeps numbers of every training sample", refused.stderr)
        self.run_program(*self.arguments("tiny", "run", "--dry-run", "--processes", "2"), expect=2)


if __name__ == "__main__":
    main()
