"""data.sampler: which training images an epoch takes."""

import csv
import unittest

from program import ProgramTest, tensors_of

LONG_TAIL = ("--set", "data.imbalance=20", "--set", "data.label_noise.kind=none")


class Sampler(ProgramTest):
    def train(self, name, sampler, *arguments):
        return self.train_tiny(name, *LONG_TAIL, "--set", f"data.sampler={sampler}", *arguments).stderr

    def draws(self, name):
        with open(self.folder / "runs" / name / "class_counts.csv") as file:
            rows = list(csv.DictReader(file))
        return [[float(row[column]) for row in rows] for column in ("images", "draws_first_epoch", "draws_last_epoch")]

    def test_the_run_folder_and_the_log_say_what_is_drawn(self):
        for sampler in ("uniform", "class_balanced", "square_root", "progressive"):
            log = self.train(sampler, sampler)
            images, first, last = self.draws(sampler)
            for draws in (first, last):
                self.assertAlmostEqual(sum(draws), sum(images), places=2)
            self.assertEqual("[data] sampler " + sampler in log, sampler != "uniform")
            ratio = {"class_balanced": 1, "square_root": (max(images) / min(images)) ** 0.5}.get(sampler, max(images) / min(images))
            self.assertAlmostEqual(max(first) / min(first), ratio, places=3)
            if sampler == "progressive":
                self.assertLess(max(last) / min(last), ratio / 2)
            else:
                self.assertEqual(first, last)

    def test_epochs_have_their_length_and_workers_do_not_matter(self):
        self.train("a", "class_balanced")
        self.train("b", "class_balanced", "--set", "data.workers=3")
        self.train("uniform", "uniform")
        self.assertEqual(self.metrics("a"), self.metrics("b"))
        a, b = (tensors_of(self.folder / "runs" / name / "checkpoints/last.safetensors") for name in "ab")
        self.assertEqual(a, b)
        self.assertEqual([row["step"] for row in self.metrics("a")], [row["step"] for row in self.metrics("uniform")])
        self.assertNotEqual(self.metrics("a"), self.metrics("uniform"))

    def test_class_weights_beside_it_bring_a_warning(self):
        weights = ("--set", "loss.class_weights=inverse_frequency")
        self.assertRegex(self.train("both", "class_balanced", *weights), r"rare classes count twice over.*inverse_frequency.*class_balanced")
        self.assertNotIn("twice over", self.train("weights", "uniform", *weights))
        self.assertNotIn("twice over", self.train("sampler", "class_balanced"))

    def test_more_epochs_change_a_progressive_run(self):
        self.train("tiny", "progressive", "--set", "schedule.name=constant")
        before = self.draws("tiny")
        log = self.run_program("--resume", "runs/tiny", "--set", "train.epochs=3", "--device", "cpu").stderr
        self.assertRegex(log, "sampler progressive spans all epochs.*curve of 3, not of 2")
        self.assertLess(max(self.draws("tiny")[2]), max(before[2]))

    def test_a_dry_run_takes_any_sampler(self):
        self.assertIn("480 training", self.train_tiny("tiny", "--set", "data.sampler=progressive", "--dry-run").stdout)


if __name__ == "__main__":
    unittest.main()
