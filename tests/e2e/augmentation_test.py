"""data.augment and data.augmentation: the same bytes wherever they are made, mistakes by their place, and the sheet that shows them."""

import shutil
import struct
import unittest

from program import ProgramTest, main, tensors_of

AUGMENTED = (
    "data.pipeline=cifar", "data.augment=rand(2, 9)", "data.augmentation.rotate=10", "data.augmentation.brightness=0.4",
    "data.augmentation.hue=0.1", "data.augmentation.erase=0.5", "data.augmentation.cutout=4", "data.augmentation.repeats=2",
    "schedule.name=constant",
)  # fmt: skip
SETTINGS = [part for setting in AUGMENTED for part in ("--set", setting)]


class Augmentation(ProgramTest):
    def result(self, name):
        return self.metrics(name), tensors_of(self.folder / "runs" / name / "checkpoints/last.safetensors")

    def train(self, name, *arguments):
        self.train_tiny(name, *SETTINGS, *arguments)
        return self.result(name)

    def test_workers_processes_and_a_resumed_run_change_no_bit(self):
        whole = self.train("whole", "--set", "train.accumulate=2")
        self.assertEqual(self.train("workers", "--set", "train.accumulate=2", "--set", "data.workers=3"), whole)
        self.assertEqual(self.train("processes", "--processes", "2")[1], whole[1])
        self.train("resumed", "--set", "train.accumulate=2", "--set", "train.epochs=1")
        self.run_program("--resume", "runs/resumed", "--device", "cpu", "--set", "train.epochs=2")
        self.assertEqual(self.result("resumed"), whole)
        self.train_tiny("plain", "--set", "data.pipeline=cifar", "--set", "schedule.name=constant", "--set", "train.accumulate=2")
        self.assertNotEqual(self.metrics("plain"), whole[0])

    def test_mistakes_are_told_with_their_place(self):
        for setting, message in (
            ("data.augment=rand(2, 31)", r"data\.augment: 'rand\(2, 31\)': expected rand\(n, m\) with 1 to 16 operations and a magnitude of 0 to 30"),
            ("data.augment=trivail", r"data\.augment: 'trivail' is none of none, trivial, rand\(n, m\), auto_imagenet, auto_cifar, did you mean 'trivial'\?"),
            ("data.augmentation.erase=1.5", r"data\.augmentation\.erase: 1\.5 is out of range, must be >= 0 and <= 1"),
            ("data.augmentation.hue=0.6", r"data\.augmentation\.hue: 0\.6 is out of range, must be >= 0 and <= 0\.5"),
            ("data.augmentation.rotate=-1", r"data\.augmentation\.rotate: -1"),
            ("data.augmentation.erase_fill=black", r"data\.augmentation\.erase_fill: .*data\.augmentation\.erase or cutout above 0"),
            ("data.augmentation.cutout=13", r"data\.augmentation\.cutout: 13 pixels are more than the input's 12"),
        ):
            with self.subTest(setting):
                self.assertRegex(self.train_tiny("bad", "--set", setting, expect=2).stderr, "--set .*" + message)
                self.assertFalse((self.folder / "runs/bad").exists())

    def test_grey_images_have_no_colours_to_change(self):
        self.write_pictures(["a", "b"], 2, 40)
        config = self.write("grey.yaml", "data: {name: image_folder, root: pictures, grey: true, batch_size: 2, input_size: 16, augmentation: {hue: 0.1}}\n"
                            "model: {name: resnet8, width: 4}\nloss: {name: cross_entropy}\ntrain: {epochs: 1}\neval: {top_k: [1], average_k: []}\nselect: [val/top1]\n")  # fmt: skip
        refused = self.run_program("--config", config, "--device", "cpu", expect=2)
        self.assertRegex(refused.stderr, r"grey\.yaml:1:\d+: data\.augmentation\.hue: the images are grey")
        self.run_program("--config", config, "--device", "cpu", "--set", "data.augmentation.hue=0", "--set", "data.augment=trivial")

    def test_features_are_not_augmented(self):
        refused = self.run_program("config", "show", "--config", "own/features.yaml", "--set", "data.augment=trivial", expect=2)
        self.assertRegex(refused.stderr, r"data\.augment: .*images")


@unittest.skipUnless(shutil.which("gnuplot"), "Debian's package gnuplot-nox is not installed")
class Sheet(ProgramTest):
    def test_eight_draws_of_each_image(self):
        self.write_pictures(["a", "b"], 2, 40)
        config = self.write("few.yaml", "data: {name: image_folder, root: pictures, pipeline: imagenet, input_size: 32, augment: trivial}\n")
        done = self.run_program("data", "show", config, "--out", "sheet.png", "--images", "3")
        self.assertIn("8 draws of 3 images are in 'sheet.png'", done.stderr)
        header = (self.folder / "sheet.png").read_bytes()[:24]
        width, height = struct.unpack(">II", header[16:])
        self.assertEqual(width, 8 + 8 * (128 + 8))
        self.assertGreater(height, 3 * 128)
        again = self.run_program("data", "show", config, "--out", "sheet.png", expect=1)
        self.assertIn("--overwrite", again.stderr)
        first = (self.folder / "sheet.png").read_bytes()
        self.run_program("data", "show", config, "--out", "sheet.png", "--images", "3", "--overwrite")
        self.assertEqual((self.folder / "sheet.png").read_bytes(), first)


if __name__ == "__main__":
    main()
