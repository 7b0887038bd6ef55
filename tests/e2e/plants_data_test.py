"""The shipped Pl@ntNet-300K config on photographs: 121 species of plants-mini, small and from weights as drawn, so that it takes seconds."""

import json
import os
import pathlib
import signal
import struct
import time
import unittest

from program import ProgramTest, main, tensors_of

PLANTS = pathlib.Path(os.environ.get("SETTRAIN_TEST_DATA", "/nonexistent")) / "plants-mini"
SIZES = {"classes": 121, "genera": 19, "train": 521, "val": 121, "test": 242}
SMALL = {"data.root": PLANTS, "data.input_size": 32, "data.workers": 1, "model.name": "resnet18", "model.pretrained": "none"}
SMALL |= {f"data.expected.{name}": size for name, size in SIZES.items()}
SMALL |= {"train.epochs": 2, "schedule.milestones": "[1]", "select": "[val/macro_top1,val/macro_top5]", "train.checkpoint_every.steps": 8}


def header_of(path):
    """The header of a safetensors file."""
    with open(path, "rb") as file:
        return json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))


def integers_of(path, *names):
    """int64 scalars of a safetensors file, without the rest of it."""
    header = header_of(path)
    with open(path, "rb") as file:
        start = 8 + struct.unpack("<Q", file.read(8))[0]
        values = []
        for name in names:
            file.seek(start + header[name]["data_offsets"][0])
            values.append(struct.unpack("<q", file.read(8))[0])
        return values


@unittest.skipUnless(PLANTS.is_dir(), "SETTRAIN_TEST_DATA has no plants-mini")
class Plants(ProgramTest):
    def arguments(self, config, name, **more):
        settings = {**SMALL, "run.dir": f"runs/{name}", **{key.replace("__", "."): value for key, value in more.items()}}
        return ["--config", config, "--device", "cpu", *(f"--set={key}={value}" for key, value in settings.items())]

    def result(self, name):
        run = self.folder / "runs" / name
        return self.metrics(name), (run / "results.json").read_text(), tensors_of(run / "checkpoints/last.safetensors")

    def test_a_killed_run_goes_on_to_the_same_macro_accuracies(self):
        self.run_program(*self.arguments("plantnet_noised_imbal.yaml", "whole"))
        best = json.loads((self.folder / "runs/whole/results.json").read_text())
        self.assertEqual([entry["checkpoint"] for entry in best], ["best-val-macro_top1", "best-val-macro_top5"])
        for split in ("val", "test"):
            metrics = best[1]["metrics"][split]
            for k in (1, 3, 5, 10):
                for name in (f"top{k}", f"macro_top{k}", f"few_top{k}"):
                    self.assertTrue(0 <= metrics[name] <= 1, name)
                self.assertEqual(metrics[f"few_top{k}"], metrics[f"macro_top{k}"])  # no species has 20 training images
                self.assertEqual((metrics[f"medium_top{k}"], metrics[f"many_top{k}"]), (None, None))
            self.assertGreater(metrics["macro_top10"], metrics["macro_top1"])

        process = self.start_program(*self.arguments("plantnet_noised_imbal.yaml", "killed"))
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        last, deadline = self.folder / "runs/killed/checkpoints/last.safetensors", time.monotonic() + 200
        while process.poll() is None and time.monotonic() < deadline:
            if last.exists() and integers_of(last, "state.epoch", "state.batch") >= [1, 8]:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        self.assertEqual(process.returncode, -signal.SIGKILL, "the run was over before it was killed")
        self.assertFalse((self.folder / "runs/killed/results.json").exists())
        self.run_program("--resume", "runs/killed", "--device", "cpu")
        self.assertEqual(self.result("killed"), self.result("whole"))

    def test_genera_are_trained_alone_or_measured_alone(self):
        quick = {"train__epochs": 1, "schedule__milestones": "[]", "select": "[val/macro_top1]"}
        config = "plantnet300k/cross_entropy.yaml"
        wrong = self.run_program(*self.arguments(config, "wrong", data__only_superclasses="[Acr, Quercus]"), expect=2).stderr
        self.assertIn("'Acer'", wrong)
        self.run_program(*self.arguments(config, "two", data__only_superclasses="[Acer, Quercus]", **quick))
        card = json.loads(header_of(self.folder / "runs/two/checkpoints/last.safetensors")["__metadata__"]["card"])
        self.assertEqual(card["superclasses"], ["Acer", "Quercus"])
        self.assertEqual(len(card["classes"]), 32)

        # A network of all species, measured on the two genera: the labels and scores stay those of all.
        self.run_program(*self.arguments(config, "all", **quick))
        subset = ["--set=eval.subset.superclasses=[Acer, Quercus]", "--set=eval.subset.images_per_class=1", "--set=eval.average_k=[4.1]"]
        result = json.loads(self.run_program("eval", "runs/all", "--device", "cpu", "--json", *subset).stdout)[0]
        metrics = result["metrics"]["test"]
        self.assertEqual(len(result["set_sizes"]["test"]["subset_avg4.1"]), 121 + 1)
        self.assertEqual(sum(result["set_sizes"]["test"]["subset_avg4.1"]), 32)
        self.assertAlmostEqual(metrics["subset_avg4.1_size"], 4.1, delta=0.1)
        self.assertLessEqual(metrics["subset_top1"], metrics["subset_top5"])

    def test_label_noise_stays_within_the_genus(self):
        self.run_program(*self.arguments("plantnet_noised_imbal_label_noise.yaml", "noisy", train__epochs=1, schedule__milestones="[]", select="[]", eval__splits="[val]"))
        noise = json.loads((self.folder / "runs/noisy/provenance.json").read_text())["label_noise"]
        self.assertEqual((noise["kind"], noise["nominal_rate"]), ("superclass", 0.2))
        self.assertLess(noise["effective_rate"], 0.2)
        self.assertEqual(noise["within_superclass"], 1.0)


if __name__ == "__main__":
    main()
