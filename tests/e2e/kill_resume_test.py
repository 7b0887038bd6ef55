"""Runs killed at random moments and resumed end with the bits of runs that were left alone.

SETTRAIN_KILLS is the number of kills (10 where it is not set), SETTRAIN_KILL_SEED the seed of their moments:

    SETTRAIN_KILLS=100 scripts/test -R e2e/kill_resume
"""

import os
import random
import shutil
import signal
import subprocess
import time
import unittest

from program import TINY, ProgramTest, tensors_of

KILLS = int(os.environ.get("SETTRAIN_KILLS", "10"))
SEED = int(os.environ.get("SETTRAIN_KILL_SEED", time.time_ns() % 1_000_000))

# Every part of a run's state in one run or another.
RUNS = {
    "noised_cosine": """
extends: tiny.yaml
run: {threads: 2}
data: {augmentation: {pad: 2, flip: true}, calibration_share: 0.4}
train: {epochs: 4, checkpoint_every: {steps: 4}, top_k: [2], gradient_nonzeros: true}
select: [val/top1, "val/size@conformal:aps(randomised=true):0.2"]
eval: {rules: ["conformal:aps(randomised=true):0.2"]}
""",
    "imbalanced_accumulated": """
extends: tiny.yaml
data: {imbalance: 10, sampler: progressive}
model: {head: normalised}
loss: {name: noised_topk_imbalanced, k: 2, epsilon: 0.05, max_margin: 0.2, scale: 20}
schedule: {name: multistep, milestones: [2, 3]}
train: {epochs: 4, accumulate: 3, clip_norm: 1.0, ema_decay: 0.9, precision: bf16, checkpoint_every: {steps: 2}}
""",
    "plain": """
extends: tiny.yaml
data: {drop_last: true, batch_size: 50, workers: 2, sampler: square_root}
loss: {name: cross_entropy, class_weights: effective_number, class_weights_from_epoch: 2}
optimizer: {nesterov: false}
schedule: {name: constant}
train: {epochs: 4, checkpoint_every: {steps: 1}, mix: either}
eval: {every: 2}
""",
    "label_sets": """
extends: tiny.yaml
data: {labels_per_image: 3, label_noise: {kind: none}}
loss: {name: sparse_top}
optimizer: {name: adamw, lr: 0.005, no_decay: [bias, norm], head_lr_factor: 2.0}
train: {epochs: 4, checkpoint_every: {steps: 3}}
select: [val/top1, val/avg2_f1]
eval: {label_sets: true}
""",
    "estimated_labels": """
extends: tiny.yaml
loss: {name: role, k: 2, lambda: 1.0, theta_lr: 100}
train: {epochs: 4, accumulate: 2, checkpoint_every: {steps: 2}}
""",
    "estimated_labels_by_adam": """
extends: tiny.yaml
loss: {name: role, k: 2, scale: 10, theta_optimizer: {name: adam, lr: 0.1}}
train: {epochs: 4, accumulate: 2, checkpoint_every: {steps: 2}}
""",
    "annealed": """
extends: tiny.yaml
loss: {name: smoothed_topk_hinge, k: 2, tau: {from: 4.0, to: 0.25, curve: exponential}, alpha: {from: 0.5, to: 1.0}}
train: {epochs: 4, checkpoint_every: {steps: 2}}
""",
    "second_stage": """
extends: tiny.yaml
data: {imbalance: 10, sampler: class_balanced}
model: {head: scaled, pretrained: runs/plain/checkpoints/last.safetensors, trainable: [head]}
loss: {name: cross_entropy}
train: {epochs: 4, checkpoint_every: {steps: 2}}
""",
    "fine_tuned": """
extends: tiny.yaml
model: {pretrained: runs/plain/checkpoints/last.safetensors, trainable: [head, norm, layer3], stochastic_depth: 0.3}
loss: {name: cross_entropy}
optimizer: {layer_decay: 0.7, no_decay: [one_dimensional, token], head_lr_factor: 2.0}
train: {epochs: 4, ema_decay: 0.9, ema_warmup: false, checkpoint_every: {steps: 2}}
""",
}


class KillAndResume(ProgramTest):
    def start_arguments(self, name, folder):
        return ["--config", f"{name}.yaml", "--device", "cpu", "--set", f"run.dir=runs/{folder}"]

    def result(self, folder):
        """All that must be the same, whatever happened on the way."""
        path = self.folder / "runs" / folder
        checkpoints = {file.name: tensors_of(file) for file in sorted((path / "checkpoints").iterdir())}
        events = (path / "events.out.tfevents.settrain").stat().st_size  # records have one size each: no point is there twice
        texts = [(path / name).read_text() for name in ("config.yaml", "results.json", "results.txt")]
        texts[0] = texts[0].replace(f"runs/{folder}", "RUN")
        return checkpoints, self.metrics(folder), events, texts, len((path / "metrics.csv").read_text().splitlines())

    def go_on(self, name, folder):
        """What a user would type: --resume where the run was recorded, else the first command again."""
        if (self.folder / "runs" / folder / "config.yaml").exists():
            return ["--resume", f"runs/{folder}", "--device", "cpu"]
        return self.start_arguments(name, folder)

    def stop_after(self, seconds, number, arguments):
        """Sends the signal. Whether the run was still at work then."""
        process = self.start_program(*arguments)
        try:
            process.communicate(timeout=seconds)
            return False
        except subprocess.TimeoutExpired:
            process.send_signal(number)
            _, error = process.communicate(timeout=60)
            # Before the run has begun, SIGTERM is left to the system; once its last score is there, it comes too late.
            self.assertIn(process.returncode, (-number, 128 + number, 0), error)
            return process.returncode != 0

    def test_killed_runs_end_as_if_they_had_not_been(self):
        print(f"{KILLS} kills, SETTRAIN_KILL_SEED={SEED}", flush=True)
        moments = random.Random(SEED)
        self.write("tiny.yaml", TINY)
        for name, config in RUNS.items():
            self.write(f"{name}.yaml", config)
        expected, seconds = {}, {}
        for name in RUNS:
            start = time.monotonic()
            self.run_program(*self.start_arguments(name, name))
            seconds[name] = time.monotonic() - start
            expected[name] = self.result(name)

        kills = 0
        while kills < KILLS:
            name = list(RUNS)[kills % len(RUNS)]
            shutil.rmtree(self.folder / "runs/killed", ignore_errors=True)
            for number in moments.choice([[signal.SIGKILL], [signal.SIGKILL, signal.SIGKILL], [signal.SIGKILL, signal.SIGTERM]]):
                moment = moments.uniform(0, seconds[name])
                was_at_work = self.stop_after(moment, number, self.go_on(name, "killed"))
                kills += was_at_work and number == signal.SIGKILL
            self.run_program(*self.go_on(name, "killed"))
            with self.subTest(run=name, kill=kills, last_moment=moment):
                self.assertEqual(self.result("killed"), expected[name])
                self.assertFalse(list((self.folder / "runs/killed").rglob("*.tmp-*")))


if __name__ == "__main__":
    unittest.main()
