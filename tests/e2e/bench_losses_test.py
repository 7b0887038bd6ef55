"""`settrain bench losses`: that it measures what it says; not how fast."""

import json
import struct
import unittest

from program import ProgramTest

TINY = ("bench", "losses", "--device", "cpu", "--batch", "6", "--classes", "8", "--k", "3", "--draws", "2", "--rounds", "2", "--threads", "1")


class BenchLosses(ProgramTest):
    def measured(self, *more):
        return json.loads(self.run_program(*TINY, "--json", *more).stdout)

    def test_every_loss_with_a_gradient_is_measured(self):
        listed = {line.split()[0] for line in self.run_program("list", "losses").stdout.split("\n\n")[0].splitlines() if not line.startswith(" ")}
        measured = self.measured()
        fast = [row for row in measured["losses"] if row["method"] == "fast"]
        self.assertEqual(sorted(row["loss"] for row in fast), sorted(listed - {"topk_zero_one"}))
        self.assertEqual((measured["threads"], measured["rounds"]), (1, 2))
        for row in measured["losses"]:
            with self.subTest(loss=row["loss"], method=row["method"]):
                self.assertEqual(len(row["ms_of_rounds"]), 2)
                self.assertGreater(min(row["ms_of_rounds"]), 0)
                self.assertAlmostEqual(row["ms"], sum(row["ms_of_rounds"]) / 2)
                self.assertGreater(row["memory_over_scores"], 0.5)
        self.assertEqual((fast[0]["loss"], fast[0]["over_cross_entropy"]), ("cross_entropy", 1))
        by_scores = [(row["epsilon"], row["scores_sd"]) for row in measured["scores"] if (row["loss"], row["method"]) == ("noised_topk", "fast")]
        self.assertEqual(by_scores, [(epsilon, sd) for epsilon in (0.2, 1) for sd in (3, 1, 0.3)])

    def test_what_is_asked_for_is_measured(self):
        measured = self.measured("--losses", "focal", "--epsilon", "0.5", "--scores-sd", "2")
        self.assertEqual([row["loss"] for row in measured["losses"]], ["cross_entropy", "focal"])
        self.assertEqual({(row["epsilon"], row["scores_sd"]) for row in measured["losses"]}, {(0.5, 2)})
        self.assertEqual(set(measured), {"device", "threads", "rounds", "losses"})

    def test_growth_the_papers_algorithms_and_a_training_step(self):
        more = ("--losses", "noised_topk", "--growth", "--iclr2018", "--step", "resnet8")
        measured = self.measured(*more)
        self.assertEqual([row["k"] for row in measured["growth_in_k"] if row["loss"] == "noised_topk"], [1, 5])
        self.assertEqual([row["classes"] for row in measured["growth_in_classes"] if row["loss"] == "noised_topk"], [100, 1000, 10000])
        algorithms = {row["algorithm"] for row in measured["smoothed_algorithms"]}
        self.assertEqual(len(algorithms), 4)
        for row in measured["smoothed_algorithms"]:
            self.assertEqual("backward_ms" in row, row["algorithm"] != "summation")
        stable = {(row["algorithm"], row["dtype"]): row["stable"] for row in measured["smoothed_stability"]}
        self.assertTrue(all(stable["smoothed_topk_hinge", "float32"]))
        self.assertFalse(stable["summation", "float32"][-1])
        for row in measured["smoothed_stability"]:
            survived = [tau for tau, is_stable in zip(row["taus"], row["stable"]) if is_stable]
            self.assertLessEqual(row["smallest_tau"], min(survived) * 1.001)
            self.assertEqual((row["taus"][0], row["taus"][-1]), (10, 1e-36))
        step = measured["training_step"]
        self.assertEqual((step["model"], step["batch"], step["classes"]), ("resnet8", 128, 100))
        self.assertEqual([row["loss"] for row in step["losses"]], ["noised_topk"])
        self.assertLess(step["losses"][0]["share_of_step"], 1)

    def test_overflows_are_those_of_a_files_scores(self):
        def smallest(level, labels=6):
            scores = [[level * (image == j) for j in range(5)] for image in range(6)]
            values = struct.pack("<30f", *(score for row in scores for score in row)) + struct.pack(f"<{labels}q", *([1] * labels))
            entries = {"scores": ("F32", [6, 5], 0, 120), "labels": ("I64", [labels], 120, 120 + 8 * labels)}
            header = json.dumps({name: {"dtype": t, "shape": shape, "data_offsets": [a, b]} for name, (t, shape, a, b) in entries.items()}).encode()
            (self.folder / "scores.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + values)
            rows = self.measured("--losses", "focal", "--iclr2018", "--scores", "scores.safetensors")["smoothed_stability"]
            return {(row["algorithm"], row["dtype"]): row["smallest_tau"] for row in rows}

        # exp(level / (3 tau)) is above the largest float32, 3.4e38, or the largest float64, 1.8e308.
        of_100, of_1 = smallest(100), smallest(1)
        self.assertAlmostEqual(of_100["summation", "float32"], 1)
        self.assertAlmostEqual(of_100["summation", "float64"], 0.1)
        self.assertAlmostEqual(of_1["summation", "float32"], 0.01)
        self.assertAlmostEqual(of_1["summation", "float64"], 0.001)
        self.assertLess(of_1["smoothed_topk_hinge", "float32"], 1e-30)
        self.run_program(*TINY, "--scores", "scores.safetensors", expect=2)
        large_k = ("bench", "losses", "--device", "cpu", "--classes", "8", "--k", "4")
        error = self.run_program(*large_k, "--iclr2018", "--scores", "scores.safetensors", expect=2).stderr
        self.assertIn("5 classes", error)

    def test_tables_for_people(self):
        table = self.run_program(*TINY, "--losses", "noised_topk").stdout
        self.assertIn("batch 6 x 8 classes, K 3, 2 draws", table)
        self.assertRegex(table, r"\ncross_entropy +\d+\.\d+ +1\.00 ")
        self.assertRegex(table, r"\nnoised_topk, 1, N\(0, 0\.3\^2\) +\d+\.\d+ ")

    def test_what_does_not_suit_is_refused(self):
        for arguments, message in (
            (("--k", "8"), "--k 8: must be less than the number of classes, 8"),
            (("--losses", "topk_zero_one"), "topk_zero_one has no gradient"),
            (("--losses", "noised_topl"), "did you mean 'noised_topk'?"),
            (("--step", "resnet2"), "no model 'resnet2'"),
            (("--batch", "0"), "--batch: Value 0 not in range"),
            (("--epsilon", "-1"), "--epsilon: Value -1 not in range"),
            (("--device", "tpu"), "--device tpu"),
        ):
            with self.subTest(arguments=arguments):
                self.assertIn(message, self.run_program("bench", "losses", "--classes", "8", *arguments, expect=2).stderr)


if __name__ == "__main__":
    unittest.main()
