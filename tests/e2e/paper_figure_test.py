"""settrain figure NAME: figures made from runs, trained, stopped, resumed and collected; the shipped ones' files; errors."""

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

from program import PROGRAM, TINY, ProgramTest, environment, main

SHIPPED = pathlib.Path(os.environ["SETTRAIN_SOURCE_DIR"]) / "configs/figures"

FIGURE = """
paper: A paper
title: Noise and losses
base: tiny.yaml
set: {train.top_k: [2], train.gradient_nonzeros: true}
seeds: [1, 2, 3]
rows:
  name: epsilon
  each:
    - {label: "0.1", set: {loss.epsilon: 0.1}}
    - {label: "10", set: {loss.epsilon: 10.0}}
columns:
  name: Draws
  each:
    - {label: one draw, set: {loss.num_draws: 1}}
    - {label: "three, {odd} `draws`", set: {loss.num_draws: 3}}
panels:
  - number: "1"
    part: a
    select: val/top2
    x: {of: rows, scale: log, label: epsilon}
    y: {metric: test/top2, error: true, label: "Top-2 error, %"}
  - number: "1"
    part: b
    rows: ["10"]
    select: val/top2
    x: {of: epochs, label: Epoch}
    y: {metric: train/top2, label: "Top-2 in training, %"}
  - number: "2"
    columns: [one draw]
    select: val/top2
    x: {of: set_sizes, label: Classes in the set}
    y: {metric: test/avg2, label: "Images, %"}
  - number: "3"
    columns: [one draw]
    select: val/top2
    x: {metric: test/avg2, label: "Average-2, %"}
    y: {metric: train/gradient_nonzeros, from: last_epoch, label: Non-zero coordinates of 6}
presets:
  smoke: {set: {train.epochs: 1}, seeds: [4], rows: ["10"], columns: [one draw], says: Small.}
"""


