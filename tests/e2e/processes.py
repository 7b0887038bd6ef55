"""Trainings in several processes, for tests of what they come to and of what happens where one is lost."""

import pathlib
import socket
import subprocess
import time

from program import PROGRAM, TINY, ProgramTest, environment, tensors_of

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
