"""AdamW from a config: it learns, goes on within an epoch, is counted by the dry run, and is not mistaken for SGD."""

import pathlib
import re
import time
import unittest

from program import TINY, ProgramTest, tensors_of

CONFIG = pathlib.Path(__file__).resolve().parents[2] / "configs/fashion_mnist_adamw.yaml"
ADAMW = ("--set", "optimizer.name=adamw", "--set", "optimizer.lr=0.005")


class Optimizers(ProgramTest):
    def test_the_shipped_config_learns(self):
        small = ("data.name=synthetic", "data.label_noise.kind=none", "data.train_size=2000", "data.val_size=200", "data.test_size=200",
                 "data.image_size=12", "data.workers=1", "model.width=4")  # fmt: skip
        self.run_program("--config", CONFIG, "--device", "cpu", "--set", "run.dir=runs/adamw", *(part for key in small for part in ("--set", key)))
        losses = [row["train/loss"] for row in self.metrics("adamw")]
        self.assertLess(losses[2], 0.8 * losses[0])

    def test_a_run_goes_on_within_an_epoch_with_the_same_bits(self):
        settings = (*ADAMW, "--set", "optimizer.no_decay=[bias, norm]", "--set", "optimizer.head_lr_factor=3", "--set", "data.train_size=4000",
                    "--set", "train.checkpoint_every.steps=1")  # fmt: skip
        self.train_tiny("whole", *settings)
        self.write("cut.yaml", TINY)
        process = self.start_program("--config", "cut.yaml", "--device", "cpu", *settings)
        last = self.folder / "runs/cut/checkpoints/last.safetensors"
        integer = lambda name: int.from_bytes(tensors_of(last)[name][2], "little")
        while process.poll() is None and not (last.exists() and integer("state.batch")):
            time.sleep(0.02)
        process.kill()
        process.communicate()
        self.assertGreater(integer("state.batch"), 0)
        self.assertEqual(integer("optimizer.steps"), integer("state.step"))
        self.run_program("--resume", "runs/cut", "--device", "cpu")
        self.assertEqual(tensors_of(last), tensors_of(self.folder / "runs/whole/checkpoints/last.safetensors"))
        self.assertEqual(self.metrics("cut"), self.metrics("whole"))

    def test_the_state_of_another_optimizer_does_not_fit(self):
        self.train_tiny()
        names = set(tensors_of(self.folder / "runs/tiny/checkpoints/last.safetensors"))
        self.assertIn("optimizer.momentum.fc.weight", names)
        change = ("--resume", "runs/tiny", "--device", "cpu", "--set", "train.epochs=3", "--set", "optimizer.name=adamw")
        keys = ("name", "lr", "weight_decay", "momentum", "nesterov")
        error = self.run_program(*change, *(part for key in keys for part in ("--allow", f"optimizer.{key}")), expect=2).stderr
        self.assertIn("optimizer.name: sgd there, adamw now (cannot change within a run)", error)

    def test_the_head_has_a_rate_of_its_own(self):
        for name in ("sgd", "adamw"):
            self.train_tiny(name, "--set", f"optimizer.name={name}", "--set", "optimizer.head_lr_factor=0", "--set", "train.epochs=1")
            self.train_tiny(f"{name}-first", "--set", f"optimizer.name={name}", "--set", "train.epochs=0")
            before, after = (tensors_of(self.folder / f"runs/{run}/checkpoints/last.safetensors") for run in (f"{name}-first", name))
            same = {tensor for tensor in before if tensor.startswith("model.") and before[tensor] == after[tensor]}
            self.assertEqual(same, {"model.fc.weight", "model.fc.bias"})

    def test_the_dry_run_counts_both_averages(self):
        def disk_mib(*settings):
            out = self.train_tiny("wide", "--dry-run", "--set", "model.width=64", *settings).stdout
            return float(re.search(r"disk +([0-9.]+) MiB", out).group(1)), int(re.search(r"parameters +([0-9,]+)", out).group(1).replace(",", ""))

        (sgd, parameters), (adamw, _) = disk_mib(), disk_mib(*ADAMW)
        # One number more of each parameter, in four checkpoints.
        self.assertAlmostEqual(adamw - sgd, 4 * 4 * parameters / 2**20, delta=0.2)


if __name__ == "__main__":
    unittest.main()
