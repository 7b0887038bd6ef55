"""settrain report: one HTML file that holds everything it shows."""

import base64
import json
import pathlib
import re
import shutil
import tempfile

from program import TINY, ProgramTest, main, write_png


class Report(ProgramTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="settrain-e2e-")
        cls.addClassCleanup(folder.cleanup)
        cls.shared = pathlib.Path(folder.name)

    def setUp(self):
        self.folder = self.shared
        if not (self.folder / "sweep").exists():
            config = self.write("tiny.yaml", TINY)
            for loss, seeds in (("noised_topk", (3, 4)), ("cross_entropy", (3,))):
                for seed in seeds:
                    name = f"sweep/{loss}-{seed}"
                    self.run_program("--config", config, "--device", "cpu", "--set", f"run.dir={name}", "--set", f"seed={seed}", *([] if loss == "noised_topk" else ["--set", "loss.name=cross_entropy"]))

    def report(self, file, *arguments):
        """The data in the page that `settrain report` writes to `file`, and the page."""
        done = self.run_program("report", *arguments, "--device", "cpu")
        self.assertIn(f"'{file}': a report on", done.stdout)
        page = (self.folder / file).read_text()
        (data,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
        return json.loads(data), page

    def check_asks_for_nothing(self, page):
        self.assertNotRegex(page, r"""(?i)\b(src|href)\s*=\s*["']?\s*(https?:)?//""")
        self.assertNotRegex(page, r"""(?i)url\(\s*["']?\s*(https?:)?//""")
        self.assertNotRegex(page, r"<link|@import")

    def test_one_run(self):
        run = "sweep/noised_topk-3"
        data, page = self.report(f"{run}/report.html", run)
        self.check_asks_for_nothing(page)
        results = json.loads((self.folder / run / "results.json").read_text())
        (shown,) = data["shown"]
        answers = shown["answers"]
        self.assertEqual((answers["checkpoint"], answers["split"], answers["images"]), ("best-val-top1", "test", 120))
        # What is counted here is what the metrics said at the end of the run.
        expected = next(result for result in results if result["checkpoint"] == "best-val-top1")
        metrics = expected["metrics"]["test"]
        best, sets = (sum(row[i] for row in answers["classes"]) / 120 for i in (3, 4))
        self.assertAlmostEqual(best, metrics["top1"], places=12)
        self.assertEqual(answers["sets"], "avg2")
        self.assertAlmostEqual(sets, metrics["avg2"], places=12)
        self.assertAlmostEqual(answers["threshold"], metrics["avg2_lambda"], places=12)
        self.assertEqual(sum(row[1] for row in answers["classes"]), 480)
        self.assertEqual(answers["confusions"]["errors"], round(120 * (1 - metrics["top1"])))
        self.assertLessEqual(answers["superclasses"]["errors"], answers["confusions"]["errors"])
        sizes = expected["set_sizes"]["test"]
        self.assertEqual({sizes_of["metric"]: sizes_of["counts"] for sizes_of in shown["set_sizes"]}, {name: sizes[name] for name in ("avg1.5", "avg2")})
        for example in answers["examples"]["correct"] + answers["examples"]["missed"]:
            self.assertEqual(example["truth"] in [name for name, _ in example["set"]], example["hit"])
            kind, picture = example["picture"].split(",")
            self.assertEqual(kind, "data:image/png;base64")
            self.assertTrue(base64.b64decode(picture).startswith(b"\x89PNG"))
        self.assertTrue(answers["examples"]["correct"] and answers["examples"]["missed"])
        (entry,) = data["runs"]
        rows = [json.loads(line) for line in (self.folder / run / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual(entry["curves"]["values"]["train/loss"], [row["train/loss"] for row in rows])
        self.assertEqual(set(entry["curves"]["values"]), {"train/loss", "train/lr", "val/top1", "val/top2"})
        self.assertIn(["loss.num_draws", "3"], [changed[:2] for changed in entry["changed"]])
        self.assertEqual(entry["config"], (self.folder / run / "config.yaml").read_text())
        self.assertEqual(entry["provenance"], json.loads((self.folder / run / "provenance.json").read_text()))
        self.assertEqual(entry["calibrations"], [])
        # What `settrain calibrate` measured is shown. An older report is replaced.
        self.run_program("calibrate", run, "--checkpoint", "best-val-top1", "--rules", "top:2", "conformal:lac:0.2", "--device", "cpu")
        (entry,) = self.report(f"{run}/report.html", run, "--no-examples")[0]["runs"]
        (calibration,) = entry["calibrations"]
        self.assertEqual(calibration["checkpoint"], "best-val-top1")
        self.assertEqual([rule["rule"] for rule in calibration["rules"]], ["top:2", "conformal:lac:0.2"])
        self.assertEqual([len(rule["by_alpha"]) for rule in calibration["rules"]], [0, 8])
        self.assertEqual(len(calibration["rules"][1]["quality"]["class_coverage"]), len(calibration["train_counts"]))
        # A calibration of other weights than the checkpoint has by now is not shown as its own.
        file = next((self.folder / run).glob("calibration-best-val-top1.json"))
        file.write_text(json.dumps({**json.loads(file.read_text()), "checkpoint_sha256": "0" * 64}))
        data = self.report(f"{run}/report.html", run, "--no-examples")[0]
        self.assertEqual(data["runs"][0]["calibrations"], [])
        self.assertRegex(data["notes"][0], "calibration-best-val-top1.json' is not shown: the checkpoint has other weights")
        checkpoint = self.folder / run / "checkpoints" / "best-val-top1.safetensors"
        content = checkpoint.read_bytes()
        checkpoint.write_bytes(content[:20])
        data = self.report(f"{run}/report.html", run, "--no-examples")[0]
        self.assertEqual(data["runs"][0]["calibrations"], [])
        self.assertRegex(data["notes"][0], "calibration-best-val-top1.json' is not shown: .*best-val-top1.safetensors")
        checkpoint.unlink()  # to save room, say: no weights contradict the calibration
        self.assertEqual(len(self.report(f"{run}/report.html", run, "--no-examples")[0]["runs"][0]["calibrations"]), 1)
        checkpoint.write_bytes(content)

    def test_accuracy_by_organ(self):
        self.write("names.json", json.dumps({"7": "Acer rubrum", "9": "Tilia cordata"}))
        metadata, organs = {}, ("leaf", "leaf", "flower", None)
        for first, split in enumerate(("train", "val", "test")):
            for number, species in enumerate(("7", "9")):
                folder = self.folder / "plants" / "images" / split / species
                folder.mkdir(parents=True)
                for i, organ in enumerate(organs):
                    image = f"{split}{species}{i}"
                    write_png(folder / f"{image}.jpg", 20 + i, 24, 100 * number + 5 * i + first)
                    metadata[image] = {"species_id": species, "split": split, **({"organ": organ} if organ else {})}
        del metadata["test73"]
        (self.folder / "plants/plantnet300K_metadata.json").write_text(json.dumps(metadata))
        self.write(
            "plants.yaml",
            """
data: {name: plantnet300k, root: plants, names: ../names.json, input_size: 16, batch_size: 4, workers: 1, expected: {classes: any, genera: any, train: any, val: any, test: any}}
model: {name: resnet8, width: 4}
loss: {name: cross_entropy}
train: {epochs: 2}
select: [val/top1]
eval: {top_k: [1], average_k: [1.5]}
""",
        )
        self.run_program("--config", "plants.yaml", "--device", "cpu")
        answers = self.report("runs/plants/report.html", "runs/plants")[0]["shown"][0]["answers"]
        by_organ = answers["organs"]
        self.assertEqual(by_organ["without"], 2)
        self.assertEqual([row[:2] for row in by_organ["rows"]], [["leaf", 4], ["flower", 2]])
        right, covered, size = (sum(row[i] * (row[1] if i == 4 else 1) for row in by_organ["rows"]) for i in (2, 3, 4))
        self.assertLessEqual(right, sum(row[3] for row in answers["classes"]))
        self.assertLessEqual(covered, sum(row[4] for row in answers["classes"]))
        self.assertGreaterEqual(size, covered)
        (self.folder / "plants/plantnet300K_metadata.json").unlink()
        answers = self.report("runs/plants/report.html", "runs/plants")[0]["shown"][0]["answers"]
        self.assertNotIn("organs", answers)

    def test_a_sweep(self):
        data, page = self.report("report.html", "sweep")
        self.check_asks_for_nothing(page)
        self.assertEqual([(run["setting"], run["seed"]) for run in data["runs"]], [("A", 3), ("B", 3), ("B", 4)])
        self.assertIn(["loss.name", ["cross_entropy", "noised_topk"]], data["comparison"]["keys"])
        compared = json.loads(self.run_program("compare", "sweep", "--no-bootstrap", "--json").stdout)
        for shown, metric in zip(data["comparison"]["metrics"], compared["metrics"], strict=True):
            self.assertEqual(shown["metric"], metric["metric"])
            self.assertEqual([row["mean"] for row in shown["settings"]], [row["mean"] for row in metric["settings"]])
        self.assertEqual(len(data["shown"]), 2)
        self.assertIn("The best of setting B's 2 runs by val/top1", data["shown"][1]["why"])
        self.assertTrue(all("answers" in shown for shown in data["shown"]))

    def test_without_examples_nothing_is_evaluated(self):
        data, _ = self.report("none.html", "sweep", "--no-examples", "--out", "none.html")
        self.assertEqual([shown["missing"] for shown in data["shown"]], ["Left out by --no-examples."] * 2)

    def test_an_unfinished_run(self):
        shutil.copytree(self.folder / "sweep/noised_topk-3", self.folder / "killed", dirs_exist_ok=True)
        (self.folder / "killed/results.json").unlink()
        with open(self.folder / "killed/metrics.jsonl", "a") as log:
            log.write('{"step": 99, "ep')
        data, _ = self.report("killed/report.html", "killed")
        self.assertRegex(data["notes"][0], "'killed' has no results yet")
        self.assertEqual((data["comparison"], data["shown"]), (None, []))
        self.assertEqual(data["runs"][0]["curves"]["epoch"], [1, 2])
        self.assertTrue((self.folder / "killed/metrics.jsonl").read_text().endswith('"ep'))

    def test_what_is_damaged_is_reported_and_the_rest_is_shown(self):
        shutil.copytree(self.folder / "sweep/noised_topk-3", self.folder / "damaged", dirs_exist_ok=True)
        (self.folder / "damaged/results.json").write_text('[{"checkpoint": "best-')
        (self.folder / "damaged/metrics.jsonl").write_text("no JSON\n")
        data, _ = self.report("damaged.html", "damaged", "sweep/noised_topk-4", "--no-examples", "--out", "damaged.html")
        self.assertRegex(data["notes"][0], "'damaged/results.json' is damaged")
        self.assertRegex(data["notes"][1], "'damaged/metrics.jsonl', line 1")
        self.assertEqual([run["finished"] for run in data["runs"]], [False, True])
        self.assertEqual([len(run["curves"]["epoch"]) for run in data["runs"]], [0, 2])
        self.assertIn("seed: 3", data["runs"][0]["config"])

    def test_a_run_without_its_weights_or_data(self):
        shutil.copytree(self.folder / "sweep/noised_topk-3", self.folder / "bare", dirs_exist_ok=True)
        shutil.rmtree(self.folder / "bare/checkpoints")
        (self.folder / "bare/checkpoints").mkdir()
        data, _ = self.report("bare/report.html", "bare")
        self.assertIn("best-val-top1", data["shown"][0]["missing"])
        self.assertTrue(data["shown"][0]["set_sizes"])
        config = (self.folder / "bare/config.yaml").read_text()
        (self.folder / "bare/config.yaml").write_text(re.sub(r"train_size: 480", "train_size: 470", config))
        shutil.copytree(self.folder / "sweep/noised_topk-3/checkpoints", self.folder / "bare/checkpoints", dirs_exist_ok=True)
        self.assertTrue(self.report("bare/report.html", "bare")[0]["shown"][0]["missing"])

    def test_hostile_names(self):
        path = self.write("hostile.yaml", TINY)
        folder = "runs/<b>&'\"</script>"
        self.run_program("--config", path, "--device", "cpu", "--set", "train.epochs=1", "--set", f"run.dir={json.dumps(folder)}")
        data, page = self.report(f"{folder}/report.html", folder)
        self.assertEqual(data["runs"][0]["folder"], folder)
        self.assertEqual(page.count("<script"), self.report("plain.html", "sweep/noised_topk-3", "--out", "plain.html")[1].count("<script"))
        self.assertNotIn("<b>&'", page)

    def test_what_is_wrong_is_said(self):
        self.assertIn("'nowhere'", self.run_program("report", "nowhere", expect=1).stderr)
        self.write("mine.html", "<p>mine</p>")
        self.assertIn("no report of settrain", self.run_program("report", "sweep", "--no-examples", "--out", "mine.html", expect=1).stderr)
        self.assertEqual((self.folder / "mine.html").read_text(), "<p>mine</p>")
        self.assertIn("missing/report.html", self.run_program("report", "sweep", "--no-examples", "--out", "missing/report.html", expect=1).stderr)
        self.run_program("report", expect=2)

    def test_overwriting_a_run_removes_its_report(self):
        config = self.write("again.yaml", TINY)
        command = ("--config", config, "--device", "cpu", "--set", "train.epochs=1", "--set", "run.dir=again")
        self.run_program(*command)
        self.report("again/report.html", "again", "--no-examples")
        self.run_program(*command, "--overwrite")
        self.assertFalse((self.folder / "again/report.html").exists())


if __name__ == "__main__":
    main()
