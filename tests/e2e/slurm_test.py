"""--slurm: the elements of the written array, run as Slurm runs them, come to what a plain sweep does; killed ones go on."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

from program import PROGRAM, TINY, ProgramTest, environment

GRID = """
base: tiny.yaml
set: {train.epochs: 3, data.train_size: 960, train.checkpoint_every.steps: 5}
seeds: [1]
points:
  - product: {loss.epsilon: [0.5, 1.0], loss.num_draws: [1, 3]}
select: val/top2
report: [test/top2, test/avg1.5]
"""

# More classes than there are, which shows once the data are there.
FAILING = "base: tiny.yaml\nseeds: [1]\nset: {train.epochs: 1}\npoints:\n  - list: [{loss.k: 2}, {loss.k: 50}]\nselect: val/top2\n"

TABLE = """
paper: A paper
title: Losses
base: tiny.yaml
seeds: [1]
rows:
  name: epsilon
  each:
    - {label: "0.5", set: {loss.epsilon: 0.5}}
    - {label: "1.0", set: {loss.epsilon: 1.0}}
columns:
  name: Loss
  each:
    - {label: Noised, set: {loss.num_draws: 1}}
parts:
  - {number: "1", title: Top-2, metric: test/top2, select: val/top2}
"""


class Slurm(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("tiny.yaml", TINY)
        self.write("grid.yaml", GRID)

    def sweep(self, *arguments, expect=0):
        return self.run_program("sweep", "grid.yaml", "--device", "cpu", *arguments, expect=expect)

    def start(self, script, element):
        # As Slurm does, from a copy, in whatever folder.
        copy = shutil.copy(self.folder / script, self.folder / "spooled")
        return subprocess.Popen(["bash", copy], cwd="/", env={**environment(), "SLURM_ARRAY_TASK_ID": str(element)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def finish(self, script, element, expect=0):
        process = self.start(script, element)
        printed = process.communicate(timeout=120)[0]
        self.assertEqual(process.returncode, expect, printed)
        return printed

    def started(self, script, element, run):
        """An element, when its run has a checkpoint after the first one."""
        process = self.start(script, element)
        checkpoint = self.folder / run / "checkpoints/last.safetensors"
        seen = set()
        while len(seen) < 2:
            self.assertIsNone(process.poll(), run)
            if checkpoint.exists():
                seen.add(checkpoint.stat().st_ino)
            time.sleep(0.01)
        return process

    def elements(self, script):
        return dict(re.findall(r"^  (\d+)\) # (.*)$", (self.folder / script).read_text(), re.MULTILINE))

    def statuses(self, folder="sweeps/grid"):
        return [row["status"] for row in csv.DictReader((self.folder / folder / "sweep.csv").read_text().splitlines())]

    def metrics_in(self, folder):
        found = {}
        for path in (self.folder / folder).glob("*/metrics.jsonl"):
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            found[path.parent.name] = [{name: value for name, value in row.items() if not name.startswith("time/")} for row in rows]
        return found

    def test_elements_come_to_a_plain_sweeps_tables_and_killed_ones_go_on(self):
        self.sweep("--threads", "1", "--dir", "plain")
        done = self.sweep("--slurm", "--time=0:30:00 -p cpu", "--dir", "array")
        script = "array/slurm.sbatch"
        self.assertEqual(done.stdout, f"sbatch {script}\n")
        text = (self.folder / script).read_text()
        self.assertRegex(text, r"\n#SBATCH --array=1-4\n(#.*\n)*#SBATCH --time=0:30:00\n#SBATCH -p cpu\n")
        elements = self.elements(script)
        self.assertEqual(len(elements), 4)
        self.assertTrue((self.folder / "array/slurm").is_dir())

        for element, how, code in (("1", signal.SIGTERM, 143), ("2", signal.SIGKILL, -9)):
            process = self.started(script, element, f"array/{elements[element]}")
            process.send_signal(how)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, code)
        # What is killed at once leaves no more than the folder.
        (self.folder / "array" / elements["3"]).mkdir()
        (self.folder / "array" / elements["3"] / ".settrain-run").touch()
        log = self.sweep("--dir", "array", expect=1).stderr
        self.assertIn("4 runs are not finished; the elements of array/slurm.sbatch train them", log)
        self.assertEqual(self.statuses("array"), ["started", "started", "pending", "pending"])

        for element in elements:
            printed = self.finish(script, element)
            self.assertEqual("going on with" in printed, element in "12", printed)
        self.assertIn("is finished", self.finish(script, 1))
        self.finish(script, 5, expect=2)
        self.sweep("--dir", "array")
        for table in ("sweep.csv", "sweep.md"):
            self.assertEqual((self.folder / "array" / table).read_text(), (self.folder / "plain" / table).read_text().replace("# plain", "# array"))
        self.assertEqual(self.metrics_in("array"), self.metrics_in("plain"))
        before = (self.folder / script).stat().st_mtime_ns
        self.assertIn("no run is to come, so no script is written", self.sweep("--dir", "array", "--slurm", "").stderr)
        self.assertEqual((self.folder / script).stat().st_mtime_ns, before)

    def test_a_script_is_of_the_runs_that_are_not_finished(self):
        self.sweep("--slurm", "--cpus-per-task=1")
        script = "sweeps/grid/slurm.sbatch"
        elements = self.elements(script)
        self.finish(script, 2)
        self.sweep("--slurm", "--cpus-per-task=1")
        self.assertEqual(sorted(self.elements(script).values()), sorted(set(elements.values()) - {elements["2"]}))
        # Those that were begun come first, and go on whatever the grid calls them.
        process = self.started(script, 3, f"sweeps/grid/{elements['4']}")
        process.terminate()
        process.communicate(timeout=60)
        self.write("grid.yaml", GRID.replace("[1, 3]", "[1, 3], loss.k: [2]"))
        self.sweep("--slurm", "")
        self.assertIn(f"--resume sweeps/grid/{elements['4']}", (self.folder / script).read_text())
        self.assertIn("going on with", self.finish(script, 1))

    def test_a_sweep_leaves_a_run_to_the_element_that_trains_it(self):
        self.sweep("--slurm", "")
        script = "sweeps/grid/slurm.sbatch"
        run = self.elements(script)["1"]
        process = self.started(script, 1, f"sweeps/grid/{run}")
        process.send_signal(signal.SIGSTOP)
        try:
            self.assertIn("Submitted again, they go on", self.sweep(expect=1).stderr)
            self.assertEqual(self.statuses(), ["started"] + 3 * ["pending"])
            os.rename(self.folder / script, self.folder / "script")
            log = self.sweep(expect=1).stderr
            self.assertRegex(log, rf"{run} is left alone: .* is being written by process {process.pid} on ")
            self.assertEqual(self.statuses(), ["started"] + 3 * ["finished"])
            self.assertFalse((self.folder / "sweeps/grid/failures").exists())
        finally:
            process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(timeout=60), 0)
        process.stdout.close()
        self.sweep()

    def test_failed_runs_come_again_when_asked(self):
        self.write("grid.yaml", FAILING)
        self.sweep("--threads", "1", expect=1)
        log = self.sweep("--slurm", "").stderr
        self.assertIn("k=50,seed=1 failed before", log)
        self.assertFalse((self.folder / "sweeps/grid/slurm.sbatch").exists())
        self.sweep("--slurm", "", "--retry-failed")
        self.assertEqual(list(self.elements("sweeps/grid/slurm.sbatch").values()), ["k=50,seed=1"])
        self.assertIn("loss.k", self.finish("sweeps/grid/slurm.sbatch", 1, expect=2))

    def test_mistakes_make_nothing(self):
        for options, error in (("--time=1 --array=1-3", "--array=1-3: an element is a run"), ("gpu", "'gpu' is no option of sbatch"), ("-c two", "-c two: expected a number of cores")):
            self.assertIn(error, self.sweep("--slurm", options, expect=2).stderr)
        for other in (["--jobs", "2"], ["--dry-run"], ["--fail-fast"]):
            self.assertIn("--slurm", self.sweep("--slurm", "", *other, expect=2).stderr)
        self.assertFalse((self.folder / "sweeps").exists())
        for design in (["figure", "thesis/3.2"], ["table", "iclr2018/4"]):
            self.assertIn("there are no runs to collect or to submit", self.run_program(*design, "--slurm", "", expect=2).stderr)

    def test_a_table_is_trained_by_elements(self):
        self.write("mine.yaml", TABLE)
        table = ["table", "mine.yaml", "--device", "cpu"]
        printed = self.run_program(*table, "--threads", "1", "--dir", "plain").stdout
        self.run_program(*table, "--dir", "array", "--slurm", "--cpus-per-task=1")
        for element in self.elements("array/slurm.sbatch"):
            self.assertNotIn("error", self.finish("array/slurm.sbatch", element))
            collected = self.run_program(*table, "--dir", "array", expect=int(element == "1"))
        self.assertEqual(collected.stdout, printed)


if __name__ == "__main__":
    unittest.main()
