"""settrain table: trained, stopped, resumed and collected tables; the shipped ones' files; measured ones; errors."""

import csv
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import unittest

from program import PROGRAM, TINY, ProgramTest, environment

SHIPPED = pathlib.Path(os.environ["SETTRAIN_SOURCE_DIR"]) / "configs/tables"

TABLE = """
paper: A paper
title: Noise and losses
base: tiny.yaml
set: {data.label_noise.kind: superclass}
seeds: [1, 2, 3]
against: CE
rows:
  name: p
  each:
    - {label: "0.0", set: {data.label_noise.rate: 0.0}}
    - {label: "0.9", set: {data.label_noise.rate: 0.9}}
columns:
  name: Loss
  each:
    - {label: CE, set: {loss.name: cross_entropy}}
    - {label: Noised, set: {loss.name: noised_topk, loss.k: 2}}
parts:
  - number: "1"
    title: Top-2
    metric: test/top2
    select: val/top2
    printed: {"0.0": ["99.99", "0.01"], "0.9": ["-", "50±1"]}
  - {number: "2", title: Average-2, metric: test/avg2, select: val/top1}
presets:
  smoke: {set: {train.epochs: 1}, seeds: [4], rows: ["0.9"]}
"""


class Table(ProgramTest):
    def setUp(self):
        super().setUp()
        # The keys of one loss cannot stand below another one.
        self.write("tiny.yaml", re.sub(r"loss: .*\n", "", TINY))
        self.write("mine.yaml", TABLE)

    def table(self, *arguments, expect=0):
        return self.run_program("table", "mine.yaml", "--device", "cpu", "--threads", "1", *arguments, expect=expect)

    def cells(self, folder):
        return list(csv.DictReader((self.folder / folder / "table.csv").read_text().splitlines()))

    def folder_name(self, preset=""):
        return f"tables/mine{preset}"

    def test_a_table_has_every_cell_from_the_runs_own_results(self):
        printed = self.table().stdout
        folder = self.folder / self.folder_name()
        self.assertEqual(printed, (folder / "table.md").read_text())
        cells = self.cells(folder)
        self.assertEqual([(cell["part"], cell["row"], cell["column"]) for cell in cells], [("1", "0.0", "CE"), ("1", "0.0", "Noised"), ("1", "0.9", "Noised"), ("2", "0.0", "CE"), ("2", "0.0", "Noised"), ("2", "0.9", "CE"), ("2", "0.9", "Noised")])
        values = {"CE": {}, "Noised": {}}
        for column, loss in (("CE", "cross_entropy"), ("Noised", "noised_topk")):
            for seed in (1, 2, 3):
                results = next(json.loads((run / "results.json").read_text()) for run in folder.iterdir() if re.fullmatch(rf"rate=0\.0,.*{loss}.*seed={seed}", run.name))
                values[column][seed] = next(entry["metrics"]["test"]["top2"] for entry in results if entry["checkpoint"] == "best-val-top2")
        ce, noised = cells[0], cells[1]
        for cell, column in ((ce, "CE"), (noised, "Noised")):
            self.assertAlmostEqual(float(cell["mean"]), sum(values[column].values()) / 3, places=12)
            self.assertEqual(cell["seeds"], "1 2 3")
        self.assertAlmostEqual(float(noised["against_mean"]), sum(values["Noised"][s] - values["CE"][s] for s in (1, 2, 3)) / 3, places=12)
        self.assertAlmostEqual(float(ce["difference"]), float(ce["mean"]) - 0.9999, places=12)
        for cell in (ce, noised):
            self.assertEqual(cell["outside"], str(abs(float(cell["difference"])) > float(cell["half_width_95"])).lower())
        self.assertEqual(ce["outside"], "true")  # nobody is right in 99.99 % of the images here
        self.assertEqual(cells[2]["printed_spread"], "0.01")
        self.assertIn("+", re.search(r"\| difference .*", printed)[0])
        self.assertIn(", size ", printed)
        self.assertIn("\\begin{tabular}", (folder / "table.tex").read_text())
        self.assertIn("</html>", (folder / "table.html").read_text())

        # The runs that are there are collected from anywhere, by what they were trained with.
        moved = self.folder / "elsewhere"
        moved.mkdir()
        for run in folder.iterdir():
            if run.is_dir() and not run.name.startswith("rate=0.9,loss.name=cross_entropy"):
                shutil.move(run, moved / f"run{len(list(moved.iterdir()))}")
        (self.folder / "other.yaml").write_text(TINY + "run: {dir: elsewhere/other}\n")
        self.run_program("--config", "other.yaml", "--device", "cpu")
        # One that lost its config, and one whose results lack what is shown.
        (self.folder / "elsewhere/lost").mkdir()
        shutil.copy(self.folder / "elsewhere/other/.settrain-run", self.folder / "elsewhere/lost")
        self.run_program("table", "mine.yaml", "--collect", "elsewhere", "--dir", "collected")
        again = self.cells("collected")
        self.assertEqual(again[:5], cells[:5])
        self.assertEqual(again[5]["mean"], "")
        text = (self.folder / "collected/table.md").read_text()
        self.assertIn("Collected from 9 runs.", text)
        self.assertIn("elsewhere/other: its config is that of no cell", text)
        self.assertIn("elsewhere/lost", text)
        self.assertIn("pending", text)
        bare = next(run for run in moved.glob("run*") if "cross_entropy" in (run / "config.yaml").read_text())
        results = json.loads((bare / "results.json").read_text())
        for entry in results:
            del entry["metrics"]["test"]["top2"]
        (bare / "results.json").write_text(json.dumps(results))
        self.run_program("table", "mine.yaml", "--collect", "elsewhere", "--dir", "collected")
        self.assertIn(f"elsewhere/{bare.name}: has no test/top2", (self.folder / "collected/table.md").read_text())
        self.assertEqual(len(self.cells("collected")[0]["seeds"].split()), 2)

        # A table that was collected can still be trained.
        self.run_program("table", "mine.yaml", "--preset", "smoke", "--collect", "elsewhere/run0", expect=1)
        self.run_program("table", "mine.yaml", "--collect", "elsewhere")
        self.assertTrue((self.folder / "tables/mine-collected/table.md").exists())

    def test_a_stopped_table_shows_what_is_there_and_goes_on(self):
        self.table("--dir", "whole")
        started = subprocess.Popen([PROGRAM, "table", "mine.yaml", "--device", "cpu", "--threads", "1", "--dir", "stopped"], cwd=self.folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not list(self.folder.glob("stopped/*/results.json")):
            time.sleep(0.05)
        started.send_signal(signal.SIGINT)
        self.assertEqual(started.wait(), 130)
        self.assertIn("pending", (self.folder / "stopped/table.md").read_text())
        self.table("--dir", "stopped")
        for name in ("table.csv", "table.md", "table.tex", "table.html"):
            self.assertEqual((self.folder / "stopped" / name).read_text(), (self.folder / "whole" / name).read_text())

    def test_presets_and_dry_runs(self):
        plan = self.table("--dry-run").stdout
        self.assertEqual(len(re.findall(r"^pending ", plan, re.M)), 12)
        self.assertRegex(plan, r"all 12 runs one after the other: ")
        self.assertFalse((self.folder / "tables").exists())
        self.table("--preset", "smoke")
        cells = self.cells(self.folder_name("-smoke"))
        self.assertEqual({(cell["row"], cell["seeds"]) for cell in cells}, {("0.9", "4")})
        self.assertIn("no preset 'tiny'", self.table("--preset", "tiny", expect=2).stderr)

    def test_what_cannot_be_is_said_before_anything_is_trained(self):
        self.write("mine.yaml", TABLE.replace("loss.k: 2", "loss.kk: 2"))
        self.assertRegex(self.table(expect=2).stderr, r"row 0.0, column Noised: \S*mine.yaml:17:\d+: loss.kk: unknown key, did you mean")
        self.write("mine.yaml", TABLE.replace("metric: test/top2", "metric: test/topp2"))
        self.assertRegex(self.table(expect=2).stderr, r"row 0.0, column CE: .*test/topp2")
        self.write("mine.yaml", TABLE.replace("metric: test/top2", "metric: train/top2"))
        self.assertIn("train is none of the splits", self.table(expect=2).stderr)
        self.write("mine.yaml", TABLE.replace('"0.01"', '"0,01"'))
        self.assertRegex(self.table(expect=2).stderr, r"mine.yaml:23:\d+: '0,01': expected a number")
        self.write("mine.yaml", TABLE.replace("base: tiny.yaml", "base: tiny.yaml\nset: {data.name: cifar100}"))
        self.assertIn("'set' comes twice", self.table(expect=2).stderr)
        self.assertIn("did you mean 'icml2022/4'", self.run_program("table", "icml2022/44", expect=2).stderr)
        self.assertIn("neither a run's folder", self.run_program("table", "own/label-noise", "--collect", str(self.folder), expect=1).stderr)
        self.assertFalse((self.folder / "tables").exists())

    def test_a_run_that_fails_is_named_in_the_table(self):
        self.write("mine.yaml", TABLE.replace("loss.k: 2", "loss.k: 200"))
        text = self.table("--preset", "smoke", expect=1).stdout
        self.assertRegex(text, r"- .*k=200.* failed: .*must be less than the number of classes")
        self.assertIn("| 0.9 ", text)

    def test_data_that_are_missing_are_named_once(self):
        done = subprocess.run([PROGRAM, "table", "icml2022/4", "--device", "cpu"], cwd=self.folder, env={**environment(), "SETTRAIN_DATA": "nowhere"}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("the data of cifar100 are not in", done.stderr)
        self.assertEqual(done.stderr.count("are not in"), 1)

    def test_every_shipped_table_can_be_planned(self):
        for preset in ("paper", "small", "smoke"):
            listed = self.run_program("table", "list", "--preset", preset).stdout
            for file in sorted(SHIPPED.rglob("*.yaml")):
                self.assertRegex(listed, rf"\| {re.escape(file.parent.name)}/{re.escape(file.stem)} +\|.*\| (measured|[0-9]+) +\|")

    def test_every_other_preset_of_a_shipped_table_resolves(self):
        self.train_tiny("stray", "--set", "train.epochs=0")
        resolved = set()
        for file in sorted(SHIPPED.rglob("*.yaml")):
            for preset in re.findall(r"^  (\w+):", file.read_text().partition("\npresets:\n")[2], re.M):
                if preset in ("small", "smoke"):  # planned above
                    continue
                name = f"{file.parent.name}/{file.stem}"
                error = self.run_program("table", name, "--preset", preset, "--collect", "runs/stray", expect=1).stderr
                self.assertIn("none of the runs has results for a cell", error)
                resolved.add((name, preset))
        self.assertLessEqual({("ldam2019/cifar100", "bf16"), ("icml2022/4", "index_block"), ("icml2022/4", "as_printed"), ("thesis/4.6", "as_printed")}, resolved)

    def test_the_config_of_ldam_drw_is_that_of_its_column(self):
        run = self.folder / "runs/drw"
        run.mkdir(parents=True)
        (run / ".settrain-run").touch()  # marks a folder as a run's
        for name, remark in (("long_tail_ldam_drw", "has no results yet"), ("long_tail_resnet32", "has no results yet"), ("densenet40_40", r"its config is that of no cell; nearest: .* and \d+ more")):
            (run / "config.yaml").write_text(self.run_program("config", "show", "--config", f"cifar100/{name}.yaml").stdout)
            self.assertRegex(self.run_program("table", "ldam2019/cifar100", "--collect", "runs/drw", expect=1).stderr, f"runs/drw: {remark}")

    def test_the_cost_counts_the_splits_that_are_evaluated(self):
        # ResNet-32: three stages of ten convolutions with 3x3 weights, 16, 32 and 64 channels; 200 epochs of 10,847 images, three passes each, and
        # the 10,000 test images after each epoch and for two checkpoints. Five losses.
        block = 16 * 16 * 9 * 32 * 32
        forward = 3 * 16 * 9 * 32 * 32 + 10 * block + 2 * (block // 2 + 9 * block) + 64 * 100
        multiply_adds = 5 * forward * (3 * 200 * 10847 + 200 * 10000 + 2 * 10000)
        listed = self.run_program("table", "list").stdout
        printed = float(re.search(r"\| ldam2019/cifar100 +\|.*?\| ([0-9.]+e\+[0-9]+) +\|", listed).group(1))
        self.assertAlmostEqual(printed / multiply_adds, 1, delta=0.02)  # two digits are printed

    def test_a_second_stage_can_be_planned(self):
        self.train_tiny("first", "--set", "train.epochs=0")
        stages = "set: {model.pretrained: runs/first/checkpoints/last.safetensors, model.pretrained_head: draw, model.trainable: [head], data.label_noise.kind: superclass}"
        self.write("mine.yaml", TABLE.replace("set: {data.label_noise.kind: superclass}", stages))
        self.assertRegex(self.table("--dry-run").stdout, r"all 12 runs one after the other: ")

    def test_the_list_measures_only_when_asked_and_refuses_what_it_ignores(self):
        listed = self.run_program("table", "list", "--preset", "smoke")
        self.assertIn("| multiply-adds |", listed.stdout)
        self.assertRegex(listed.stdout, r"\| own/label-noise +\|.*\| [0-9.]+e\+[0-9]+ +\|")
        self.assertNotIn("[measure]", listed.stderr)
        for options in (("--jobs", 2), ("--dry-run",), ("--device", "cpu"), ("--collect", "runs")):
            self.run_program("table", "list", *options, expect=2)
        self.run_program("table", "--preset", "smoke", "list", expect=2)
        self.run_program("table", expect=2)
        hours = self.run_program("table", "list", "--preset", "smoke", "--measure", "--device", "cpu")
        self.assertRegex(re.sub(" +", " ", hours.stdout), r"\| hours \|")
        self.assertRegex(hours.stderr, r"on cpu, from multiply-adds at [0-9.]+ G/s")

    def test_a_measured_table(self):
        self.write("timed.yaml", """
title: Times
measure: {what: smoothed_backward, k: 2, batch: 8, runs: 3}
rows:
  name: Algorithm
  each: [{label: DC, let: {algorithm: custom_backward}}, {label: ours, let: {algorithm: settrain}}]
columns:
  name: n
  each: [{label: "10", let: {classes: 10}}, {label: "20", let: {classes: 20}}]
parts:
  - {number: "4", title: Backward, unit: seconds, printed: {DC: ["0.007", "0.006"], ours: ["-", "-"]}}
""")
        text = self.run_program("table", "timed.yaml", "--device", "cpu").stdout
        cells = list(csv.DictReader(next(self.folder.glob("tables/timed/table.csv")).read_text().splitlines()))
        self.assertEqual(len(cells), 4)
        for cell in cells:
            self.assertGreater(float(cell["mean"]), 0)
            self.assertEqual(cell["unit"], "seconds")
        self.assertEqual(cells[0]["printed"], "0.007")
        self.assertIn("batch 8, mean of 3 runs", text)
        self.write("timed.yaml", (self.folder / "timed.yaml").read_text().replace("classes: 20", "classes: abc"))
        self.assertIn("classes: expected a number above 0, got 'abc'", self.run_program("table", "timed.yaml", expect=2).stderr)


if __name__ == "__main__":
    unittest.main()
