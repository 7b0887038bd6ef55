"""settrain export --format onnx: ONNX's checker passes, and ONNX Runtime answers as the program does."""

from package import PROGRAM, TensorTest, main

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime
import torch
import torchvision
from PIL import Image
from safetensors.numpy import load_file, save_file

sys.path.insert(0, os.path.join(os.environ["SETTRAIN_SOURCE_DIR"], "scripts"))
from reference_models import EfficientNetLite0

CONFIG = """
data: {name: image_folder, root: pictures, pipeline: cifar, input_size: 32, batch_size: 16, workers: 1}
train: {epochs: 1}
optimizer: {lr: 0.001}
select: []
eval: {top_k: [1], average_k: []}
"""
CLASSES, IMAGES = 6, 20  # of the test split, for each class


class Export(TensorTest):
    def setUp(self):
        torch.manual_seed(0)  # of the networks below
        folder = tempfile.TemporaryDirectory(prefix="settrain-onnx-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.draw_images(32)

    def draw_images(self, side):
        draw = numpy.random.default_rng(1)
        self.pixels = []
        for split, count in (("train", 8), ("val", IMAGES), ("test", IMAGES)):
            for c in range(CLASSES):
                for i in range(count):
                    pixels = draw.integers(20 * c, 20 * c + 40 + 6 * i, (side, side, 3)).astype(numpy.uint8)
                    path = self.folder / f"pictures/{split}/class_{c}/{i:02}.png"
                    path.parent.mkdir(parents=True, exist_ok=True)
                    Image.fromarray(pixels).save(path)
                    if split == "test":
                        self.pixels.append(pixels.transpose(2, 0, 1))
        self.pixels = numpy.stack(self.pixels)

    def run_program(self, *arguments, expect=0):
        done = subprocess.run([PROGRAM, *arguments], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done.stderr

    def train(self, name, *settings):
        (self.folder / f"{name}.yaml").write_text(CONFIG)
        self.run_program("--config", f"{name}.yaml", "--device", "cpu", *(word for setting in settings for word in ("--set", setting)))

    def export(self, name, *options):
        self.run_program("export", f"runs/{name}", "--format", "onnx", "--output", f"{name}.onnx", "--overwrite", *options)
        path = str(self.folder / f"{name}.onnx")
        onnx.checker.check_model(path, full_check=True)
        return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])

    def check_network(self, name, *settings, scale=1, tolerance=1e-4):
        """`scale`: of the loss, by which `settrain scores` has multiplied."""
        self.train(name, f"model.name={name}", *settings)
        session = self.export(name)
        self.run_program("scores", f"runs/{name}", "--split", "test", "--out", "scores.safetensors", "--device", "cpu", "--overwrite")
        expected = load_file(self.folder / "scores.safetensors")["scores"] / scale
        self.assertGreater(expected.std(0).max(), 1e-3)  # it sees the images
        self.assert_close(session.run(["scores"], {"pixels": self.pixels})[0], expected, tolerance)
        self.assert_close(session.run(["scores"], {"pixels": self.pixels[:1]})[0], expected[:1], tolerance)  # a batch of another size
        shutil.rmtree(self.folder / "runs")

    def check_fitted_network(self, name, network, *settings):
        """From weights whose batch statistics are those of the images. These differ little, so that float32's roundings grow from norm to norm."""
        for module in network.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.momentum = None  # the mean of all batches, here of one
        with torch.no_grad():
            network.train()(torch.from_numpy(self.pixels) / 255)
        torch.save(network.state_dict(), self.folder / "fitted.pth")
        settings = (*settings, "model.pretrained=fitted.pth", "model.trainable=[head]", "data.normalisation=none", "optimizer.lr=1e-6")
        self.check_network(name, *settings, tolerance=2e-3)

    def test_every_kind_of_network(self):
        self.check_network("resnet8", "model.width=4")
        self.check_network("densenet", "model.depth=10", "model.growth=4")
        self.check_network("resnet18", "model.head_bias=false")
        self.check_network("resnext50_32x4d")
        self.check_network("densenet121")
        self.check_network("convnext_tiny")
        self.check_network("vit_b_16")
        parts = ("model.patch=8", "model.width=24", "model.depth=2")
        self.check_network("vit", *parts, "model.registers=4", "model.layer_scale=0.5", "model.pooling=both")
        self.check_network("vit", *parts, "model.ln_pre=true", "model.activation=quick_gelu", "model.pooling=mean")
        # As they are drawn, their narrow convolutions leave nothing of an image in evaluation, until the statistics are its own.
        self.check_fitted_network("efficientnet_b0", torchvision.models.efficientnet_b0(num_classes=CLASSES))
        for name in ("mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x1_0"):
            self.check_fitted_network(name, getattr(torchvision.models, name)(num_classes=CLASSES))
        self.check_fitted_network("efficientnet_lite0", EfficientNetLite0(CLASSES))

    def test_networks_of_larger_images(self):
        """Poolings of windows that reach beyond the image, of parts that overlap, and with zeros around the image."""
        side = 96
        self.draw_images(side)
        size = f"data.input_size={side}"
        self.check_network("squeezenet1_0", size)
        alexnet = torchvision.models.alexnet(num_classes=CLASSES)
        for parameter in alexnet.parameters():
            if parameter.dim() > 1:
                torch.nn.init.kaiming_normal_(parameter)  # as PyTorch draws them, the scores hardly depend on the image
        self.check_fitted_network("alexnet", alexnet, size)
        self.check_fitted_network("inception_v3", torchvision.models.inception_v3(num_classes=CLASSES, aux_logits=False, init_weights=False), size)

    def test_adapters(self):
        parts = ("model.patch=8", "model.width=24", "model.depth=2")
        self.train("first", "model.name=vit", *parts)
        shutil.move(self.folder / "runs/first/checkpoints/last.safetensors", self.folder / "first.safetensors")
        for kind in ("lora", "adaptformer"):
            self.check_network("vit", *parts, "model.pretrained=first.safetensors", f"model.adapter.kind={kind}", "optimizer.lr=0.1")

    def test_heads(self):
        self.check_network("resnet20", "model.width=4", "model.head=normalised", "loss.name=ldam", "loss.scale=40", scale=40)
        self.check_network("resnet32", "model.width=4", "model.head=two_head", "loss.name=average_k_two_head", "loss.k=2")
        self.train("first", "model.name=resnet8", "model.width=4")
        shutil.move(self.folder / "runs/first/checkpoints/last.safetensors", self.folder / "first.safetensors")
        self.check_network("resnet8", "model.width=4", "model.head=scaled", "model.trainable=[head]", "model.pretrained=first.safetensors")

    def predicted(self, name, rule):
        """The classes of each test image's set, and the probabilities of all classes."""
        self.run_program("predict", f"runs/{name}", "pictures/test", "--rule", rule, "--rule", f"top:{CLASSES}", "--out", "out.jsonl", "--overwrite", "--device", "cpu")
        rows = [json.loads(line)["sets"] for line in (self.folder / "out.jsonl").read_text().splitlines()]
        every = [row[f"top:{CLASSES}"] for row in rows]
        p = numpy.array([[q for _, q in sorted(zip(row["classes"], row["probabilities"]))] for row in every])
        return [sorted(row[rule]["classes"]) for row in rows], p

    def test_rules(self):
        calibrated = ["average:2", "average-error:0.3", *(f"conformal:{score}:0.3" for score in ("lac", "aps", "raps", "saps", "pas"))]
        calibrated += [f"conformal:lac:0.3:{of}" for of in ("classwise", "clustered")] + ["conformal:aps:0.3:classwise"]
        self.train("resnet8", "model.width=4", "data.calibration_share=0.5", "train.epochs=4", "optimizer.lr=0.02")
        self.run_program("calibrate", "runs/resnet8", "--device", "cpu", "--rules", *calibrated)
        for rule in ["top:2", "error:0.2", *calibrated]:
            with self.subTest(rule=rule):
                session = self.export("resnet8", "--rule", rule)
                probabilities, sets = session.run(["probabilities", "set"], {"pixels": self.pixels})
                expected, p = self.predicted("resnet8", rule)
                self.assert_close(probabilities, p, 1e-5)
                self.assertEqual([row.nonzero()[0].tolist() for row in sets], expected)
                self.assertGreater(len({len(row) for row in expected}), 0 if rule == "top:2" else 1)
                facts = session.get_modelmeta().custom_metadata_map
                self.assertIn("the shorter side is scaled to", facts["preprocessing"])
                self.assertEqual((facts["rule"], json.loads(facts["classes"])), (rule, [f"class_{c}" for c in range(CLASSES)]))

    def test_rules_of_a_network_that_is_sure(self):
        """A scale of 100 gives probabilities of 0 and 1 in float32: the sets of both still agree, and follow alpha."""
        self.train("resnet8", "model.width=4", "model.head=normalised", "loss.name=ldam", "loss.scale=100", "data.calibration_share=0.5",
                   "train.epochs=4", "optimizer.lr=0.02")
        rules = [f"conformal:{score}:{alpha}" for score in ("lac", "aps", "raps", "saps", "pas") for alpha in (0.3, 0.1)]
        rules += ["average:2", "average-error:0.1", "conformal:lac:0.3:classwise", "conformal:lac:0.3:interpolated(0.5)", "conformal:aps:0.3:classwise"]
        rules += ["conformal:risk:0.3", "conformal:lac(nonempty=true):0.8", "conformal:aps(nonempty=true):0.8:classwise"]
        self.run_program("calibrate", "runs/resnet8", "--device", "cpu", "--rules", *rules)
        sizes = {}
        for rule in ["error:0.001", *rules]:
            with self.subTest(rule=rule):
                session = self.export("resnet8", "--rule", rule)
                probabilities, sets = session.run(["probabilities", "set"], {"pixels": self.pixels})
                self.assertGreater((probabilities > 1 - 1e-7).any(1).mean(), 0.05)
                expected, _ = self.predicted("resnet8", rule)
                self.assertEqual([row.nonzero()[0].tolist() for row in sets], expected)
                sizes[rule] = sets.sum()
        for score in ("lac", "aps", "raps", "saps", "pas"):
            self.assertGreater(sizes[f"conformal:{score}:0.1"], sizes[f"conformal:{score}:0.3"])

    def test_rules_of_probabilities_that_float64_has_not(self):
        self.train("resnet8", "model.width=4", "model.head=normalised", "loss.name=ldam", "loss.scale=6000", "data.calibration_share=0.5")
        rules = ["average:3.5", "average:4.5", "conformal:lac:0.02"]
        self.run_program("calibrate", "runs/resnet8", "--device", "cpu", "--rules", *rules)
        for rule in rules:
            with self.subTest(rule=rule):
                session = self.export("resnet8", "--rule", rule)
                scores, sets = session.run(["scores", "set"], {"pixels": self.pixels})
                self.assertGreater((6000 * (scores.max(1) - scores.min(1))).max(), 745)  # exp(-745) is 0
                expected, _ = self.predicted("resnet8", rule)
                self.assertEqual([row.nonzero()[0].tolist() for row in sets], expected)
                self.assertGreater(len(set(sets.sum(1))), 1)

    def test_a_class_that_ties_with_its_threshold_in_every_image_stays(self):
        """A network that has collapsed gives every image its biases: what runtimes round otherwise must not cost a class in every set."""
        self.train("first", "model.name=resnet8", "model.width=4")
        self.run_program("export", "runs/first", "--output", "first.safetensors")
        weights = load_file(self.folder / "first.safetensors")
        weights["fc.weight"] *= 0
        rules = [f"conformal:lac:0.{alpha}" for alpha in range(1, 8)] + ["conformal:pas:0.2", "conformal:aps:0.2", "conformal:raps(k=2):0.3", "conformal:saps:0.2", "average-error:0.3"]
        for seed in range(3):
            weights["fc.bias"] = numpy.random.default_rng(seed).normal(size=CLASSES).astype(numpy.float32)
            save_file(weights, self.folder / "collapsed.safetensors")
            name = f"collapsed{seed}"
            self.train(name, "model.name=resnet8", "model.width=4", "data.calibration_share=0.5", "train.epochs=0", "model.pretrained=collapsed.safetensors")
            self.run_program("calibrate", f"runs/{name}", "--device", "cpu", "--rules", *rules)
            for rule in rules:
                with self.subTest(rule=rule, seed=seed):
                    sets = self.export(name, "--rule", rule).run(["set"], {"pixels": self.pixels})[0]
                    self.assertEqual([row.nonzero()[0].tolist() for row in sets], self.predicted(name, rule)[0])

    def test_the_rounding_of_the_longer_side_is_told(self):
        for pipeline, rounding in (("plain", "rounded to the nearest number"), ("imagenet", "rounded down")):
            self.train(pipeline, "model.width=4", "data.input_size=31", f"data.pipeline={pipeline}")
            self.assertIn(rounding, self.export(pipeline).get_modelmeta().custom_metadata_map["preprocessing"])

    def test_pixels_as_numbers(self):
        self.train("resnet8", "model.width=4")
        of_bytes = self.export("resnet8").run(["scores"], {"pixels": self.pixels})[0]
        of_floats = self.export("resnet8", "--input", "float").run(["scores"], {"pixels": self.pixels.astype(numpy.float32) / 255})[0]
        self.assert_close(of_floats, of_bytes, 1e-5)

    def test_what_is_refused(self):
        self.train("resnet8", "model.width=4", "data.calibration_share=0.5")
        refused = [
            (["--format", "onnx", "--rule", "average:2"], "calibrate"),
            (["--format", "onnx", "--rule", "top:9"], "6"),
            (["--rule", "top:2"], "--format onnx"),
        ]
        for options, message in refused:
            self.assertIn(message, self.run_program("export", "runs/resnet8", "--output", "refused", *options, expect=2))
        self.run_program("calibrate", "runs/resnet8", "--device", "cpu", "--rules", "conformal:aps(randomised=true):0.3", "conformal:lac:0.3:rc3p")
        for rule, message in (("conformal:aps(randomised=true):0.3", "randomised"), ("conformal:lac:0.3:rc3p", "ranks")):
            self.assertIn(message, self.run_program("export", "runs/resnet8", "--format", "onnx", "--output", "refused", "--rule", rule, expect=2))
        self.assertFalse((self.folder / "refused").exists())


if __name__ == "__main__":
    main()
