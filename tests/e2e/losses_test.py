"""Every loss from its config, data with label sets, and what a loss refuses."""

import json
import pathlib
import re
import unittest

from program import ProgramTest, tensors_of, write_png

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs/losses"
SMALL = [
    "--set=data.name=synthetic", "--set=data.label_noise.kind=none", "--set=data.num_classes=6", "--set=data.train_size=192",
    "--set=data.val_size=60", "--set=data.test_size=60", "--set=data.image_size=12", "--set=data.workers=1", "--set=model.width=4", "--set=train.epochs=2",
]  # fmt: skip


class Losses(ProgramTest):
    def train_loss(self, name, *more, expect=0):
        return self.run_program("--config", CONFIGS / f"{name}.yaml", "--device", "cpu", *SMALL, "--set", f"run.dir=runs/{name}", *more, expect=expect)

    def test_every_loss_has_a_config_that_trains(self):
        listed = {line.split()[0] for line in self.run_program("list", "losses").stdout.split("\n\n")[0].splitlines() if not line.startswith(" ")}
        configs = {file.stem for file in CONFIGS.glob("*.yaml")} - {"base"}
        self.assertEqual(configs, listed)
        for name in sorted(configs):
            with self.subTest(loss=name):
                done = self.train_loss(name)
                losses = [row["train/loss"] for row in self.metrics(name)]
                self.assertTrue(all(abs(loss) < 1e3 for loss in losses), losses)
                self.assertEqual("nothing will be learnt" in done.stderr, name == "topk_zero_one")

    def test_label_sets_change_what_is_learnt(self):
        for name in ("sparse_top", "bce_multilabel"):
            with self.subTest(loss=name):
                self.train_loss(name)
                single = self.metrics(name)
                self.train_loss(name, "--overwrite", "--set=data.labels_per_image=3")
                self.assertNotEqual(self.metrics(name)[0]["train/loss"], single[0]["train/loss"])

    def test_a_loss_of_one_label_refuses_label_sets_and_names_those_that_take_them(self):
        error = self.train_loss("focal", "--set=data.labels_per_image=3", expect=2).stderr
        self.assertRegex(error, r"focal\.yaml:\d+:\d+: loss\.name: .*focal.*choose sparse_top or bce_multilabel")
        error = self.train_loss("sparse_top", "--set=data.labels_per_image=3", "--set=data.label_noise.kind=uniform", expect=2).stderr
        self.assertIn("data.label_noise.kind", error)
        error = self.train_loss("role", "--set=loss.class_weights=inverse_frequency", expect=2).stderr
        self.assertRegex(error, r"loss\.class_weights: the loss role couples the samples")
        error = self.train_loss("ldam", "--set=loss.class_weights_from_epoch=2", expect=2).stderr
        self.assertRegex(error, r"loss\.class_weights_from_epoch: must be less than train\.epochs, 2")

    def test_mixed_images_are_refused_by_name_for_losses_without_probabilities(self):
        error = self.train_loss("noised_topk", "--set=train.mix=mixup", expect=2).stderr
        self.assertRegex(error, r"train\.mix: .*the loss noised_topk .*one of the losses cross_entropy, focal, ldam, logit_adjusted, balanced_softmax")

    def test_lists_of_files_with_several_labels(self):
        for level in range(8):
            write_png(self.folder / f"{level}.png", 14, 12, 25 * level)
        self.write("train.txt", "".join(f"{i}.png {i % 3}{',3' if i % 2 else ''}\n" for i in range(2, 8)))
        self.write("val.txt", "0.png 0\n1.png 1\n")
        self.write(
            "lists.yaml",
            """
data: {name: file_list, root: ., train: train.txt, val: val.txt, test: val.txt, num_classes: 4, input_size: 12, batch_size: 4}
model: {name: resnet8, width: 4}
loss: {name: sparse_top}
train: {epochs: 2}
select: [val/top1]
eval: {top_k: [1], average_k: []}
""",
        )
        self.run_program("--config", "lists.yaml", "--device", "cpu")
        self.assertEqual(json.loads((self.folder / "runs/lists/results.json").read_text())[0]["checkpoint"], "best-val-top1")
        self.write("train.txt", "2.png 0\n3.png 7\n")
        error = self.run_program("--config", "lists.yaml", "--device", "cpu", "--overwrite", expect=1).stderr
        self.assertRegex(error, r"train\.txt:2: expected labels from 0 to 3")

    def test_a_number_of_the_loss_changes_by_epoch(self):
        tau = "--set=loss.tau={from: 4.0, to: 0.25, curve: exponential}"
        dry = self.train_loss("smoothed_topk_hinge", "--dry-run", tau, "--set=train.epochs=3")
        shown = self.run_program("config", "show", "--config", CONFIGS / "smoothed_topk_hinge.yaml", tau).stdout
        self.assertRegex(shown, r"tau:\n +from: 4\.0 .*\n +to: 0\.25 .*\n +curve: exponential")
        self.assertRegex(dry.stdout + dry.stderr, r"loss\.tau goes from 4 in epoch 1 over 1 in epoch 2 to 0\.25 in epoch 3, exponential")
        self.train_loss("smoothed_topk_hinge", tau, "--set=train.epochs=3")
        rows = self.metrics("smoothed_topk_hinge")
        self.assertEqual([row["train/loss.tau"] for row in rows], [4.0, 1.0, 0.25])
        error = self.train_loss("smoothed_topk_hinge", "--overwrite", "--set=loss.tau={from: 4.0, to: 0}", expect=2).stderr
        self.assertIn("loss.tau.to", error)
        resumed = self.run_program("--resume", "runs/smoothed_topk_hinge", "--device", "cpu", "--set=train.epochs=5")
        self.assertIn("loss.tau spans all epochs", resumed.stderr)
        self.assertEqual(self.metrics("smoothed_topk_hinge")[4]["train/loss.tau"], 0.25)

    def test_the_estimates_of_role_are_in_the_checkpoint_and_counted_by_the_dry_run(self):
        self.train_loss("role")
        tensors = tensors_of(self.folder / "runs/role/checkpoints/last.safetensors")
        self.assertEqual(tensors["loss.theta"][:2], ("F32", [192, 6]))

        def disk_mib(name):
            out = self.train_loss(name, "--dry-run", "--set=data.train_size=40000").stdout
            size, unit = re.search(r"disk +([0-9.]+) ([KM])iB", out).groups()
            return float(size) / (1024 if unit == "K" else 1)

        # 40,000 rows of 6 numbers, in three checkpoints.
        self.assertAlmostEqual(disk_mib("role") - disk_mib("bce_positive"), 3 * 4 * 6 * 40000 / 2**20, delta=0.2)


if __name__ == "__main__":
    unittest.main()
