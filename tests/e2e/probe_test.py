"""settrain probe: files of features judged by simple classifiers, against numbers worked out here."""

import json
import math
import random
import struct

from program import ProgramTest, main

CLASSES = 4
TELLING = [0.25, 0.5, 0.75, 1.25, 1.5, 1.75, 2.25]  # numbers of rows that are not equal by chance


class Probe(ProgramTest):
    def features(self, name, images, seed, width=3, classes=CLASSES, names=None, labels=True, tail=None):
        """A safetensors file: clusters around points on a circle. Returns its rows and labels."""
        draw = random.Random(seed)
        given = [i % classes for i in range(images)]
        rows = [[round(math.cos(label * 1.5) + draw.gauss(0, 0.5), 3), round(math.sin(label * 1.5) + draw.gauss(0, 0.5), 3)] + (tail or [draw.gauss(0, 1)] * (width - 2)) for label in given]
        data = [struct.pack(f"<{images * width}f", *(number for row in rows for number in row)), struct.pack(f"<{images}q", *given)]
        tensors = {"features": {"dtype": "F32", "shape": [images, width], "data_offsets": [0, len(data[0])]}}
        if labels:
            tensors["labels"] = {"dtype": "I64", "shape": [images], "data_offsets": [len(data[0]), len(data[0]) + len(data[1])]}
        if names:
            tensors["__metadata__"] = {"class_names": json.dumps(names)}
        header = json.dumps(tensors).encode()
        header += b" " * (-len(header) % 8)
        content = struct.pack("<Q", len(header)) + header + b"".join(data[: 2 if labels else 1])
        (self.folder / name).write_bytes(content)
        return [struct.unpack(f"<{width}f", data[0][4 * width * i : 4 * width * (i + 1)]) for i in range(images)], given

    def probe(self, *arguments, expect=0):
        return self.run_program("probe", "--train", "train.safetensors", "--test", "test.safetensors", *arguments, expect=expect)

    def test_accuracies_are_those_of_a_search_by_hand(self):
        train, train_labels = self.features("train.safetensors", 200, 1)
        test, test_labels = self.features("test.safetensors", 81, 2)
        found = json.loads(self.probe("--neighbours", 5, "--json", "--out", "numbers.json").stdout)
        self.assertEqual(json.loads((self.folder / "numbers.json").read_text()), found)
        results = {result["name"]: result for result in found["results"]}
        votes = []
        for row in test:
            near = sorted((sum((a - b) ** 2 for a, b in zip(row, other)), i) for i, other in enumerate(train))[:5]
            labels = [train_labels[i] for _, i in near]
            votes.append((labels[0], max(range(CLASSES), key=lambda c: (labels.count(c), -c))))
        for name, position in (("nearest_neighbour", 0), ("neighbours", 1)):
            hits = [vote[position] == label for vote, label in zip(votes, test_labels)]
            self.assertAlmostEqual(results[name]["top1"], sum(hits) / len(hits))
            of_class = [[hit for hit, label in zip(hits, test_labels) if label == c] for c in range(CLASSES)]
            self.assertAlmostEqual(results[name]["macro_top1"], sum(sum(hits) / len(hits) for hits in of_class) / CLASSES)
        self.assertIsNone(results["nearest_neighbour"]["top5"])
        self.assertEqual(results["logistic"]["top5"], 1)
        self.assertGreater(results["logistic"]["top1"], 0.5)
        self.assertGreater(results["class_means"]["top1"], 0.5)

    def test_a_config_trains_its_head_beside_them(self):
        for name, images, seed in (("train", 200, 1), ("val", 60, 3), ("test", 80, 2)):
            self.features(f"{name}.safetensors", images, seed)
        self.write("head.yaml", """
data: {name: features, train: train.safetensors, val: val.safetensors, test: test.safetensors, batch_size: 20}
model: {name: head_only}
optimizer: {lr: 0.2}
train: {epochs: 15}
eval: {top_k: [1, 2], average_k: []}
select: [val/top1]
""")
        found = json.loads(self.run_program("probe", "--config", "head.yaml", "--set", "loss.name=focal", "--json", "--device", "cpu").stdout)
        head = found["results"][-1]
        self.assertEqual(head["name"], "head")
        self.assertIn("focal", head["title"])
        self.run_program("--config", "head.yaml", "--set", "loss.name=focal", "--set", "select=[last]", "--device", "cpu")
        trained = json.loads((self.folder / "runs/head/results.json").read_text())
        for metric in ("top1", "macro_top1"):
            self.assertAlmostEqual(head[metric], trained[0]["metrics"]["test"][metric])
        self.assertEqual(len(list((self.folder / "runs").iterdir())), 1)
        self.assertIn("--train", self.run_program("probe", "--config", "head.yaml", "--train", "train.safetensors", expect=2).stderr)
        held_out = json.loads(self.run_program("probe", "--config", "head.yaml", "--set", "data.val=''", "--set", "data.val_size=50", "--json", "--device", "cpu").stdout)
        self.assertEqual((found["train_images"], held_out["train_images"]), (200, 150))

    def test_a_config_of_images_has_the_features_of_its_network(self):
        self.train_tiny("tiny", "--set", "train.epochs=1")
        weights = "runs/tiny/checkpoints/last.safetensors"
        head = ("--set", f"model.pretrained={weights}", "--set", "model.pretrained_head=draw", "--set", "optimizer.head_lr_factor=1", "--set", "train.epochs=3",
                "--set", "data.label_noise.kind=none", "--device", "cpu")
        found = json.loads(self.run_program("probe", "--config", "tiny.yaml", *head, "--c", "1", "--json").stdout)
        for split in ("train", "val", "test"):
            self.run_program("embed", weights, "--split", split, "--out", f"{split}.safetensors", "--device", "cpu")
        by_files = json.loads(self.run_program("probe", "--train", "train.safetensors", "--val", "val.safetensors", "--test", "test.safetensors", "--c", "1", "--json").stdout)
        for ours, theirs in zip(found["results"], by_files["results"]):
            self.assertEqual((ours["name"], ours["top1"]), (theirs["name"], theirs["top1"]))
        self.assertEqual((found["width"], found["results"][-1]["name"]), (by_files["width"], "head"))
        drawn = self.run_program("probe", "--config", "tiny.yaml", "--set", "data.label_noise.kind=none", "--device", "cpu", expect=2).stderr
        self.assertIn("model.pretrained", drawn)
        # As in training, weights are told that do not say how their images were normalised.
        self.run_program("export", "runs/tiny", "--checkpoint", "last", "--out", "weights.safetensors")
        content = (self.folder / "weights.safetensors").read_bytes()
        start = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(content[8:start])
        del header["__metadata__"]
        header = json.dumps(header).encode()
        (self.folder / "foreign.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + content[start:])
        foreign = self.run_program("probe", "--config", "tiny.yaml", *head, "--set", "model.pretrained=foreign.safetensors", "--set", "train.epochs=1", "--c", "1")
        self.assertIn("nothing says how images were normalised", foreign.stderr)
        # Images that are cropped at random have no file of features; the classifiers see the centres of images.
        cropped = json.loads(self.run_program("probe", "--config", "tiny.yaml", *head, "--set", "data.pipeline=cifar", "--c", "1", "--json").stdout)
        self.assertEqual([row["top1"] for row in cropped["results"][:-1]], [row["top1"] for row in found["results"][:-1]])

    def test_c_is_chosen_without_the_test_images(self):
        self.features("train.safetensors", 200, 1)
        self.features("test.safetensors", 80, 2)
        self.features("val.safetensors", 60, 3)
        grid = ("--c", "0.001,0.1,10", "--json")
        by_val = json.loads(self.probe(*grid, "--val", "val.safetensors").stdout)["logistic"]
        self.assertEqual((by_val["chosen_on"], [tried["c"] for tried in by_val["tried"]]), ("val", [0.001, 0.1, 10]))
        by_tenth = json.loads(self.probe(*grid).stdout)["logistic"]
        self.assertEqual(by_tenth["chosen_on"], "train tenth")
        best = max(tried["top1"] for tried in by_tenth["tried"])
        self.assertEqual(by_tenth["c"], next(tried["c"] for tried in by_tenth["tried"] if tried["top1"] == best))
        # The judged classifier is the one of all training images, whatever chose its C.
        alone = json.loads(self.probe("--c", by_tenth["c"], "--json").stdout)["logistic"]
        self.assertEqual((alone["chosen_on"], alone["tried"]), ("none", []))
        self.assertLess(abs(alone["objective"] - by_tenth["objective"]), 1e-4 * alone["objective"])

    def test_an_end_of_the_c_that_are_tried_is_told_where_it_is_the_best(self):
        self.features("train.safetensors", 80, 1)
        self.features("test.safetensors", 40, 2)
        told = self.probe("--c", "1e-12,1").stderr
        self.assertIn("is the largest: try others beyond it", told)
        self.assertNotIn("try others", self.probe("--c", "1,1").stderr)  # equally good

    def test_table_and_options(self):
        self.features("train.safetensors", 40, 1)
        self.features("test.safetensors", 40, 2)
        text = self.probe("--cosine", "--normalise", "l2").stdout
        for word in ("nearest neighbour", "20 nearest neighbours", "nearest class mean", "logistic regression, C = ", "macro top-1"):
            self.assertIn(word, text)
        self.probe("--out", "numbers.json", "--c", "1")
        self.probe("--out", "numbers.json", "--c", "1", expect=1)
        self.probe("--out", "numbers.json", "--c", "1", "--overwrite")

    def test_files_that_do_not_fit_are_refused(self):
        self.features("train.safetensors", 40, 1, names=list("abcd"))
        self.features("test.safetensors", 40, 2, width=4)
        self.assertRegex(self.probe(expect=1).stderr, r"'train.safetensors' and 'test.safetensors'.*3 and 4")
        self.features("test.safetensors", 40, 2, names=list("abdc"))
        self.assertRegex(self.probe(expect=1).stderr, r"class 2 'c' and 'd'")
        self.features("test.safetensors", 40, 2, labels=False)
        self.assertRegex(self.probe(expect=1).stderr, r"'test.safetensors'.*labels")
        self.features("test.safetensors", 40, 1, names=list("abcd"))  # the training images
        self.assertIn("'train.safetensors' and 'test.safetensors' are the same file", self.probe(expect=1).stderr)
        self.features("test.safetensors", 40, 2)
        self.assertIn("'test.safetensors' and 'test.safetensors' are the same file", self.probe("--val", "test.safetensors", expect=1).stderr)
        self.assertIn("there is no folder", self.probe("--out", "nowhere/numbers.json", expect=1).stderr)
        self.features("test.safetensors", 40, 2)
        for c in ("0", "-1", "nan"):
            self.assertIn("--c", self.probe("--c", c, expect=2).stderr)
        self.probe("--neighbours", "0", expect=2)
        self.assertIn("missing.safetensors", self.probe("--val", "missing.safetensors", expect=1).stderr)

    def test_rows_of_two_files_are_told(self):
        self.features("train.safetensors", 60, 1, width=9, tail=TELLING)
        self.features("test.safetensors", 40, 2, width=9, tail=TELLING)
        self.assertNotIn("also in", self.probe().stderr)
        self.features("test.safetensors", 20, 1, width=9, tail=TELLING)
        told = "20 images of test are also in train; the first: row 0 of 'test.safetensors' is the image of row 0 of 'train.safetensors'"
        self.assertIn(told, self.probe().stderr)
        self.write("head.yaml", "data: {name: features, train: train.safetensors, test: test.safetensors}\nmodel: {name: head_only}\n"
                   "loss: {name: cross_entropy}\ntrain: {epochs: 1}\nselect: [last]\neval: {splits: [test], during_training: [], threshold_from: same, top_k: [1]}\n")
        self.assertIn(told, self.run_program("--config", "head.yaml", "--device", "cpu").stderr)
        self.features("test.safetensors", 20, 1)  # rows of three numbers may be equal by chance
        self.features("train.safetensors", 60, 1)
        self.assertNotIn("also in", self.probe().stderr)

    def test_classes_that_are_missing_on_one_side(self):
        self.features("train.safetensors", 40, 1, classes=3)
        self.features("test.safetensors", 40, 2, classes=4)
        found = json.loads(self.probe("--json", "--c", "1").stdout)
        for result in found["results"]:
            self.assertLessEqual(result["macro_top1"], 0.75, result)  # the fourth class cannot be answered
        self.assertEqual(found["results"][3]["top5"], 0.75)
        self.features("train.safetensors", 40, 1, classes=1)
        self.assertIn("one class", self.probe(expect=1).stderr)


if __name__ == "__main__":
    main()
