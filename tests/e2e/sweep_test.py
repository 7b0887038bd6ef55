"""settrain sweep: stopped, killed, edited and failing sweeps come to the same tables as undisturbed ones."""

import csv
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import time
import unittest

from program import PROGRAM, TINY, ProgramTest, environment

GRID = """
base: tiny.yaml
set: {train.epochs: 2}
seeds: [1, 2]
points:
  - product: {loss.epsilon: [0.5, 1.0], loss.num_draws: [1, 3]}
select: val/top2
report: [test/top2, test/avg1.5]
"""


class Sweep(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("tiny.yaml", TINY)
        self.write("grid.yaml", GRID)

    def sweep(self, *arguments, expect=0):
        return self.run_program("sweep", "grid.yaml", "--device", "cpu", "--threads", "1", *arguments, expect=expect)

    def tables(self, folder):
        return [(self.folder / folder / name).read_text() for name in ("sweep.csv", "sweep.md")]

    def rows(self, folder="sweeps/grid"):
        return list(csv.DictReader((self.folder / folder / "sweep.csv").read_text().splitlines()))

    def test_tables_choose_by_validation_and_report_the_test_of_the_choice(self):
        printed = self.sweep().stdout
        rows = self.rows()
        self.assertEqual(len(rows), 8)
        self.assertEqual({row["status"] for row in rows}, {"finished"})
        self.assertEqual(rows[0]["run"], "epsilon=0.5,num_draws=1,seed=1")
        for row in rows:
            results = json.loads((self.folder / "sweeps/grid" / row["run"] / "results.json").read_text())
            chosen = next(entry for entry in results if entry["checkpoint"] == "best-val-top2")
            self.assertEqual(float(row["test/top2"]), chosen["metrics"]["test"]["top2"])
            self.assertEqual(int(row["epoch"]), chosen["epoch"])
            provenance = json.loads((self.folder / "sweeps/grid" / row["run"] / "provenance.json").read_text())
            self.assertIn(os.path.realpath(PROGRAM), provenance["command_line"])
        markdown = (self.folder / "sweeps/grid/sweep.md").read_text()
        self.assertEqual(printed, markdown)
        markdown = re.sub(" +", " ", markdown)  # columns are padded
        means = {}
        for row in rows:
            means.setdefault((row["loss.epsilon"], row["loss.num_draws"]), []).append(row)
        best = max(means, key=lambda setting: sum(float(row["val/top2"]) for row in means[setting]))
        self.assertRegex(markdown, r"\| loss\.epsilon \| loss\.num_draws \| val/top2 \|\n")
        before, chosen = markdown.split("## Chosen by val/top2")
        self.assertNotIn("test/", before)
        row = next(text for text in chosen.splitlines() if text.startswith(f"| {best[0]} | {best[1]} |"))
        self.assertIn("| test/avg1.5 | test/avg1.5_size |", chosen)
        values = [float(entry["test/top2"]) for entry in means[best]]
        mean, half = sum(values) / 2, 12.706204736 * abs(values[0] - values[1]) / 2
        self.assertIn(f"{100 * mean:.2f} ± {100 * half:.2f} (2 seeds)", row)
        self.assertIn("With two seeds", chosen)

    def test_a_killed_sweep_ends_as_an_undisturbed_one_with_any_number_of_jobs(self):
        begin = time.monotonic()
        self.sweep("--dir", "whole")
        undisturbed = time.monotonic() - begin
        whole = self.tables("whole")
        runs = self.checkpoints("whole")
        generator = random.Random(7)
        for jobs in ("1", "2"):
            folder, kills, begun = f"killed{jobs}", 0, 0
            command = [PROGRAM, "sweep", "grid.yaml", "--device", "cpu", "--threads", "1", "--dir", folder, "--jobs", jobs]
            for _ in range(100):
                seen = self.runs_begun(folder)
                process = subprocess.Popen(command, cwd=self.folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
                # Every second kill waits for a further run's checkpoint, however slow the machine is.
                while kills % 2 == 1 and process.poll() is None and self.runs_begun(folder) == seen:
                    time.sleep(0.01)
                try:
                    process.wait(timeout=generator.uniform(0.02, 0.2) * undisturbed if kills < 6 else 120)
                    break
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    kills += 1
                    begun += self.runs_begun(folder) > seen
            self.assertGreater(kills, 2)
            self.assertGreater(begun, 0)
            self.assertEqual(process.returncode, 0)
            self.assertEqual(self.tables(folder), whole)
            self.assertEqual(self.checkpoints(folder), runs)

    def runs_begun(self, folder):
        return len(list((self.folder / folder).glob("*/checkpoints/last.safetensors")))

    def checkpoints(self, folder):
        """What every run's metrics were, but for the clock's."""
        found = {}
        for path in sorted((self.folder / folder).glob("*/metrics.jsonl")):
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            found[path.parent.name] = [{name: value for name, value in row.items() if not name.startswith("time/")} for row in rows]
        self.assertEqual(len(found), 8)
        return found

    def test_ctrl_c_stops_all_jobs_and_the_next_start_goes_on(self):
        command = [PROGRAM, "sweep", "grid.yaml", "--device", "cpu", "--threads", "1", "--jobs", "2"]
        process = subprocess.Popen(command, cwd=self.folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        while not list((self.folder).glob("sweeps/grid/*/checkpoints/last.safetensors")):
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        error = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 130, error)
        self.assertIn("stopped by a signal; the same command goes on", error)
        self.assertFalse((self.folder / "sweeps/grid/failures").exists())
        self.assertEqual(self.processes(), [])
        self.sweep("--jobs", "2")
        self.assertEqual({row["status"] for row in self.rows()}, {"finished"})

    def processes(self):
        """Of settrain, that work in this test's folder."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(path / "cwd") == str(self.folder):
                    found.append((path / "cmdline").read_bytes())
            except OSError:
                pass  # it has ended, or is somebody else's
        return found

    def test_runs_end_with_a_sweep_that_is_killed_alone(self):
        command = [PROGRAM, "sweep", "grid.yaml", "--device", "cpu", "--threads", "1"]
        process = subprocess.Popen(command, cwd=self.folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not list((self.folder).glob("sweeps/grid/*/checkpoints/last.safetensors")):
            time.sleep(0.05)
        self.assertEqual(len(self.processes()), 2)
        process.kill()
        process.wait()
        # The run holds the sweep's lock until it has ended, so that no other sweep takes it for its own.
        for _ in range(600):
            if not self.processes():
                break
            time.sleep(0.1)
        self.assertEqual(self.processes(), [])
        self.sweep()
        self.assertEqual({row["status"] for row in self.rows()}, {"finished"})

    def test_an_edited_grid_adds_points_and_keeps_the_rest(self):
        self.write("grid.yaml", GRID.replace("[1, 3]", "[1]"))
        self.sweep()
        before = {row["run"]: (self.folder / "sweeps/grid" / row["run"] / "results.json").stat().st_mtime_ns for row in self.rows()}
        self.assertEqual(len(before), 4)
        # Another key in the names of the points, and another draw.
        self.write("grid.yaml", GRID.replace("[1, 3]", "[1, 2], loss.k: [2]").replace("seeds: [1, 2]", "seeds: [2, 1]"))
        log = self.sweep().stderr
        self.assertIn("8 runs: 4 finished, 0 started, 0 failed, 4 pending", log)
        self.assertEqual(len(self.rows()), 8)
        for run, time_of_end in before.items():
            self.assertEqual((self.folder / "sweeps/grid" / run / "results.json").stat().st_mtime_ns, time_of_end)
        self.write("grid.yaml", GRID.replace("[0.5, 1.0]", "[0.5]").replace("[1, 3]", "[1]"))
        self.assertIn("6 runs in the folder belong to no point of this grid", self.sweep().stderr)
        # Whatever changes, what was trained otherwise is nobody's result.
        self.write("grid.yaml", GRID.replace("train.epochs: 2", "train.epochs: 1"))
        log = self.sweep().stderr
        self.assertIn("8 runs: 0 finished, 0 started, 0 failed, 8 pending", log)
        self.assertIn("8 runs in the folder belong to no point of this grid", log)
        self.assertRegex(self.rows()[0]["run"], r"epsilon=0\.5,num_draws=1,seed=1")
        self.assertEqual(len(list((self.folder / "sweeps/grid").glob("*/results.json"))), 16)

    def test_a_point_is_not_taken_for_another_of_its_name(self):
        point = "base: tiny.yaml\nseeds: [1]\nset: {train.epochs: 1}\nselect: val/top2\npoints:\n  - list: [%s]\n"
        self.write("grid.yaml", point % "{loss.epsilon: 0.5}")
        self.sweep()
        self.write("grid.yaml", point % "{}, {loss.epsilon: 0.5}")
        self.assertIn("2 runs: 1 finished, 0 started, 0 failed, 1 pending", self.sweep().stderr)
        rows = self.rows()
        self.assertEqual([row["loss.epsilon"] for row in rows], ["", "0.5"])
        self.assertNotEqual(rows[0]["val/top2"] + rows[0]["test/top1"], rows[1]["val/top2"] + rows[1]["test/top1"])

    def test_a_run_whose_results_are_damaged_is_evaluated_again(self):
        self.sweep()
        results = self.folder / "sweeps/grid/epsilon=0.5,num_draws=1,seed=1/results.json"
        whole = results.read_text()
        for damaged in ("{", "", "[]"):
            results.write_text(damaged)
            self.sweep()
            self.assertEqual(results.read_text(), whole)

    def test_a_damaged_run_is_a_failure_and_stops_no_other(self):
        self.sweep()
        run = self.folder / "sweeps/grid/epsilon=0.5,num_draws=1,seed=1"
        (run / "results.json").write_text('[{"checkpoint": 3}]')
        stray = self.folder / "sweeps/grid/epsilon=0.5,num_draws=3,seed=1"
        (stray / "config.yaml").write_text("nonsense: 1\n")
        log = self.sweep(expect=1).stderr
        self.assertIn("is left alone", log)
        statuses = {row["run"]: row["status"] for row in self.rows()}
        self.assertEqual(statuses.pop(run.name), "failed")
        self.assertEqual(set(statuses.values()), {"finished"})

    def test_failures_are_kept_and_retried_when_asked(self):
        # More classes than there are, which shows once the data are there.
        self.write("grid.yaml", "base: tiny.yaml\nseeds: [1]\nset: {train.epochs: 1}\npoints:\n  - list: [{loss.k: 2}, {loss.k: 50}, {loss.k: 1}]\nselect: val/top2\n")
        done = self.sweep(expect=1)
        self.assertRegex(done.stderr, r"\[sweep\] k=50,seed=1 failed: .*loss\.k")
        self.assertEqual([row["status"] for row in self.rows()], ["finished", "failed", "finished"])
        self.assertIn("## Failed\n\n- k=50,seed=1: ", (self.folder / "sweeps/grid/sweep.md").read_text())
        again = self.sweep(expect=1).stderr
        self.assertIn("k=50,seed=1 failed before", again)
        self.assertIn("--retry-failed tries it again", again)
        self.assertRegex(self.sweep("--retry-failed", expect=1).stderr, r"k=50,seed=1 failed: ")
        self.sweep("--dir", "fast", "--fail-fast", expect=1)
        self.assertEqual([row["status"] for row in self.rows("fast")], ["finished", "failed", "pending"])

    def test_a_dry_run_writes_nothing(self):
        printed = self.sweep("--dry-run").stdout
        self.assertIn("pending   epsilon=0.5,num_draws=1,seed=1\n", printed)
        self.assertRegex(printed, r"to come: 8 runs of .* each, as measured on epsilon=0.5,num_draws=1,seed=1; .* in all with 1 at a time, .* on disk")
        self.assertRegex(printed, r"\nneeds: synthetic\n")
        self.assertNotIn("missing: ", printed)
        self.assertFalse((self.folder / "sweeps").exists())

    def test_the_shipped_grids_resolve(self):
        runs = {"cifar100_alpha": 36, "cifar100_batch_size": 64, "cifar100_chapter5": 92, "epsilon_draws_margin": 144, "imagenet_losses": 45,
            "imagenet_losses k1": 45, "imagenet_lt_losses": 92, "imagenet_lt_losses k3": 92, "memorised_label_noise": 9,
            "plantnet300k_chapter5": 48, "plantnet300k_chapter5 k2": 48, "plantnet300k_losses": 81, "plantnet300k_losses k10": 81,
            "plantnet300k_losses scale": 36, "features/average_k": 27, "features/margin": 84, "features/noise": 48, "features/set_sizes": 24,
            "features/set_sizes long_tail": 24, "features/tau": 18}
        grids = pathlib.Path(__file__).parents[2] / "configs/sweeps"
        self.assertEqual({name.split()[0] for name in runs}, {str(path.relative_to(grids).with_suffix("")) for path in grids.rglob("*.yaml")})
        for name, points in runs.items():
            # What it would take is not known without the data; the points are.
            grid, *preset = name.split()
            done = subprocess.run([PROGRAM, "sweep", f"sweeps/{grid}", "--dry-run", "--device", "cpu", *(["--preset", *preset] if preset else [])], cwd=self.folder, env={**environment(), "SETTRAIN_DATA": "nowhere"}, capture_output=True, text=True, timeout=120)
            self.assertEqual(done.stdout.count("pending "), points, done.stderr)
            self.assertEqual(done.returncode, 0, done.stderr)
            if grid.startswith("features/"):
                self.assertRegex(done.stdout, r"\nmissing: there is no file '.*/features/cifar100.*-train.safetensors' \(data.train\)\n")
            elif grid != "epsilon_draws_margin":  # Fashion-MNIST lies elsewhere
                self.assertRegex(done.stdout, r"\nneeds: .*nowhere.*\nmissing: the data of .* are not in 'nowhere/")

    def test_mistakes_are_said_before_anything_is_made(self):
        self.write("grid.yaml", GRID.replace("loss.epsilon", "loss.epsilonn"))
        error = self.sweep(expect=2).stderr
        self.assertIn("8 of the sweep's runs cannot be:\npoint epsilonn=0.5,num_draws=1,seed=1: ", error)
        self.assertIn("did you mean 'loss.epsilon'?", error)
        self.write("grid.yaml", GRID.replace("test/avg1.5", "test/avg9"))
        self.assertIn("report: test/avg9: ", self.sweep(expect=2).stderr)
        self.write("grid.yaml", GRID.replace("select: val/top2", "select: val/top9"))
        self.assertIn("top9", self.sweep(expect=2).stderr)
        self.assertFalse((self.folder / "sweeps").exists())
        self.write("grid.yaml", GRID)
        (self.folder / "other").mkdir()
        (self.folder / "other/file").write_text("mine")
        self.assertIn("holds no sweep", self.sweep("--dir", "other", expect=1).stderr)
        self.assertEqual(os.listdir(self.folder / "other"), ["file"])
        self.sweep("--dir", "two")
        self.assertIn("was begun with 1 compute threads", self.run_program("sweep", "grid.yaml", "--dir", "two", "--threads", "2", "--device", "cpu", expect=1).stderr)


FEW = """
data: {name: synthetic, num_classes: 3, group_size: 1, train_size: 60, val_size: 30, test_size: 30, image_size: 8, batch_size: 32, workers: 1}
model: {name: resnet8, width: 2}
loss: {name: topk_hinge}
train: {epochs: 1}
"""


class FewClasses(ProgramTest):
    """Three classes, for which the defaults are too large: the runs record others than the grid has."""

    def setUp(self):
        super().setUp()
        self.write("few.yaml", FEW)
        self.write("grid.yaml", "base: few.yaml\nseeds: [1]\npoints:\n  - product: {optimizer.lr: [0.01, 0.1]}\nselect: val/top1\n")

    def sweep(self, *arguments, grid="grid.yaml", expect=0):
        return self.run_program("sweep", grid, "--device", "cpu", "--threads", "1", *arguments, expect=expect)

    def test_a_finished_sweep_finds_its_runs_again(self):
        self.sweep()
        runs = sorted(path.parent for path in (self.folder / "sweeps/grid").glob("*/config.yaml"))
        self.assertEqual(len(runs), 2)
        config = (runs[0] / "config.yaml").read_text()
        for line in ("top_k: [1]\n", "average_k: [2.0]\n", "k: 2\n"):
            self.assertIn(line, config)
        before = [(run / "results.json").stat().st_mtime_ns for run in runs]
        self.sweep()
        self.assertEqual(sorted(path.parent for path in (self.folder / "sweeps/grid").glob("*/config.yaml")), runs)
        self.assertEqual([(run / "results.json").stat().st_mtime_ns for run in runs], before)

    def test_a_run_is_evaluated_and_goes_on_with_the_file_it_was_begun_with(self):
        begin = ("--config", "few.yaml", "--device", "cpu", "--set", "run.threads=1")
        done = self.run_program(*begin)
        self.assertEqual(self.run_program("eval", "runs/few", "--device", "cpu").stdout, done.stdout)
        for count, resume in ((2, ("--resume", "runs/few", "--device", "cpu")), (3, (*begin, "--resume-if-there"))):
            self.run_program(*resume, "--set", f"train.epochs={count}")
            rows = self.metrics("few")
            self.assertEqual(len(rows), count)
            self.assertEqual(rows[0].keys(), rows[-1].keys())
        self.assertIn("eval.top_k", self.run_program("eval", "runs/few", "--set", "eval.top_k=[1, 5]", "--device", "cpu", expect=2).stderr)
        provenance = self.folder / "runs/few/provenance.json"
        fitted = json.loads(provenance.read_text())["fitted"]
        provenance.unlink()
        self.run_program(*begin, "--resume-if-there", "--set", "train.epochs=4")
        self.assertEqual(json.loads(provenance.read_text())["fitted"], fitted)

    def test_a_metric_without_a_value_is_refused_before_the_first_run(self):
        self.write("many.yaml", FEW.replace("train_size: 60", "train_size: 600"))
        for metric in ("val/few_top1", "val/macro_top5"):
            grid = (self.folder / "grid.yaml").read_text().replace("few.yaml", "many.yaml").replace("val/top1", metric)
            self.write("none.yaml", grid)
            for more in ((), ("--dry-run",)):
                self.assertIn(metric, self.sweep(*more, grid="none.yaml", expect=2).stderr)
            self.assertFalse(list(self.folder.glob("sweeps/none/*/config.yaml")))

    def test_runs_that_chose_nothing_are_compared_and_reported(self):
        runs = ["runs/one", "runs/two"]
        self.write("many.yaml", FEW.replace("train_size: 60", "train_size: 600"))
        for seed, run in enumerate(runs):
            settings = (f"run.dir={run}", f"seed={seed}", "select=[val/few_top1]")
            done = self.run_program("--config", "many.yaml", "--device", "cpu", *(word for setting in settings for word in ("--set", setting)))
            self.assertEqual(done.stderr.count("val/few_top1 of `select` has no value"), 1)
        self.assertIn("test/", self.run_program("compare", *runs, "--no-bootstrap").stdout)
        self.run_program("report", *runs, "--no-examples", "--device", "cpu")
        self.assertIn("it has last", self.run_program("eval", runs[0], "--checkpoint", "best-val-few_top1", "--device", "cpu", expect=1).stderr)


if __name__ == "__main__":
    unittest.main()
