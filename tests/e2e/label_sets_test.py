"""Images with several labels, judged by all of them: as metrics of a run, in selection, eval, compare and report."""

import json
import re

from program import ProgramTest, main, write_png

SETS = """
seed: 3
data: {name: synthetic, num_classes: 6, group_size: 3, train_size: 480, val_size: 120, test_size: 120, image_size: 12, batch_size: 32, workers: 1, labels_per_image: 3}
model: {name: resnet8, width: 4}
loss: {name: bce_multilabel}
optimizer: {lr: 0.05}
train: {epochs: 3}
select: [val/avg2_f1, val/top2_recall, val/sparse_top_weight]
eval: {top_k: [1, 2], average_k: [1.5, 2], average_k_score: sigmoid, label_sets: true}
"""
NAMES = {"top1_recall", "top2_recall", "sparse_top_weight", "sparse_top_f1", "sparse_top_size"}
NAMES |= {f"avg{k}_{what}" for k in ("1.5", "2") for what in ("recall", "f1", "micro_f1", "macro_f1")}


class LabelSets(ProgramTest):
    def train(self, *more, expect=0):
        return self.run_program("--config", self.write("sets.yaml", SETS), "--device", "cpu", *more, expect=expect)

    def results(self, run="sets"):
        return {one["checkpoint"]: one["metrics"] for one in json.loads((self.folder / "runs" / run / "results.json").read_text())}

    def judged(self, checkpoint, run="runs/sets", thresholds=()):
        """The test split's accuracies by its file of scores. `thresholds`: the split that sets them, where it is another."""
        for split in ("test", *thresholds):
            self.run_program("scores", run, "--checkpoint", checkpoint, "--split", split, "--out", f"{split}.safetensors", "--overwrite", "--set", "run.inference=exact", "--device", "cpu")
        others = [text for split in thresholds for text in ("--threshold-scores", f"{split}.safetensors")]
        done = self.run_program("scores", "--all-labels", "test.safetensors", *others, "--top-k", "1", "2", "--average-k", "1.5", "2", "--json")
        return json.loads(done.stdout)

    def test_they_are_metrics_like_the_others(self):
        for loss in ("bce_multilabel", "sparse_top"):
            with self.subTest(loss=loss):
                printed = self.train("--set", f"loss.name={loss}", "--overwrite").stdout
                self.assertRegex(printed, r"avg2_f1 +\d+\.\d\d \(size \d\.\d\d\)")
                rows = self.metrics("sets")
                self.assertLessEqual({f"val/{name}" for name in NAMES}, set(rows[0]))
                results = self.results()
                for metric in ("avg2_f1", "top2_recall", "sparse_top_weight"):
                    best = results[f"best-val-{metric}"]["val"][metric]
                    self.assertAlmostEqual(best, max(row[f"val/{metric}"] for row in rows), places=6)
                test = results["best-val-avg2_f1"]["test"]
                for name, value in self.judged("best-val-avg2_f1", thresholds=["val"]).items():
                    self.assertAlmostEqual(value, test[name], places=12, msg=name)
                # Most images have more labels than the first one.
                self.assertNotEqual(test["top1_recall"], test["top1"])
                self.assertEqual(self.run_program("eval", "runs/sets", "--device", "cpu").stdout, printed)

    def test_other_metrics_stay_and_a_trained_run_can_be_judged_later(self):
        self.train()
        by_all, rows = self.results(), self.metrics("sets")
        self.train("--set", "eval.label_sets=false", "--set", "select=[val/avg2]", "--overwrite")
        for row, plain in zip(rows, self.metrics("sets"), strict=True):
            self.assertEqual({name: row[name] for name in plain}, plain)
            self.assertEqual({name.removeprefix("val/") for name in row.keys() - plain.keys()}, NAMES)
        later = self.run_program("eval", "runs/sets", "--checkpoint", "last", "--set", "eval.label_sets=true", "--json", "--device", "cpu")
        self.assertEqual({name: json.loads(later.stdout)[0]["metrics"]["val"][name] for name in NAMES}, {name: rows[-1][f"val/{name}"] for name in NAMES})
        self.assertLessEqual(NAMES, set(by_all["best-val-avg2_f1"]["test"]))

    def test_several_processes_have_the_numbers_of_one(self):
        settings = ("--set", "train.accumulate=2", "--set", "run.threads=1")
        self.train(*settings)
        expected = self.results(), self.metrics("sets")
        self.train("--set", "train.accumulate=1", "--set", "run.threads=1", "--processes", "2", "--overwrite")
        self.assertEqual((self.results(), self.metrics("sets")), expected)

    def test_compare_report_and_dry_run_know_them(self):
        self.train("--set", "run.dir=runs/first", "--set", "name=first", "--set", "seed=3")
        self.train("--set", "run.dir=runs/second", "--set", "name=second", "--set", "loss.name=sparse_top")
        compared = json.loads(
            self.run_program("compare", "runs/first", "runs/second", "--metric", "test/avg2_f1", "--metric", "test/top2_recall", "--resamples", "20", "--json", "--device", "cpu").stdout
        )
        f1, recall = compared["metrics"]
        self.assertIn("size", f1["settings"][0])
        self.assertNotIn("size", recall["settings"][0])
        (bootstrap,) = f1["differences"][0]["bootstrap"]
        results = [self.results(run)["best-val-avg2_f1"]["test"]["avg2_f1"] for run in ("first", "second")]
        self.assertAlmostEqual(bootstrap["difference"], results[1] - results[0], places=12)
        self.assertLess(bootstrap["low"], bootstrap["high"])
        self.run_program("report", "runs/first", "--device", "cpu")
        (data,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', (self.folder / "runs/first/report.html").read_text(), re.DOTALL)
        report = json.loads(data)
        self.assertEqual(report["comparison"]["metrics"][0]["metric"], "test/avg2_f1")
        self.assertEqual(report["shown"][0]["answers"]["sets"], "avg2")
        self.assertIn("time", self.train("--dry-run").stdout)

    def test_they_are_refused_where_an_image_has_one_label(self):
        one = ("--set", "data.labels_per_image=1")
        error = self.train(*one, expect=2).stderr
        self.assertRegex(error, r"sets\.yaml:\d+:\d+: eval\.label_sets: synthetic has one label an image")
        self.assertFalse((self.folder / "runs").exists())
        self.train(*one, "--set", "eval.label_sets=false", "--set", "select=[val/top2]")
        error = self.run_program("eval", "runs/sets", "--set", "eval.label_sets=true", "--device", "cpu", expect=2).stderr
        self.assertIn("eval.label_sets", error)
        error = self.train("--set", "eval.label_sets=false", expect=2).stderr
        self.assertRegex(error, r"select: 'val/avg2_f1' is no accuracy that this run measures[\s\S]*eval\.label_sets")

    def test_lists_of_files_where_one_cannot_be_read(self):
        for level in range(14):
            write_png(self.folder / f"{level}.png", 14, 12, 18 * level)
        (self.folder / "9.png").write_text("This is no image.\n")
        self.write("train.txt", "".join(f"{i}.png {i % 3}{',3' if i % 2 else ''}\n" for i in range(8)))
        self.write("val.txt", "12.png 0\n13.png 1\n")
        self.write("test.txt", "8.png 2,0\n9.png 1,2,3\n10.png 1\n11.png 2,3\n")
        self.write(
            "lists.yaml",
            """
data: {name: file_list, root: ., train: train.txt, val: val.txt, test: test.txt, num_classes: 4, input_size: 12, batch_size: 4, on_bad_image: skip}
model: {name: resnet8, width: 4}
loss: {name: sparse_top}
train: {epochs: 2}
select: [val/top1_recall]
eval: {top_k: [1, 2], average_k: [1.5, 2], threshold_from: same, label_sets: true}
""",
        )
        self.run_program("--config", "lists.yaml", "--device", "cpu")
        metrics = self.results("lists")["best-val-top1_recall"]
        # In validation every image has one label: a set of one.
        self.assertEqual(metrics["val"]["top1_recall"], metrics["val"]["top1"])
        for name, value in self.judged("best-val-top1_recall", "runs/lists").items():
            self.assertAlmostEqual(value, metrics["test"][name], places=12, msg=name)


if __name__ == "__main__":
    main()
