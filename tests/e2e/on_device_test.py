"""data.on_device: images that stay on the model's device. Here that is the CPU, and nothing may change but where they lie."""

import json
import random
import struct
import unittest

from program import ProgramTest, tensors_of

CONFIG = """
seed: 3
data:
  name: fashion_mnist
  root: images
  verify: false
  val_size: 30
  pipeline: cifar
  batch_size: 8
  workers: 2
model: {name: resnet8, width: 4}
loss: {name: cross_entropy}
optimizer: {lr: 0.05}
schedule: {name: constant}
train: {epochs: 2}
select: [val/top1]
eval: {top_k: [1, 2], average_k: [2]}
"""


def write_idx(path, sizes, content):
    path.write_bytes(struct.pack(f">BBBB{len(sizes)}I", 0, 0, 8, len(sizes), *sizes) + content)


class OnDevice(ProgramTest):
    def setUp(self):
        super().setUp()
        draw = random.Random(5)
        (self.folder / "images").mkdir()
        for name, images in (("train", 100), ("t10k", 30)):
            write_idx(self.folder / f"images/{name}-images-idx3-ubyte", (images, 28, 28), draw.randbytes(images * 28 * 28))
            write_idx(self.folder / f"images/{name}-labels-idx1-ubyte", (images,), bytes(i % 10 for i in range(images)))

    def train(self, name, where, *settings, expect=0):
        config = self.write(f"{name}.yaml", CONFIG)
        arguments = [part for setting in (f"data.on_device={where}", *settings) for part in ("--set", setting)]
        return self.run_program("--config", config, "--device", "cpu", *arguments, expect=expect)

    def weights(self, name):
        return tensors_of(self.folder / "runs" / name / "checkpoints/last.safetensors")

    def check_same(self, a, b):
        self.assertEqual(self.weights(a), self.weights(b))
        self.assertEqual(self.metrics(a), self.metrics(b))

    def test_a_run_ends_in_the_same_weights(self):
        for i, settings in enumerate(
            [
                (),
                ("train.channels_last=false",),
                ("train.precision=bf16", "train.epochs=1"),
                ("train.mix=either", "train.accumulate=2", "data.sampler=class_balanced"),
                ("data.pipeline=plantnet", "data.input_size=24", "data.resize_size=28", "eval.crops=ten", "train.epochs=1"),
            ]
        ):
            with self.subTest(settings):
                host, device = f"host{i}", f"device{i}"
                self.assertNotIn("the images stay", self.train(host, "auto", *settings).stderr)
                self.assertIn("[data] the images stay on cpu, in 99.5 KiB\n", self.train(device, "on", *settings).stderr)
                self.check_same(host, device)
                self.assertEqual(*(json.loads((self.folder / "runs" / name / "results.json").read_text()) for name in (host, device)))

    def test_a_run_goes_on_with_another_value(self):
        self.train("whole", "off")
        self.train("parts", "off", "train.epochs=1")
        log = self.run_program("--resume", "runs/parts", "--set", "train.epochs=2", "--set", "data.on_device=on", "--device", "cpu").stderr
        self.assertIn("the images stay on cpu", log)
        self.check_same("whole", "parts")
        self.assertIn("val", self.run_program("eval", "runs/parts", "--set", "data.on_device=off", "--device", "cpu").stdout)

    def test_a_dry_run_counts_the_memory(self):
        self.assertRegex(self.dry_run("on"), r"\nmemory .*; 99.5 KiB of it for images that stay on cpu\n")
        self.assertNotIn("images that stay", self.dry_run("auto"))

    def dry_run(self, where):
        config = self.write("tiny.yaml", CONFIG)
        return self.run_program("--config", config, "--device", "cpu", "--set", f"data.on_device={where}", "--dry-run").stdout

    def test_on_is_refused_with_the_reason(self):
        for reason, settings in {
            "in training the pipeline imagenet resizes images of 28x28 pixels": ("data.pipeline=imagenet",),
            "in evaluation the pipeline imagenet2018 resizes": ("data.pipeline=imagenet2018", "data.input_size=25"),
        }.items():
            message = self.train("refused", "on", *settings, expect=2).stderr
            self.assertRegex(message, rf"data.on_device: on: {reason}.*; expected auto or off")
            self.assertFalse((self.folder / "runs/refused").exists())
        config = self.write("made.yaml", "data: {name: synthetic, on_device: on}")
        message = self.run_program("--config", config, "--device", "cpu", expect=2).stderr
        self.assertRegex(message, r"made.yaml:1:\d+: data.on_device: on: the images of synthetic do not lie in memory; expected auto or off")


if __name__ == "__main__":
    unittest.main()
