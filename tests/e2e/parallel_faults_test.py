"""Training in several processes: what happens where one is lost, hangs or fails.

SETTRAIN_KILLS is the number of kills (4 where it is not set), SETTRAIN_KILL_SEED the seed of their moments:

    SETTRAIN_KILLS=40 scripts/test -R e2e/parallel_faults
"""

import os
import random
import resource
import shutil
import signal
import socket
import time

from processes import Parallel, children_of
from program import main

KILLS = int(os.environ.get("SETTRAIN_KILLS", "4"))
SEED = int(os.environ.get("SETTRAIN_KILL_SEED", time.time_ns() % 1_000_000))


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

    def test_a_process_that_ends_before_it_came_is_reported_to_the_others(self):
        def no_such_key(rank):
            return ["--set", "train.epoch=1"] if rank else []

        start = time.monotonic()
        first, _ = self.start_ranks(2, self.arguments("noised", "run", "--set", "parallel.timeout=100"), each=no_such_key)
        _, errors = first.communicate(timeout=90)
        self.assertEqual(first.returncode, 1, errors)
        self.assertIn("process 1: ", errors)
        self.assertIn("train.epoch", errors)
        self.assertLess(time.monotonic() - start, 60)

    def test_a_loss_that_is_not_finite_is_reported_once(self):
        for more in ([], ["--set", "model.sync_batch_norm=true"]):
            with self.subTest(more):
                failed = self.train("noised", "run", "--processes", "2", "--set", "optimizer.lr=1e30", "--set", "train.clip_norm=0", *more, expect=1)
                self.assertRegex(failed.stderr, r"process [01]: the loss is not finite at step \d+: \d+ of the batch's \d+ samples \(ids ")
                self.assertEqual(failed.stderr.count("not finite at step"), 1, failed.stderr)
                shutil.rmtree(self.folder / "runs")

    def test_what_keeps_processes_from_connecting_is_reported(self):
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

    def test_a_kill_is_reported_by_all_others_alike(self):
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
