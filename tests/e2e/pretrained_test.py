"""Runs that begin with weights from a file, and what is said where it is not there."""

import json
import os
import struct
import subprocess
import unittest

from program import PROGRAM, ProgramTest, environment, tensors_of, write_png


def write_tensors(path, tensors):
    """A safetensors file of name to (dtype, shape, bytes)."""
    header, content = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(content), len(content) + len(values)]}
        content += values
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content)


class Pretrained(ProgramTest):
    def make_weights(self):
        """Those of a trained network of seven classes; TINY has six."""
        self.train_tiny("teacher", "--set", "data.num_classes=7", "--set", "data.group_size=7")
        checkpoint = tensors_of(self.folder / "runs/teacher/checkpoints/last.safetensors")
        weights = {name.removeprefix("model."): tensor for name, tensor in checkpoint.items() if name.startswith("model.")}
        write_tensors(self.folder / "weights.safetensors", {name: t for name, t in weights.items() if "num_batches" not in name})
        return weights

    def test_a_run_begins_with_them_and_needs_the_file_no_more(self):
        weights = self.make_weights()
        settings = ("--set", "model.pretrained=weights.safetensors", "--set", "train.epochs=1", "--set", "optimizer.lr=1e-9")
        done = self.train_tiny("tiny", *settings)
        self.assertRegex(done.stderr, r"\[model\] weights of 'weights\.safetensors' \(SHA-256 [0-9a-f]{16}\): \d+ tensors, head 'fc' left as drawn")
        run = self.folder / "runs/tiny"
        trained = tensors_of(run / "checkpoints/last.safetensors")
        # The learning rate is next to nothing: the network is still the teacher's, but for the head.
        for name in ("conv1.weight", "layer3.0.conv2.weight"):
            theirs, ours = (struct.unpack(f"<{len(t[2]) // 4}f", t[2]) for t in (weights[name], trained["model." + name]))
            self.assertLess(max(abs(a - b) for a, b in zip(theirs, ours)), 1e-6)
        self.assertEqual(trained["model.fc.weight"][1][0], 6)
        provenance = json.loads((run / "provenance.json").read_text())["pretrained"]
        self.assertEqual(len(provenance["sha256"]), 64)
        self.assertEqual(provenance["drawn"], ["fc"])
        self.assertIn(provenance["sha256"].encode(), (run / "checkpoints/last.safetensors").read_bytes())

        undisturbed = self.train_tiny("longer", *settings, "--set", "train.epochs=2", "--set", "schedule.name=constant")
        self.train_tiny("short", *settings, "--set", "schedule.name=constant")
        (self.folder / "weights.safetensors").unlink()
        self.assertEqual(self.run_program("eval", "runs/tiny", "--device", "cpu").stdout, done.stdout)
        resumed = self.run_program("--resume", "runs/short", "--set", "train.epochs=2", "--device", "cpu")
        self.assertEqual(resumed.stdout, undisturbed.stdout)
        self.assertEqual(self.metrics("short"), self.metrics("longer"))
        self.assertIn(provenance["sha256"].encode(), (self.folder / "runs/short/checkpoints/last.safetensors").read_bytes())
        for what in (("--overwrite",), ("--dry-run",)):
            self.assertIn("there is no file 'weights.safetensors'", self.train_tiny("tiny", *settings, *what, expect=1).stderr)

    def folder_config(self, name, **data):
        keys = {"name": "image_folder", "root": "pictures", "batch_size": 4, "workers": 1} | data
        text = f"data: {json.dumps(keys)}\nmodel: {{name: resnet8, width: 4}}\ntrain: {{epochs: 1}}\nschedule: {{name: constant}}\nselect: []\neval: {{top_k: [1], average_k: []}}\n"
        return self.write(f"{name}.yaml", text)

    def input_of(self, run):
        return json.loads((self.folder / "runs" / run / "provenance.json").read_text())["input"]

    def test_auto_is_what_the_weights_were_trained_with_and_stays_so(self):
        for split in ("train", "val", "test"):
            for number, name in enumerate("ab"):
                (self.folder / "pictures" / split / name).mkdir(parents=True)
                for i in range(3):
                    write_png(self.folder / "pictures" / split / name / f"{i}.png", 16, 16, 90 * number + 5 * i)
        self.run_program("--config", self.folder_config("teacher", normalisation="imagenet", input_size=20), "--device", "cpu")
        self.run_program("export", "runs/teacher", "--checkpoint", "last", "--output", "teacher.safetensors")
        weights = ("--set", "model.pretrained=teacher.safetensors", "--device", "cpu")
        config = self.folder_config("pupil")
        begun = self.run_program("--config", config, *weights)
        self.assertRegex(begun.stderr, r"auto.*imagenet")
        self.assertEqual(self.input_of("pupil"), self.input_of("teacher"))
        self.assertEqual(self.input_of("pupil")["size"], [20, 20])
        self.assertIn("input_size: auto", (self.folder / "runs/pupil/config.yaml").read_text())

        # Neither the file nor the images decide any more.
        self.run_program("--config", config, *weights, "--set", "name=whole", "--set", "train.epochs=2")
        (self.folder / "teacher.safetensors").unlink()
        self.assertEqual(self.run_program("eval", "runs/pupil", "--device", "cpu").stdout, begun.stdout)
        self.run_program("predict", "runs/pupil", "pictures/test", "--rule", "top:1", "--device", "cpu")
        self.run_program("--resume", "runs/pupil", "--config", config, *weights, "--set", "train.epochs=2")
        self.assertEqual(self.metrics("pupil"), self.metrics("whole"))

    def test_processes_resume_with_what_their_run_was_trained_with(self):
        self.write_pictures("ab", images=4, step=40)
        config = self.folder_config("pair")
        start = ("--config", config, "--processes", "2", "--device", "cpu", "--set", "data.batch_size=2", "--set", "data.input_size=auto")
        self.run_program("--config", self.folder_config("teacher", normalisation="imagenet", input_size=16), "--device", "cpu")
        self.run_program("export", "runs/teacher", "--checkpoint", "last", "--output", "teacher.safetensors")
        weights = ("--set", "model.pretrained=teacher.safetensors")
        self.run_program(*start, *weights)
        (self.folder / "teacher.safetensors").unlink()
        self.run_program("--resume", "runs/pair", "--processes", "2", "--device", "cpu", "--set", "train.epochs=2")
        provenance = json.loads((self.folder / "runs/pair/provenance.json").read_text())
        self.assertEqual(provenance["input"]["size"], [16, 16])
        self.assertEqual(provenance["resumed"][0]["input"], provenance["input"])

    def test_a_normalisation_that_is_not_the_weights_is_warned_of(self):
        self.write_pictures("ab", images=4, step=40)
        self.run_program("--config", self.folder_config("teacher", normalisation="imagenet", input_size=16), "--device", "cpu")
        weights = ("--set", "model.pretrained=runs/teacher/checkpoints/last.safetensors", "--set", "train.epochs=0", "--device", "cpu")
        told = self.run_program("--config", self.folder_config("pupil", normalisation="none"), *weights).stderr
        self.assertRegex(told, r"warning.*data\.normalisation.*none.*imagenet")
        self.assertEqual(self.input_of("pupil")["mean"], [0, 0, 0])

    def test_weights_of_another_network_are_refused_with_all_that_differs(self):
        self.make_weights()
        error = self.train_tiny("tiny", "--set", "model.pretrained=weights.safetensors", "--set", "model.width=8", expect=2).stderr
        self.assertRegex(error, r"--set model\.pretrained=weights\.safetensors: model\.pretrained: .*other tensors than the model")
        self.assertIn("conv1.weight: [4, 3, 3, 3] float32, expected [8, 3, 3, 3] float32", error)
        self.assertRegex(error, r"\n  layer3.0.conv1.weight: .*\n(  .*\n)*$")
        self.assertFalse((self.folder / "runs/tiny").exists())

    def test_the_network_that_weights_fit_is_named_first(self):
        usual = ("--set", "model.width=16")
        self.train_tiny("tiny", *usual, "--set", "train.epochs=0")
        weights = ("--set", "model.pretrained=runs/tiny/checkpoints/last.safetensors", "--set", "run.dir=runs/other")
        error = self.train_tiny("tiny", *usual, *weights, "--set", "model.name=resnet20", expect=2).stderr
        self.assertIn("has other tensors than the model; they fit model.name: resnet8:\n", error)

    def test_a_file_of_something_else_is_refused(self):
        (self.folder / "weights.pth").write_text("no weights")
        error = self.train_tiny("tiny", "--set", "model.pretrained=weights.pth", expect=2).stderr
        self.assertIn("--set model.pretrained=weights.pth: model.pretrained: 'weights.pth': it is no file of weights", error)

    def test_missing_data_and_weights_are_one_error(self):
        places = {"SETTRAIN_DATA": str(self.folder / "no-data"), "SETTRAIN_WEIGHTS": str(self.folder / "no-weights")}
        command = [PROGRAM, "--config", "plantnet_noised_imbal.yaml", "--device", "cpu"]
        done = subprocess.run(command, cwd=self.folder, env={**environment(), **places}, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)
        for words in (
            f"'{self.folder}/no-data/plantnet_300K' (data.root) is not there",
            "settrain data fetch plantnet300k",
            "zenodo.5645731",
            "resnet50.yaml",
            f"no file '{self.folder}/no-weights/resnet50-0676ba61.pth'",
            "torchvision's ResNet50_Weights.IMAGENET1K_V1",
            "https://download.pytorch.org/models/resnet50-0676ba61.pth",
        ):
            self.assertIn(words, done.stderr)
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main()
