"""settrain embed: the features of images of one's own and of data sets, by runs, exported files and weights alone."""

import json
import os
import shutil
import signal
import struct
import subprocess
import time
import unittest

from program import ProgramTest, environment, main, tensors_of, write_png

PYTHON = os.environ.get("SETTRAIN_PYTHON")
CONFIG = """
data: {name: image_folder, root: pictures, input_size: 16, batch_size: 4, workers: 1}
model: {name: resnet8, width: 4}
train: {epochs: 1}
select: []
eval: {top_k: [1], average_k: []}
"""
CLASSES = ("acer", "quercus", "tilia")
WIDTH = 16  # features of that network


def metadata_of(path):
    content = path.read_bytes()
    return json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]


def rows_of(path):
    """[images][width] of a file's features."""
    kind, (images, width), data = tensors_of(path)["features"]
    assert kind == "F32", kind
    return [struct.unpack_from(f"<{width}f", data, 4 * width * i) for i in range(images)]


class Embed(ProgramTest):
    trained = None  # a copy of what the first test made

    def setUp(self):
        """A run that was trained once, and its exported file."""
        super().setUp()
        self.out = self.folder / "out.safetensors"
        if Embed.trained:
            shutil.copytree(Embed.trained, self.folder, dirs_exist_ok=True)
            return
        self.write_pictures(CLASSES, images=3, step=60)
        self.run_program("--config", self.write("trees.yaml", CONFIG), "--device", "cpu")
        self.run_program("export", "runs/trees", "--output", "trees.safetensors")
        Embed.trained = self.folder.parent / f"{self.folder.name}-trained"
        shutil.copytree(self.folder, Embed.trained)
        unittest.addModuleCleanup(shutil.rmtree, Embed.trained)

    def embed(self, *arguments, model="runs/trees", out="out.safetensors", expect=0):
        return self.run_program("embed", model, *arguments, "--out", out, "--overwrite", "--device", "cpu", expect=expect)

    def test_features_of_files_come_in_order_and_say_where_they_are_from(self):
        self.embed("pictures/test/tilia", "pictures/test/acer/1.png")
        self.assertEqual(list(tensors_of(self.out)), ["features"])
        metadata = metadata_of(self.out)
        self.assertEqual(json.loads(metadata["paths"]), [f"pictures/test/tilia/{i}.png" for i in range(3)] + ["pictures/test/acer/1.png"])
        self.assertEqual(metadata["checkpoint.sha256"], metadata_of(self.folder / "trees.safetensors")["checkpoint.sha256"])
        rows = rows_of(self.out)
        self.assertEqual([len(row) for row in rows], [WIDTH] * 4)
        content = self.out.read_bytes()
        self.embed("pictures/test/tilia", "pictures/test/acer/1.png", "--set", "data.workers=3", model="trees.safetensors")
        self.assertEqual(self.out.read_bytes(), content)

    def test_the_head_makes_the_scores_of_the_features(self):
        self.embed("--split", "test")
        self.run_program("scores", "runs/trees", "--split", "test", "--out", "scores.safetensors", "--device", "cpu")
        weights = tensors_of(self.folder / "trees.safetensors")
        numbers = {name: struct.unpack(f"<{len(weights[name][2]) // 4}f", weights[name][2]) for name in ("fc.weight", "fc.bias")}
        scores = tensors_of(self.folder / "scores.safetensors")
        got = struct.unpack(f"<{9 * 3}f", scores["scores"][2])
        for i, row in enumerate(rows_of(self.out)):
            for c in range(3):
                expected = numbers["fc.bias"][c] + sum(w * x for w, x in zip(numbers["fc.weight"][WIDTH * c :], row))
                self.assertAlmostEqual(got[3 * i + c], expected, places=4)
        labels = tensors_of(self.out)["labels"]
        self.assertEqual(labels, scores["labels"])
        self.assertEqual(labels[:2], ("I64", [9]))
        self.assertEqual(json.loads(metadata_of(self.out)["class_names"]), list(CLASSES))

    def test_another_data_set_with_its_labels(self):
        """Another config's images, by the same model: those of the run in other splits."""
        self.write("others.yaml", CONFIG.replace("root: pictures", "root: others, label_noise: {kind: uniform, rate: 1}"))
        (self.folder / "others").mkdir()
        for ours, theirs in (("train", "test"), ("val", "val"), ("test", "train")):
            shutil.copytree(self.folder / "pictures" / ours, self.folder / "others" / theirs)
        self.embed("--data", "others.yaml", "--split", "train")
        tensors, metadata = tensors_of(self.out), metadata_of(self.out)
        self.assertEqual(json.loads(metadata["paths"])[0], "others/train/acer/0.png")
        self.embed("--split", "test")
        self.assertEqual(tensors_of(self.out), tensors)  # labels too, without label noise
        images = len(rows_of(self.out))
        self.embed("--data", "others.yaml", "--split", "val")
        of_val = len(rows_of(self.out))
        self.embed("--data", "others.yaml", "--split", "val", "--set", "data.calibration_share=0.4", "--set", "data.workers=2")
        self.assertLess(len(rows_of(self.out)), of_val)
        self.assertIn("data.long_tail", self.embed("--data", "others.yaml", "--split", "train", "--set", "data.long_tail.kind=3", expect=2).stderr)
        # The needs of its model do not matter.
        self.write("others.yaml", CONFIG.replace("root: pictures", "root: others").replace("width: 4", "width: 4, trainable: [head]"))
        self.embed("--data", "others.yaml", "--split", "train")
        self.assertEqual(len(rows_of(self.out)), images)

    def test_a_head_on_features_answers_about_those_of_the_same_weights(self):
        self.run_program("--config", "trees.yaml", "--device", "cpu", "--set", "run.dir=runs/others", "--set", "seed=5")
        for name, model in (("ours", "runs/trees"), ("others", "runs/others")):
            self.embed("--split", "train", model=model, out=f"{name}.safetensors")
        self.write("head.yaml", "data: {name: features, train: ours.safetensors, val_size: 2, batch_size: 4}\nmodel: {name: head_only}\n"
                   "train: {epochs: 1}\nselect: []\neval: {top_k: [1], average_k: [], splits: [val]}\n")
        self.run_program("--config", "head.yaml", "--device", "cpu")
        self.run_program("export", "runs/head", "--output", "head.safetensors")
        for model in ("runs/head", "head.safetensors"):
            predict = ("predict", model, "--device", "cpu", "--rule", "top:1", "--features")
            self.assertIn("pictures/train/acer/0.png", self.run_program(*predict, "ours.safetensors").stdout)
            self.assertRegex(self.run_program(*predict, "others.safetensors", expect=1).stderr, "'others.safetensors': other weights made its features")
        # A model with a body may share it with another one.
        predict = ("predict", "runs/trees", "--device", "cpu", "--rule", "top:1", "--features")
        self.assertNotIn("other weights", self.run_program(*predict, "ours.safetensors").stderr)
        self.assertIn("warning: [predict] 'others.safetensors': other weights made its features", self.run_program(*predict, "others.safetensors").stderr)

    def test_images_that_cannot_be_read_are_left_out_and_named(self):
        (self.folder / "pictures/test/acer/1.png").write_text("no image")
        done = self.embed("--split", "test", expect=1)
        self.assertIn("acer/1.png", done.stderr)
        self.assertIn("1 of 9 images", done.stderr)
        self.assertEqual(len(rows_of(self.out)), 8)
        self.assertEqual(tensors_of(self.out)["labels"][1], [8])
        self.assertNotIn("pictures/test/acer/1.png", json.loads(metadata_of(self.out)["paths"]))
        self.out.unlink()
        self.assertIn("gone.png", self.embed("gone.png", expect=1).stderr)
        self.assertFalse(self.out.exists())

    def test_weights_alone_need_no_classes(self):
        self.embed("pictures/test")
        expected = rows_of(self.out)
        tensors = tensors_of(self.folder / "trees.safetensors")
        header, data = {}, b""
        for name, (kind, shape, content) in tensors.items():
            header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
            data += content
        text = json.dumps(header).encode()
        (self.folder / "weights.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
        self.assertIn("--model", self.embed("pictures/test", model="weights.safetensors", expect=1).stderr)
        self.embed("pictures/test", "--model", "resnet8", "--set", "model.width=4", "--input-size", "16", "--normalisation", "none", "--set", "data.batch_size=4", model="weights.safetensors")
        self.assertEqual(rows_of(self.out), expected)

    def test_numpy_loads_the_same_without_pickles(self):
        if not PYTHON:
            self.skipTest("SETTRAIN_PYTHON is not set")
        shutil.copy(self.folder / "pictures/test/acer/0.png", self.folder / "pictures/test/acer/Blüte 🌳.png")
        self.embed("--split", "test")
        self.embed("--split", "test", out="out.npz")
        script = (
            "import numpy, json; f = numpy.load('out.npz')\n"
            "print(json.dumps({'names': sorted(f.files), 'types': [str(f[n].dtype.kind) for n in sorted(f.files)], 'shape': f['features'].shape,\n"
            "  'features': f['features'].tobytes().hex(), 'labels': f['labels'].tobytes().hex(), 'class_names': f['class_names'].tolist(), 'paths': f['paths'].tolist()}))"
        )
        found = json.loads(subprocess.run([PYTHON, "-c", script], cwd=self.folder, env=environment(), check=True, capture_output=True, text=True).stdout)
        self.assertEqual(found["names"], ["checkpoint.sha256", "class_names", "features", "labels", "paths"])
        self.assertEqual(found["types"], ["U", "U", "f", "i", "U"])
        self.assertEqual(found["shape"], [10, WIDTH])
        tensors, metadata = tensors_of(self.out), metadata_of(self.out)
        for name in ("features", "labels"):
            self.assertEqual(bytes.fromhex(found[name]), tensors[name][2])
        for name in ("class_names", "paths"):
            self.assertEqual(found[name], json.loads(metadata[name]))
        self.assertIn("pictures/test/acer/Blüte 🌳.png", found["paths"])

    def test_a_file_appears_whole_or_not_at_all(self):
        for i in range(400):
            path = self.folder / f"many/{i}.png"
            path.parent.mkdir(exist_ok=True)
            write_png(path, 1200, 1200, i % 256)
        process = self.start_program("embed", "runs/trees", "many", "--out", "many.safetensors", "--device", "cpu")
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, stderr)
        self.assertIn("many.safetensors", stderr)
        self.assertEqual([path.name for path in self.folder.iterdir() if "many." in path.name], [])

    def test_what_is_refused(self):
        for arguments in ((), ("pictures/test", "--split", "test"), ("--data", "trees.yaml")):
            self.embed(*arguments, expect=2)
        self.embed("pictures/test", out="out.csv", expect=2)
        self.embed("pictures/test")
        again = self.run_program("embed", "runs/trees", "pictures/test", "--out", "out.safetensors", "--device", "cpu", expect=1)
        self.assertIn("--overwrite", again.stderr)
        self.assertIn("there is no folder", self.embed("pictures/test", out="nowhere/out.npz", expect=1).stderr)
        self.assertIn("the split 'calibration' has no images", self.embed("--split", "calibration", expect=1).stderr)
        self.assertIn("the split 'calibration' has no images", self.run_program("scores", "runs/trees", "--split", "calibration", "--out", "scores.safetensors", "--device", "cpu", expect=1).stderr)
        self.write("grey.yaml", CONFIG.replace("root: pictures", "root: pictures, grey: true"))
        self.assertIn("channels", self.embed("--data", "grey.yaml", "--split", "test", expect=1).stderr)


if __name__ == "__main__":
    main()
