"""settrain compare: settings over seeds, against numbers worked out here from results.json."""

import json
import math
import pathlib
import shutil
import signal
import statistics
import tempfile
import time

from program import TINY, ProgramTest, main

T95 = {1: 12.706204736174694, 2: 4.302652729749464}  # two-sided quantiles of Student's t, by degrees of freedom
NOISED, PLAIN = "noised_topk", "cross_entropy"


class Compare(ProgramTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="settrain-e2e-")
        cls.addClassCleanup(folder.cleanup)
        cls.shared = pathlib.Path(folder.name)

    def setUp(self):
        self.folder = self.shared
        if not (self.folder / "sweep").exists():
            for loss, seeds in ((NOISED, (3, 4, 5)), (PLAIN, (3, 4))):
                for seed in seeds:
                    self.train(f"sweep/{loss}-{seed}", loss, seed)
            self.train("runs/four", PLAIN, 3, "--set", "train.epochs=1")

    def train(self, folder, loss, seed, *arguments):
        config = TINY if loss == NOISED else TINY.replace("{name: noised_topk, k: 2, epsilon: 1.0, num_draws: 3}", f"{{name: {loss}}}")
        path = self.write("tiny.yaml", config)
        self.run_program("--config", path, "--device", "cpu", "--set", f"run.dir={folder}", "--set", f"seed={seed}", *arguments)

    def compare(self, *arguments):
        return json.loads(self.run_program("compare", *arguments, "--device", "cpu", "--json").stdout)

    def value(self, run, checkpoint, metric):
        split, name = metric.split("/")
        results = json.loads((self.folder / run / "results.json").read_text())
        return next(r for r in results if r["checkpoint"] == checkpoint)["metrics"][split][name]

    def check_interval(self, interval, values):
        self.assertAlmostEqual(interval["mean"], statistics.mean(values), places=14)
        self.assertEqual(interval["count"], len(values))
        self.assertEqual(interval["warning"], len(values) == 2)
        if len(values) == 1:
            self.assertIsNone(interval["half_width"])
        else:
            expected = T95[len(values) - 1] * statistics.stdev(values) / math.sqrt(len(values))
            self.assertAlmostEqual(interval["half_width"], expected, places=12)

    def test_means_and_differences_over_seeds(self):
        found = self.compare("sweep")
        # By their names: cross_entropy-3 comes first.
        self.assertEqual([[run["seed"] for run in setting["runs"]] for setting in found["settings"]], [[3, 4], [3, 4, 5]])
        self.assertEqual(found["keys"]["loss.name"], {"A": PLAIN, "B": NOISED})
        self.assertEqual(found["keys"]["loss.k"], {"A": None, "B": "2"})
        self.assertNotIn("seed", found["keys"])
        self.assertFalse([key for key in found["keys"] if not key.startswith("loss.")])
        self.assertEqual([metric["metric"] for metric in found["metrics"]], ["test/top1", "test/top2"])
        for metric in found["metrics"]:
            checkpoint = "best-val-" + metric["metric"].split("/")[1]
            values = {loss: [self.value(f"sweep/{loss}-{seed}", checkpoint, metric["metric"]) for seed in seeds] for loss, seeds in ((PLAIN, (3, 4)), (NOISED, (3, 4, 5)))}
            for setting, loss in zip(metric["settings"], (PLAIN, NOISED)):
                self.assertEqual(setting["checkpoints"], [checkpoint])
                self.assertEqual(setting["values"], values[loss])
                self.check_interval(setting, values[loss])
            (difference,) = metric["differences"]
            self.assertEqual((difference["setting"], difference["against"], difference["seeds"]), ("B", "A", [3, 4]))
            self.check_interval(difference, [b - a for a, b in zip(values[PLAIN], values[NOISED])])
            self.assertEqual(difference["bootstrap"], [])

    def test_the_text_says_split_checkpoint_seeds_and_the_size_of_sets(self):
        text = self.run_program("compare", "sweep", "--metric", "test/macro_avg2", "--metric", "test/top2").stdout
        self.assertRegex(text, r"key +A +B\n(?:.*\n)*loss\.name +cross_entropy +noised_topk\n")
        # The runs did not select on it: their first checkpoint, and it is named.
        self.assertIn("\ntest/macro_avg2, of best-val-top1\n", text)
        number = r"\d+\.\d+"
        self.assertRegex(text, rf"\n  A +{number} ± {number} \(2 seeds\), size {number} ± {number} !\n")
        self.assertRegex(text, rf"\n  B +{number} ± {number} \(3 seeds\), size {number} ± {number}\n")
        self.assertRegex(text, rf"\n  B - A  [+-]{number} ± {number} \(2 seeds\), size [+-]{number} ± {number} !\n")
        self.assertIn("\ntest/top2, of best-val-top2\n", text)
        self.assertIn("\n!: two seeds", text)

    def test_one_shared_seed_is_compared_over_images(self):
        runs = (f"sweep/{NOISED}-3", f"sweep/{PLAIN}-3")
        command = (*runs, "--resamples", 200, "--metric", "test/top2", "--metric", "test/avg2")
        found = self.compare(*command)
        self.assertEqual(self.compare(*command), found)
        for metric in found["metrics"]:
            (bootstrap,) = metric["differences"][0]["bootstrap"]
            self.assertEqual((bootstrap["seed"], bootstrap["images"], bootstrap["resamples"]), (3, 120, 200))
            self.assertAlmostEqual(bootstrap["difference"], metric["differences"][0]["mean"], places=6)
            self.assertLessEqual(bootstrap["low"], bootstrap["difference"])
            self.assertGreaterEqual(bootstrap["high"], bootstrap["difference"])
            self.assertLess(bootstrap["low"], bootstrap["high"])
            self.assertEqual("size" in bootstrap, "avg" in metric["metric"])
        other = self.compare(*command, "--seed", 7)
        self.assertNotEqual(other["metrics"][0]["differences"][0]["bootstrap"], found["metrics"][0]["differences"][0]["bootstrap"])
        text = self.run_program("compare", *command, "--device", "cpu").stdout
        self.assertRegex(text, r"B - A  [+-]\d+\.\d\d \[[+-]\d+\.\d\d, [+-]\d+\.\d\d\] over images \(seed 3, 200 resamples of 120 images\)\n")
        self.assertNotIn("over images (", self.run_program("compare", *command, "--no-bootstrap").stdout)

    def test_every_shared_seed_on_request(self):
        found = self.compare("sweep", "--bootstrap", "--resamples", 20, "--metric", "test/top1")
        self.assertEqual([bootstrap["seed"] for bootstrap in found["metrics"][0]["differences"][0]["bootstrap"]], [3, 4])

    def test_a_run_against_itself_differs_by_exactly_0(self):
        run = f"sweep/{NOISED}-3"
        found = self.compare(run, run, "--bootstrap", "--resamples", 50, "--metric", "test/macro_top1", "--metric", "test/avg1.5")
        self.assertEqual(found["keys"], {})
        for metric in found["metrics"]:
            (difference,) = metric["differences"]
            self.assertEqual(difference["mean"], 0)
            bootstrap = difference["bootstrap"][0]
            self.assertEqual((bootstrap["difference"], bootstrap["low"], bootstrap["high"]), (0, 0, 0))
        self.assertIn("no key differs", self.run_program("compare", run, run, "--no-bootstrap").stdout)

    def test_what_cannot_be_compared_says_which_folder(self):
        self.assertIn("'nowhere'", self.run_program("compare", "nowhere", expect=1).stderr)
        (self.folder / "empty").mkdir(exist_ok=True)
        self.assertIn("'empty' is neither a run's folder nor one that directly holds", self.run_program("compare", "empty", expect=1).stderr)
        shutil.copytree(self.folder / f"sweep/{PLAIN}-3", self.folder / "unfinished", dirs_exist_ok=True)
        (self.folder / "unfinished/results.json").unlink()
        self.assertRegex(self.run_program("compare", "sweep", "unfinished", expect=1).stderr, r"without results yet.*\n +unfinished\n")
        (self.folder / "unfinished/results.json").write_text("[{]")
        self.assertIn("'unfinished/results.json' is damaged", self.run_program("compare", "unfinished", expect=1).stderr)
        self.assertIn("did you mean 'test/top2'", self.run_program("compare", "sweep", "--metric", "test/topp2", expect=2).stderr)
        self.assertIn("such as test/top2", self.run_program("compare", "sweep", "--metric", "top2", expect=2).stderr)
        self.assertIn("--bootstrap compares two settings", self.run_program("compare", f"sweep/{PLAIN}-3", "--bootstrap", expect=2).stderr)
        self.run_program("compare", expect=2)

    def test_runs_on_other_images_have_no_bootstrap(self):
        if not (self.folder / "other").exists():
            self.train("other", PLAIN, 3, "--set", "data.test_size=60")
        error = self.run_program("compare", f"sweep/{PLAIN}-3", "other", "--device", "cpu", expect=1).stderr
        self.assertIn(f"'sweep/{PLAIN}-3' and 'other' were tested on other images", error)
        found = self.compare(f"sweep/{PLAIN}-3", "other", "--no-bootstrap")
        self.assertEqual(found["keys"], {"data.test_size": {"A": "120", "B": "60"}})

    def wait_until_caught(self, process):
        """Until the program answers SIGINT itself."""
        for _ in range(1200):
            caught = next(line for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines() if line.startswith("SigCgt"))
            if int(caught.split()[1], 16) >> (signal.SIGINT - 1) & 1:
                return
            time.sleep(0.05)
        self.fail("the program never asked for SIGINT")

    def test_ctrl_c_ends_it_cleanly(self):
        process = self.start_program("compare", f"sweep/{PLAIN}-3", "runs/four", "--device", "cpu", "--resamples", "1000000")
        self.wait_until_caught(process)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=120)
        self.assertEqual((process.returncode, out), (130, ""), error)


if __name__ == "__main__":
    main()
