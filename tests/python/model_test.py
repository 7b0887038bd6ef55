"""settrain.load(): exported models answer in torchvision as in the program."""

from package import PROGRAM, SOURCE, TensorTest, main

import copy
import json
import math
import pathlib
import pickle
import subprocess
import tempfile
import warnings

import numpy
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.torch import save_file

import settrain
from settrain._model import PreparedNetwork

CONFIG = """
data: {name: image_folder, root: pictures, pipeline: cifar, input_size: 32, batch_size: 4, workers: 1, calibration_share: 0.5}
optimizer: {lr: 0.001}
train: {epochs: 6}  # so many that batch norm knows the activations' size
select: []
eval: {top_k: [1], average_k: []}
"""
CLASSES = 6
RULE = "conformal:lac:0.3"


class Load(TensorTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="settrain-python-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        draw = numpy.random.default_rng(1)
        for split, count in (("train", 4), ("val", 8), ("test", 2)):
            for c in range(CLASSES):
                for i in range(count):
                    self.write(f"pictures/{split}/class_{c}/{i}.png", draw.integers(40 * c, 40 * c + 55, (32, 32, 3)))
        self.photographs = numpy.stack([draw.integers(0, 30 * (i + 1), (32, 32, 3)) for i in range(8)])
        for i, pixels in enumerate(self.photographs):
            self.write(f"photos/{i}.png", pixels)

    def write(self, name, pixels):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.astype(numpy.uint8)).save(path)

    def run_program(self, *arguments):
        done = subprocess.run([PROGRAM, *arguments, "--device", "cpu"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def export(self, settings):
        (self.folder / "run.yaml").write_text(CONFIG)
        self.run_program("--config", "run.yaml", *(word for setting in settings for word in ("--set", setting)))
        self.run_program("calibrate", "runs/run", "--rules", RULE, "--temperature", "1.5")
        subprocess.run([PROGRAM, "export", "runs/run", "--output", "model.safetensors"], cwd=self.folder, check=True, capture_output=True)
        return self.folder / "model.safetensors"

    def check(self, *settings):
        path = self.export(settings)
        self.run_program("predict", str(path), "photos", "--out", "out.jsonl", "--rule", f"top:{CLASSES}", "--rule", RULE)
        rows = [json.loads(line)["sets"] for line in (self.folder / "out.jsonl").read_text().splitlines()]
        model = settrain.load(path)
        pixels = torch.from_numpy(self.photographs).to(torch.uint8).permute(0, 3, 1, 2)
        with torch.no_grad():
            images = model.normalise(pixels)
            probabilities, sets = model.probabilities(images), model.sets(images, RULE)
        self.assertEqual(model.class_names, [f"class_{c}" for c in range(CLASSES)])
        self.assertEqual((model.input_size, model.train_counts), ((32, 32), [4] * CLASSES))
        self.assertIn("probability at least 0.7", model.rules[RULE].guarantee)
        for i, row in enumerate(rows):
            every = row[f"top:{CLASSES}"]
            self.assert_close(probabilities[i, every["classes"]], every["probabilities"], 1e-5)
            self.assertEqual(sets[i].nonzero().flatten().tolist(), sorted(row[RULE]["classes"]))
        self.assertGreater(probabilities.std(0).max().item(), 1e-4)  # it sees the images
        with self.assertRaisesRegex(ValueError, "expected one of"):
            model.sets(images, "top:2")
        with self.assertRaisesRegex(ValueError, "pixels: expected uint8"):
            model.normalise(pixels.long())
        for same in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            self.assertTrue(torch.equal(same.probabilities(images), probabilities))
        self.check_rules(path, model, images, sets)
        self.check_forms(path, images, probabilities, sets)
        return model

    def check_forms(self, path, images, probabilities, sets):
        """settrain.load(inference="fast") and "bf16" answer as the exact network does, by the program's layers."""
        fast = settrain.load(path, inference="fast")
        self.assertIsInstance(fast.network, PreparedNetwork)
        self.assertEqual(list(fast.parameters()), [])
        found = fast.probabilities(images)
        self.assertFalse(found.requires_grad)
        self.assert_close(found, probabilities, 1e-4)
        self.assertTrue(torch.equal(fast.sets(images, RULE), sets))
        for same in (copy.deepcopy(fast), pickle.loads(pickle.dumps(fast))):
            self.assertTrue(torch.equal(same.probabilities(images), found))
        with self.assertRaisesRegex(ValueError, "images: expected float32 on the CPU, got torch.float64"):
            fast(images.double())
        broken = images.clone()
        broken[3, 0, 0, 0] = math.nan
        with self.assertRaisesRegex(ValueError, r"images: expected finite numbers, got others in the images \[3\]"):
            fast(broken)
        for batch in (1, 3):
            self.assert_close(fast.probabilities(images[:batch]), probabilities[:batch], 1e-4)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            half = settrain.load(path, inference="bf16")
        if half.network.problem:
            self.assertEqual([str(one.message).partition("inference=")[2] for one in told], ["'bf16': the processor has no instructions for bfloat16; answers are exact"])
            return
        self.assertRegex(str(told[0].message), "its rules were calibrated in fast, and answer in bf16: their guarantees are for the former; scores of some images that calibrated differed by up to [0-9]")
        self.assertFalse(torch.equal(half.probabilities(images), probabilities))
        self.assert_close(half.probabilities(images), probabilities, 0.05)

    def check_rules(self, path, model, images, sets):
        """settrain.sets.load() of the exported file, of the run's folder and of its file of rules."""
        with torch.no_grad():
            scores = model(images)
        self.assertEqual(settrain.sets.load(path), model.rules)
        self.assertTrue(torch.equal(settrain.sets.load(path)[RULE].sets(scores), sets))
        (file,) = (self.folder / "runs/run").glob("rules-*.json")
        of_run = settrain.sets.load(self.folder / "runs/run")
        self.assertEqual(of_run, settrain.sets.load(file))
        scale = model.rules[RULE].score_scale
        self.assertTrue(torch.equal(of_run[RULE].sets(scores * scale), sets))
        self.assertEqual(of_run[RULE].temperature, json.loads(file.read_text())["temperature"])
        with self.assertRaisesRegex(ValueError, "settrain.sets.load"):
            settrain.sets.CalibratedRule(file.read_text())

    def test_a_resnet(self):
        self.check("model.name=resnet18")

    def test_a_normalised_head_and_its_scale(self):
        self.check("model.name=resnet18", "model.head=normalised", "loss.name=ldam", "loss.scale=20")

    def test_a_densenet_without_a_bias(self):
        self.check("model.name=densenet121", "model.head_bias=false")

    def test_a_head_that_is_a_convolution(self):
        self.check("model.name=squeezenet1_0")

    def test_a_normalised_head_in_the_place_of_a_convolution(self):
        self.check("model.name=squeezenet1_0", "model.head=normalised", "loss.name=ldam", "loss.scale=20")

    def test_two_heads_of_a_small_resnet(self):
        self.check("model.name=resnet8", "model.head=two_head", "loss.name=average_k_two_head", "loss.k=2")

    def test_a_densenet_without_bottlenecks(self):
        self.check("model.name=densenet", "model.depth=10", "model.growth=4", "model.bc=false")

    def test_a_transformer_with_an_adapter(self):
        model = self.second_stage("model.adapter.kind=adaptformer", "model.adapter.scale=2", "model.trainable=[adapter, head]", layer_scale=0.1)
        self.assertGreater(model.network.blocks[0].mlp.adaptformer.up.weight.abs().max().item(), 0)

    def test_rules_for_a_place(self):
        path = self.export(["model.name=resnet8"])
        (self.folder / "counts.csv").write_text("class,weight\nclass_0,5\nclass_2,1\nclass_5,2\n")
        rules = [RULE, "top:2", "conformal:lac:0.2:classwise"]
        self.run_program("calibrate", "runs/run", "--rules", *rules, "--prior", "alps=counts.csv", "--temperature", "1.5")
        path.unlink()
        subprocess.run([PROGRAM, "export", "runs/run", "--output", path], cwd=self.folder, check=True, capture_output=True)
        asked = [word for rule in rules for word in ("--rule", rule)]
        self.run_program("predict", path, "photos", "--out", "out.jsonl", "--prior", "alps", *asked)
        rows = [json.loads(line)["sets"] for line in (self.folder / "out.jsonl").read_text().splitlines()]
        model, there = settrain.load(path), settrain.sets.load(path, place="alps")
        self.assertEqual(sorted(there), sorted(rules))
        with torch.no_grad():
            scores = model(model.normalise(torch.from_numpy(self.photographs).to(torch.uint8).permute(0, 3, 1, 2)))
        for name, rule in there.items():
            self.assertEqual((rule.name, rule.place), (name, "alps"))
            self.assertEqual(settrain.sets.CalibratedRule(str(rule)), rule)
            self.assertNotEqual(rule, model.rules[name])
            sets = rule.sets(scores)
            self.assertEqual([row.nonzero().flatten().tolist() for row in sets], [sorted(row[name]["classes"]) for row in rows])
            self.assertFalse(sets[:, [1, 3, 4]].any())
        self.assertFalse(all(torch.equal(there[name].sets(scores), model.rules[name].sets(scores)) for name in there))
        self.assertIsNone(model.rules[RULE].place)
        with self.assertRaisesRegex(ValueError, "^place: expected one of .'alps'."):
            settrain.sets.load(path, place="berlin")

    def test_files_that_cannot_be_loaded(self):
        self.export(["model.name=resnet8"])
        with self.assertRaisesRegex(ValueError, "runs/run': a folder; load.. reads the file that `settrain export .*runs/run` writes"):
            settrain.load(self.folder / "runs/run")
        with self.assertRaisesRegex(ValueError, "last.safetensors.*settrain export RUN"):
            settrain.load(self.folder / "runs/run/checkpoints/last.safetensors")
        weights = {"fc.weight": torch.zeros(3, 3)}
        torch.save(weights, self.folder / "weights.pth")
        numpy.savez(self.folder / "scores.npz", scores=numpy.zeros(3))
        save_file(weights, self.folder / "foreign.safetensors")
        (self.folder / "text.safetensors").write_text("no model")
        (rules,) = (self.folder / "runs/run").glob("rules-*.json")
        expected = "load() reads the safetensors file that `settrain export RUN` writes"
        elsewhere = ". Weights of other programs go into their own network, by its load_state_dict()"
        for path, kind, advice in (
            (self.folder / "weights.pth", "a file of torch.save()", elsewhere),
            (self.folder / "scores.npz", "an archive of numpy.savez()", ""),
            (self.folder / "foreign.safetensors", "a safetensors file that `settrain export` did not write", elsewhere),
            (self.folder / "text.safetensors", "a text file", ""),
            (self.folder / "runs/run/checkpoints/last.safetensors", "a checkpoint of a run", ""),
            (SOURCE / "tests/golden/checkpoints/version_1.safetensors", "a checkpoint of a run", ""),
            (rules, "a JSON file", ", and settrain.sets.load() reads a file of rules"),
        ):
            with self.subTest(path=path.name), self.assertRaises(ValueError) as caught:
                settrain.load(path)
            self.assertEqual(str(caught.exception), f"{str(path)!r}: no model that settrain exported: this is {kind}; {expected}{advice}")
        cut = self.folder / "cut.safetensors"
        cut.write_bytes((self.folder / "model.safetensors").read_bytes()[:-4])
        with self.assertRaisesRegex(ValueError, "cut.safetensors': the file is cut off or damaged, so export it again .settrain export RUN."):
            settrain.load(cut)
        with self.assertRaisesRegex(ValueError, "plants.onnx.*onnxruntime.*docs/file_formats.md"):
            settrain.load(self.folder / "plants.onnx")
        with self.assertRaises(FileNotFoundError):
            settrain.load(self.folder / "missing.safetensors")

    def test_forms_that_cannot_be_had(self):
        path = self.export(["model.name=resnet8"])
        with self.assertRaisesRegex(ValueError, "inference: expected 'exact', 'fast' or 'bf16', got 'quick'"):
            settrain.load(path, inference="quick")
        with self.assertRaisesRegex(ValueError, "inference: 'fast' is for the CPU, and the device is cuda"):
            settrain.load(path, inference="fast", device="cuda")
        with safe_open(path, framework="pt") as file:
            weights, metadata = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()
        weights["fc.weight"] *= 3e38
        save_file(weights, path, metadata)
        with self.assertWarnsRegex(UserWarning, "inference='fast': scores of a random image are not finite; answers are exact"):
            model = settrain.load(path, inference="fast")
        self.assertNotIsInstance(model.network, PreparedNetwork)
        del weights["fc.weight"]
        save_file(weights, path, metadata)
        with self.assertRaisesRegex(ValueError, "no model that settrain exported.*fc.weight: its weights are missing"):
            settrain.load(path, inference="fast")

    def test_rules_of_another_precision(self):
        path = self.export(["model.name=resnet8", "train.precision=bf16"])
        with self.assertWarnsRegex(UserWarning, "its rules were calibrated in bf16, and answer in exact"):
            settrain.load(path)

    def second_stage(self, *settings, layer_scale=0):
        """check() of a small transformer that goes on from another one's weights."""
        size = ("model.name=vit", "model.patch=8", "model.width=24", "model.depth=2", "model.heads=3", f"model.layer_scale={layer_scale}", "optimizer.name=adamw", "optimizer.lr=0.01")
        self.export(size)
        (self.folder / "runs/run").rename(self.folder / "runs/first")
        (self.folder / "model.safetensors").unlink()
        return self.check(*size, "model.pretrained=runs/first/checkpoints/last.safetensors", *settings)

    def test_lora(self):
        self.second_stage("model.adapter.kind=lora", "model.trainable=[adapter, head]")

    def test_a_scaled_head(self):
        self.second_stage("model.head=scaled", "model.trainable=[head]")


if __name__ == "__main__":
    main()