@unittest.skipUnless(shutil.which("gnuplot"), "Debian's package gnuplot-nox is not installed")
class PaperFigures(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("tiny.yaml", TINY)
        self.write("mine.yaml", FIGURE)

    def figure(self, *arguments, expect=0):
        return self.run_program("figure", "mine.yaml", "--device", "cpu", "--threads", "1", *arguments, expect=expect)

    def points(self, path):
        return list(csv.DictReader((self.folder / path).read_text().splitlines()))

    def test_a_figure_has_every_point_from_the_runs_own_files(self):
        printed = self.figure().stdout.split()
        names = [f"figures/mine/mine-{number}.{ending}" for number in "123" for ending in ("csv", "gp", "svg", "png")]
        self.assertEqual(sorted(printed), sorted(names))
        for name in names:
            self.assertGreater((self.folder / name).stat().st_size, 100, name)
        self.assertEqual((self.folder / "figures/mine/mine-1.png").read_bytes()[:4], b"\x89PNG")
        self.assertIn("three, {odd} `draws`", (self.folder / "figures/mine/mine-1.svg").read_text())

        # Whose are the runs, by epsilon and draws.
        runs = {}
        for config in self.folder.glob("figures/mine/*/config.yaml"):
            text = config.read_text()
            key = (float(re.search(r"epsilon: (\S+)", text)[1]), int(re.search(r"num_draws: (\d+)", text)[1]))
            runs.setdefault(key, []).append(config.parent)
        self.assertEqual({key: len(folders) for key, folders in runs.items()}, {(0.1, 1): 3, (0.1, 3): 3, (10.0, 1): 3, (10.0, 3): 3})

        def result(run):
            return next(entry for entry in json.loads((run / "results.json").read_text()) if entry["checkpoint"] == "best-val-top2")

        def epochs(run):
            return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]

        points = self.points("figures/mine/mine-1.csv")
        along = [point for point in points if point["panel"] == "1"]
        self.assertEqual([(point["series"], float(point["x"])) for point in along], [("one draw", 0.1), ("one draw", 10), ("three, {odd} `draws`", 0.1), ("three, {odd} `draws`", 10)])
        for point, key in zip(along, [(0.1, 1), (10.0, 1), (0.1, 3), (10.0, 3)]):
            errors = [100 * (1 - result(run)["metrics"]["test"]["top2"]) for run in runs[key]]
            self.assertAlmostEqual(float(point["y"]), sum(errors) / 3, places=9)
            self.assertLess(float(point["below"]), float(point["y"]) + 1e-9)
        by_epoch = [point for point in points if point["panel"] == "2"]
        self.assertEqual([point["x"] for point in by_epoch], ["1", "2", "1", "2"])
        for point, key in zip(by_epoch, [(10.0, 1), (10.0, 1), (10.0, 3), (10.0, 3)]):
            values = [epochs(run)[int(point["x"]) - 1]["train/top2"] for run in runs[key]]
            self.assertAlmostEqual(float(point["y"]), 100 * sum(values) / 3, places=9)

        sizes = self.points("figures/mine/mine-2.csv")
        for series, key in (("0.1", (0.1, 1)), ("10", (10.0, 1))):
            counts = [sum(column) for column in zip(*(result(run)["set_sizes"]["test"]["avg2"] for run in runs[key]))]
            while counts[-1] == 0:
                counts.pop()
            self.assertEqual([round(float(point["y"]) * 360 / 100) for point in sizes if point["series"] == series], counts)

        scatter = self.points("figures/mine/mine-3.csv")
        self.assertEqual([point["label"] for point in scatter], ["0.1", "10"])
        for point, key in zip(scatter, [(0.1, 1), (10.0, 1)]):
            self.assertAlmostEqual(float(point["x"]), 100 * sum(result(run)["metrics"]["test"]["avg2"] for run in runs[key]) / 3, places=9)
            self.assertAlmostEqual(float(point["y"]), sum(epochs(run)[-1]["train/gradient_nonzeros"] for run in runs[key]) / 3, places=9)
            self.assertTrue(0 < float(point["y"]) <= 6, point)

        # The same from runs that are elsewhere; a run without its results is left out and named.
        (self.folder / "elsewhere").mkdir()
        for run in list((self.folder / "figures/mine").iterdir()):
            if run.is_dir():
                shutil.move(run, self.folder / "elsewhere" / run.name)
        self.figure("--collect", "elsewhere")
        self.assertEqual(self.points("figures/mine-collected/mine-1.csv"), points)
        lost = self.folder / "elsewhere" / runs[(0.1, 1)][0].name
        (lost / "results.json").unlink()
        self.assertIn(f"{lost.name}: has no results yet", self.figure("--collect", "elsewhere", "--dir", "less").stderr)
        less = self.points("less/mine-1.csv")
        self.assertEqual(less[1:], points[1:])
        self.assertNotEqual(less[0], points[0])
        self.assertIn("Means over 2 to 3 seeds", (self.folder / "less/mine-1.svg").read_text())

    def test_a_stopped_figure_shows_what_is_there_and_goes_on(self):
        self.figure("--dir", "whole")
        started = subprocess.Popen([PROGRAM, "figure", "mine.yaml", "--device", "cpu", "--threads", "1", "--dir", "stopped"], cwd=self.folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 300
        while not list(self.folder.glob("stopped/*/results.json")):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        started.send_signal(signal.SIGINT)
        self.assertEqual(started.wait(), 130)
        self.assertTrue((self.folder / "stopped/mine-1.svg").exists())
        self.assertLess(len(self.points("stopped/mine-1.csv")), 8)
        self.figure("--dir", "stopped")
        for name in ("mine-1.csv", "mine-1.gp", "mine-1.svg", "mine-2.csv", "mine-3.csv"):
            self.assertEqual((self.folder / "stopped" / name).read_text(), (self.folder / "whole" / name).read_text(), name)

    def test_presets_dry_runs_and_the_figures_of_a_file(self):
        plan = self.figure("--dry-run").stdout
        self.assertEqual(len(re.findall(r"^pending ", plan, re.M)), 12)
        self.assertIn("all 12 runs one after the other: ", plan)
        self.assertFalse((self.folder / "figures").exists())
        without = subprocess.run([PROGRAM, "figure", "mine.yaml"], cwd=self.folder, env={**environment(), "PATH": str(self.folder)}, capture_output=True, text=True)
        self.assertEqual(without.returncode, 1)
        self.assertIn("gnuplot-nox", without.stderr)
        self.assertFalse((self.folder / "figures").exists())
        self.figure("--preset", "smoke")
        self.assertEqual([point["x"] for point in self.points("figures/mine-smoke/mine-1-smoke.csv")], ["10", "1"])
        self.assertIn("Preset smoke: Small.", (self.folder / "figures/mine-smoke/mine-1-smoke.svg").read_text())

    def test_what_cannot_be_is_said_before_anything_is_trained(self):
        for old, new, message in (
            ("train.top_k: [2], ", "", "train/top2 is not measured: train.top_k"),
            (", train.gradient_nonzeros: true", "", "only with train.gradient_nonzeros: true"),
            ("metric: test/avg2, label: \"Images", "metric: test/avg3, label: \"Images", "row 0.1, column one draw: .*test/avg3"),
            ("loss.epsilon: 10.0", "loss.epsilom: 10.0", "did you mean 'loss.epsilon'"),
            ("metric: train/top2", "metric: train/los", "did you mean 'train/loss'"),
            ("scale: log", "scale: logg", r"mine.yaml:\d+:\d+: expected one of words, linear, log"),
        ):
            self.write("mine.yaml", FIGURE.replace(old, new, 1))
            self.assertRegex(self.figure(expect=2).stderr, message)
        self.assertIn("did you mean 'icml2022/2'", self.run_program("figure", "icml2022/22", expect=2).stderr)
        self.assertIn("neither a run's folder", self.run_program("figure", "icml2022/2", "--collect", str(self.folder), expect=1).stderr)
        self.assertIn("shows data", self.run_program("figure", "thesis/3.2", "--collect", str(self.folder), expect=2).stderr)
        self.assertFalse((self.folder / "figures").exists())
        missing = subprocess.run([PROGRAM, "figure", "icml2022/2"], cwd=self.folder, env={**environment(), "SETTRAIN_DATA": "nowhere"}, capture_output=True, text=True)
        self.assertEqual(missing.returncode, 1)
        self.assertIn("the data of cifar100 are not in", missing.stderr)

    def test_a_lorenz_curve_needs_no_runs(self):
        self.write("lorenz.yaml", "paper: A paper\ntitle: Images by class\nbase: tiny.yaml\nset: {data.imbalance: 10}\nlorenz: true\n")
        self.run_program("figure", "lorenz.yaml")
        points = self.points("figures/lorenz/lorenz.csv")
        shares = [float(point["y"]) for point in points if "Gini" in point["series"]]
        self.assertEqual(len(shares), 7)
        self.assertEqual((shares[0], shares[-1]), (0, 100))
        steps = [after - before for before, after in zip(shares, shares[1:])]
        self.assertEqual(steps, sorted(steps))
        self.assertGreater(steps[-1], 2 * steps[0])

    def test_every_shipped_figure_can_be_planned(self):
        numbers = {"level-sets", "icml2022/2", "icml2022/3", "iclr2018/2", *(f"thesis/{n}" for n in ("3.2", "3.5", "3.6", "3.7", "3.8", "3.9", "5.4", "5.5", "5.6"))}
        for preset in ("paper", "small", "smoke"):
            listed = self.run_program("figure", "list", "--preset", preset).stdout
            self.assertEqual(set(re.findall(r"^\| (\S+) ", listed, re.M)) - {"figure", "---"}, numbers)
        self.assertEqual({f"{file.parent.name}/{file.stem}" for file in SHIPPED.rglob("*.yaml")} - numbers, {"thesis/networks"})


if __name__ == "__main__":
    main()
