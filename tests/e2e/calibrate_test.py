"""settrain scores and settrain calibrate: from a run to rules, and from files of scores."""

import base64
import json
import math
import random
import struct
import zipfile

from program import TINY, ProgramTest, main, tensors_of, write_png

RULES = ("--rules", "top:2", "conformal:lac:0.2", "average-error:0.2")


def npy(descr, shape, values):
    """The bytes of a .npy file."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header = header.ljust(117) + "\n"
    kind = {"<f4": "f", "<i8": "q", "<u2": "H", "<u4": "I", "<u8": "Q"}[descr]
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}{kind}", *values)


class Calibrate(ProgramTest):
    def train(self, *settings):
        self.write("tiny.yaml", TINY)
        arguments = [word for setting in ("select=[val/top2]", *settings) for word in ("--set", setting)]
        return self.run_program("--config", "tiny.yaml", "--device", "cpu", *arguments)

    def calibrate(self, *arguments, expect=0):
        return self.run_program("calibrate", *arguments, *(() if "--scores" in arguments else ("--device", "cpu")), expect=expect)

    def npz(self, name, scores, labels, compression=zipfile.ZIP_STORED, label_type="<i8"):
        with zipfile.ZipFile(self.folder / name, "w", compression) as archive:
            classes = len(scores[0])
            archive.writestr("scores.npy", npy("<f4", (len(scores), classes), [score for row in scores for score in row]))
            archive.writestr("labels.npy", npy(label_type, (len(labels),), labels))

    def test_a_run_keeps_its_rules_and_says_what_they_promise(self):
        self.train("data.calibration_share=0.5")
        done = json.loads(self.calibrate("runs/tiny", *RULES, "--json").stdout)
        self.assertIn("of calibration", done["calibrated_on"])
        self.assertIn("of test", done["judged_on"])
        self.assertEqual([rule["rule"] for rule in done["rules"]], list(RULES[1:]))
        self.assertIn("at least 0.8", done["rules"][1]["guarantee"])
        self.assertEqual(done["rules"][0]["quality"]["mean_size"], 2)
        kept = list((self.folder / "runs/tiny").glob("rules-*.json"))
        self.assertEqual(len(kept), 1)
        # Scores of the same images in files give the same sets.
        for split in ("calibration", "test"):
            self.run_program("scores", "runs/tiny", "--split", split, "--out", f"{split}.safetensors", "--device", "cpu")
        files = json.loads(self.calibrate("--scores", "calibration.safetensors", "--test", "test.safetensors", *RULES, "--json").stdout)
        self.assertEqual([rule["quality"] for rule in files["rules"]], [rule["quality"] for rule in done["rules"]])
        self.run_program("scores", "runs/tiny", "--out", "test.safetensors", "--device", "cpu", expect=1)  # is there already
        self.run_program("scores", "runs/tiny", "--out", "test.npz", "--device", "cpu", expect=2)

    def test_images_that_chose_the_epoch_guarantee_nothing(self):
        self.train()
        done = self.calibrate("runs/tiny", *RULES, "--figure", "picture")
        self.assertIn("no guarantee: these validation images may have chosen the epoch", done.stdout)
        self.assertTrue((self.folder / "picture/calibration.svg").is_file())
        kept = (self.folder / "runs/tiny/rules-best-val-top2.json").read_text()
        self.calibrate("runs/tiny", "--rules", "conformal:lac:0.2", "--share", "0.5", "--dry-run")
        self.assertEqual((self.folder / "runs/tiny/rules-best-val-top2.json").read_text(), kept)
        other = self.calibrate("runs/tiny", "--rules", "conformal:lac:0.2", "--share", "0.5", "--temperature", "fit")
        self.assertIn("no longer kept", other.stderr)
        self.assertIn("top:2, average-error:0.2", other.stderr)
        # Nor do their scores in a file.
        self.run_program("scores", "runs/tiny", "--out", "val.safetensors", "--device", "cpu")
        done = self.calibrate("--scores", "val.safetensors", "--rules", "conformal:lac:0.2", "conformal:lac:0.2", "--json")
        rules = json.loads(done.stdout)["rules"]
        self.assertEqual(len(rules), 1)
        self.assertIn("no guarantee: these validation images may have chosen", rules[0]["guarantee"])

    def test_test_images_that_chose_the_epoch_guarantee_nothing(self):
        self.train("select=[test/top2]", "eval.during_training=[test]")
        for split, guaranteed in (("test", False), ("val", False)):
            file = f"{split}.safetensors"
            self.run_program("scores", "runs/tiny", "--split", split, "--out", file, "--device", "cpu")
            done = json.loads(self.calibrate("--scores", file, "--rules", "conformal:lac:0.2", "--json").stdout)
            self.assertEqual(not done["rules"][0]["guarantee"].startswith("no guarantee"), guaranteed, split)
        self.assertIn("test/top2", json.loads(self.calibrate("--scores", "test.safetensors", "--rules", "conformal:lac:0.2", "--json").stdout)["rules"][0]["guarantee"])

    def test_rules_stay_where_training_on_changes_no_best_weights(self):
        # The sets of so small an alpha have all classes, after every epoch: the first one stays the best.
        full = "conformal:lac:0.001"
        self.train("data.calibration_share=0.5", "train.epochs=1", f'eval.rules=["{full}"]', f'select=["val/size@{full}"]')
        self.calibrate("runs/tiny", *RULES)
        best = next((self.folder / "runs/tiny/checkpoints").glob("best-*"))
        before = best.read_bytes()
        self.run_program("--resume", "runs/tiny", "--device", "cpu", "--set", "train.epochs=2")
        self.assertEqual(best.read_bytes(), before)
        write_png(self.folder / "photo.png", 12, 12, 100)
        self.assertIn("the default rule", self.run_program("predict", "runs/tiny", "photo.png", "--device", "cpu").stderr)
        # A process that was killed before the link was made leaves it to the next.
        best.unlink()
        self.run_program("--resume", "runs/tiny", "--device", "cpu", "--set", "train.epochs=3", expect=1)  # lost
        # Rules of other weights stop what needs them, and nothing else.
        self.train("train.epochs=1", "run.dir=runs/other")
        rules = next((self.folder / "runs/tiny").glob("rules-*.json"))
        (self.folder / "runs/other/rules-best-val-top2.json").write_text(rules.read_text())
        self.assertIn("rules-best-val-top2.json", self.run_program("predict", "runs/other", "photo.png", "--device", "cpu", expect=1).stderr)
        done = self.run_program("predict", "runs/other", "photo.png", "--rule", "top:1", "--device", "cpu")
        self.assertIn("rules-best-val-top2.json", done.stderr)

    def test_a_selection_begins_anew_where_its_images_have_changed(self):
        self.write_pictures(("elm", "oak"), 12, 90)
        self.write(
            "pictures.yaml",
            "data: {name: image_folder, root: pictures, input_size: 16, batch_size: 8, workers: 1, calibration_share: 0.5}\n"
            "model: {name: resnet8, width: 4}\ntrain: {epochs: 1}\nselect: [val/top1]\neval: {top_k: [1], average_k: []}\n",
        )
        run, rule = self.folder / "runs/pictures", ("--rules", "conformal:lac:0.4", "--json")
        guarantee = lambda *more: json.loads(self.calibrate("runs/pictures", *rule, *more).stdout)["rules"][0]["guarantee"]
        self.run_program("--config", "pictures.yaml", "--device", "cpu")
        best = run / "checkpoints/best-val-top1.safetensors"
        before = best.read_bytes()
        self.assertNotIn("no guarantee", guarantee("--dry-run"))
        (self.folder / "pictures/val/elm/3.png").unlink()
        self.assertIn("no guarantee", guarantee("--dry-run"))
        self.assertIn("anew for val/top1", self.run_program("--resume", "runs/pictures", "--device", "cpu", "--set", "train.epochs=2").stderr)
        # The first epoch was chosen by images of which some calibrate now, the second one was not.
        kept = run / "checkpoints/best-val-top1-epoch-1.safetensors"
        self.assertEqual(kept.read_bytes(), before)
        self.assertNotEqual(best.read_bytes(), before)
        self.assertIn("no guarantee", guarantee("--checkpoint", kept.stem))
        self.assertNotIn("no guarantee", guarantee())
        # The same images choose on.
        self.assertNotIn("anew", self.run_program("--resume", "runs/pictures", "--device", "cpu", "--set", "train.epochs=3").stderr)

    def test_a_run_that_cannot_be_written_shows_its_rules_and_keeps_none(self):
        self.train("data.calibration_share=0.5")
        kept = self.folder / "runs/tiny/rules-best-val-top2.json"
        kept.mkdir()  # as a folder that may not be written, for users whom no permission stops
        done = self.calibrate("runs/tiny", *RULES, "--figure", "picture", expect=1)
        self.assertIn("conformal:lac:0.2: ", done.stdout)
        self.assertTrue((self.folder / "picture/calibration.svg").is_file())
        self.assertIn("nothing is kept", done.stderr)
        self.assertNotIn("the rules are kept", done.stderr)
        self.assertFalse((self.folder / "runs/tiny/calibration-best-val-top2.json").exists())
        kept.rmdir()
        (self.folder / "runs/tiny/calibration-best-val-top2.json").mkdir()
        self.assertIn("the rules are kept, but not", self.calibrate("runs/tiny", *RULES, expect=1).stderr)
        self.assertTrue(kept.is_file())

    def test_images_of_other_splits_guarantee_nothing(self):
        """Calibration images that are test images, by their lists, and training images, by their contents."""
        for i in range(80):
            write_png(self.folder / f"{i}.png", 16 + i, 16, 3 * i)
        names = {"train": range(40), "val": range(40, 80), "test": range(60, 80)}
        lists = {split: "".join(f"{i}.png {i % 2}\n" for i in images) for split, images in names.items()}
        for split, text in lists.items():
            self.write(f"{split}.txt", text)
        self.write(
            "lists.yaml",
            "data: {name: file_list, root: ., train: train.txt, val: val.txt, test: test.txt, num_classes: 2, input_size: 16, batch_size: 20, calibration_share: 0.5}\n"
            "model: {name: resnet8, width: 4}\ntrain: {epochs: 1}\nselect: [val/top1]\neval: {top_k: [1], average_k: []}\n",
        )
        self.assertRegex(self.run_program("--config", "lists.yaml", "--device", "cpu").stderr, r"warning: \[data\] \d+ images of test are also in calibration")
        done = self.calibrate("runs/lists", *RULES, "--json")
        rule = json.loads(done.stdout)["rules"][1]
        self.assertRegex(rule["guarantee"], r"^no guarantee: \d+ images of test are also in calibration$")
        self.assertIn(rule["guarantee"], (self.folder / "runs/lists/rules-best-val-top1.json").read_text())
        self.run_program("scores", "runs/lists", "--split", "calibration", "--out", "calibration.safetensors", "--device", "cpu")
        done = self.calibrate("--scores", "calibration.safetensors", *RULES, "--json")
        self.assertIn("also in calibration", json.loads(done.stdout)["rules"][1]["guarantee"])
        done = self.calibrate("runs/lists", *RULES, "--share", "0.5", "--json")  # the test images judge nothing
        self.assertIn("at least 0.8", json.loads(done.stdout)["rules"][1]["guarantee"])

    def test_scores_of_numpy(self):
        scores = [[2.0, 1.0, 0.0], [0.0, 2.0, 1.0], [1.0, 0.0, 2.0], [2.0, 0.0, 1.0]] * 10
        labels = [0, 1, 2, 1] * 10
        self.npz("calibrating.npz", scores, labels)
        self.npz("plain.npz", scores, labels)
        self.npz("packed.npz", scores, labels, zipfile.ZIP_DEFLATED)
        plain, packed = (
            json.loads(self.calibrate("--scores", "calibrating.npz", "--test", name, "--rules", "conformal:lac:0.5", "--json").stdout)
            for name in ("plain.npz", "packed.npz")
        )
        self.assertEqual(plain["rules"], packed["rules"])
        # Half the images must be covered: the threshold is the best class' probability, and three labels of four are the best class.
        self.assertEqual(plain["rules"][0]["quality"]["coverage"], 0.75)
        self.assertEqual(plain["rules"][0]["quality"]["mean_size"], 1)

    def drawn(self, name, images, seed, scale=1.0, right=0.9, shift=0):
        """A file of scores that are right for a share of the images; with labels that are larger by `shift`."""
        draw = random.Random(seed)
        scores, labels = [], []
        for _ in range(images):
            label = draw.randrange(10)
            row = [scale * draw.gauss(0, 1) for _ in range(10)]
            row[label if draw.random() < right else draw.randrange(10)] += 6 * scale
            scores.append(row)
            labels.append((label + shift) % 10)
        self.npz(name, scores, labels)

    def fit(self, *arguments):
        done = self.calibrate(*arguments, "--rules", "conformal:aps:0.1", "--temperature", "fit", "--json")
        return json.loads(done.stdout), done.stderr

    def test_a_temperature_is_refused_where_it_has_no_maximum(self):
        self.drawn("test.npz", 300, seed=1)
        self.drawn("right.npz", 60, seed=2, right=1.0)
        self.drawn("guessed.npz", 60, seed=2, right=0.0, shift=1)
        self.npz("equal.npz", [[0.25] * 10] * 60, [i % 10 for i in range(60)])
        self.drawn("five.npz", 5, seed=3, right=1.0)
        for name, fitting in (("right.npz", 12), ("equal.npz", 12), ("five.npz", 1)):
            done, errors = self.fit("--scores", name, "--test", "test.npz")
            self.assertEqual((done["temperature"], done["temperature_images"]), (1, fitting), name)
            self.assertTrue(done["temperature_refused"], name)
            self.assertEqual(done["calibration_error"]["before"], done["calibration_error"]["after"])
            self.assertTrue(any(done["temperature_refused"] in warning for warning in done["warnings"]), name)
            self.assertRegex(errors, "warning: \\[calibrate\\] .*temperature", name)
            text = self.calibrate("--scores", name, "--test", "test.npz", "--rules", "top:2", "--temperature", "fit").stdout
            self.assertRegex(text, rf"(?m)^Temperature 1: .*\b{fitting} other image", name)
        # Half of the seeds of this file had ended at the edge of the search.
        self.drawn("few.npz", 60, seed=4)
        for seed in range(8):
            done, errors = self.fit("--scores", "few.npz", "--test", "test.npz", "--seed", str(seed))
            self.assertGreater(done["temperature"], 0.01)
            self.assertTrue(done["warnings"])
            self.assertIn("warning", errors)
        self.drawn("enough.npz", 250, seed=5)
        done, errors = self.fit("--scores", "enough.npz", "--test", "test.npz")
        self.assertEqual((done["temperature_images"], done["temperature_refused"], done["warnings"], errors), (50, None, [], ""))

    def test_a_run_keeps_no_refused_temperature(self):
        # Weights as drawn: for some draws of 24 images no temperature is better than the next larger one.
        self.train("train.epochs=0", "select=[last]")
        run = self.folder / "runs/tiny"
        refused = []
        for seed in range(10):
            arguments = ("runs/tiny", "--rules", "conformal:aps:0.2", "--temperature", "fit", "--seed", str(seed), "--json")
            done = json.loads(self.calibrate(*arguments).stdout)
            kept = json.loads((run / "rules-last.json").read_text())
            measured = json.loads((run / "calibration-last.json").read_text())
            self.assertEqual(kept["temperature"], done["temperature"])
            self.assertEqual(done["temperature_images"], 24)
            self.assertTrue(done["warnings"])  # 24 images are few
            for key in ("temperature", "temperature_refused", "warnings", "top1"):
                self.assertEqual(measured[key], done[key])
            refused.append(done["temperature_refused"] is not None)
            self.assertEqual(done["temperature"] == 1, refused[-1])
        self.assertIn(True, refused)

    def test_the_accuracy_shows_labels_that_are_off_by_one(self):
        self.drawn("calibrating.npz", 200, seed=1)
        for name, shift in (("test.npz", 0), ("larger.npz", 1), ("smaller.npz", 9)):
            self.drawn(name, 200, seed=2, shift=shift)
        for name, is_right in (("test.npz", True), ("larger.npz", False), ("smaller.npz", False)):
            done = self.calibrate("--scores", "calibrating.npz", "--test", name, "--rules", "top:2", "--json")
            values = json.loads(done.stdout)
            self.assertGreater(values["top1"]["calibration"], 0.8)
            self.assertEqual(values["top1"]["judged"] > 0.8, is_right)
            self.assertEqual(bool(values["warnings"]), not is_right)
            self.assertEqual("warning" in done.stderr, not is_right)
        text = self.calibrate("--scores", "calibrating.npz", "--test", "larger.npz", "--rules", "top:2").stdout
        self.assertRegex(text, r"(?m)^Top-1 accuracy: \d+\.\d % .*, \d+\.\d % ")
        self.assertIn("smaller by 1", " ".join(text.split()))

    def test_probabilities_and_percentages_are_warned_of_in_either_file(self):
        self.drawn("logits.npz", 60, seed=1)
        rows = [[0.91, 0.05, 0.04], [0.02, 0.97, 0.02], [0.2, 0.1, 0.7]] * 20  # the second ones sum to 1.01
        labels = [0, 1, 2] * 20
        logits = [[10 * p for p in row] for row in rows]
        self.npz("logits.npz", logits, labels)
        self.npz("probabilities.npz", rows, labels)
        self.npz("percentages.npz", [[100 * p for p in row] for row in rows], labels)
        for scores, test, told in (
            ("probabilities.npz", "logits.npz", ["'probabilities.npz'"]),
            ("logits.npz", "percentages.npz", ["'percentages.npz'"]),
            ("percentages.npz", "probabilities.npz", ["'percentages.npz'", "'probabilities.npz'"]),
        ):
            done = self.calibrate("--scores", scores, "--test", test, "--rules", "top:2", "--json")
            warnings = json.loads(done.stdout)["warnings"]
            self.assertEqual([warning.split(":")[0] for warning in warnings], told)
            for name in told:
                self.assertRegex(done.stderr, f"warning: .*{name}")

    def test_no_set_is_empty_where_it_may_not_be(self):
        scores = [[2.0, 1.0, 0.0], [0.0, 2.0, 1.0], [1.0, 0.0, 3.0], [0.5, 0.0, 0.25]] * 10
        self.npz("scores.npz", scores, [0, 1, 2, 1] * 10)
        self.npz("test.npz", scores, [0, 1, 2, 0] * 10)
        plain, filled = json.loads(
            self.calibrate("--scores", "scores.npz", "--test", "test.npz", "--rules", "conformal:lac:0.5", "conformal:lac(nonempty=true):0.5", "--json").stdout
        )["rules"]
        self.assertEqual((plain["quality"]["empty"], filled["quality"]["empty"]), (0.25, 0))
        self.assertEqual((plain["quality"]["coverage"], filled["quality"]["coverage"]), (0.75, 1))
        self.assertEqual(filled["rule"], "conformal:lac(nonempty=true):0.5")

    def test_raps_is_tuned_on_images_that_set_no_threshold(self):
        self.drawn("calibrating.npz", 300, seed=1, right=0.7)
        self.drawn("test.npz", 300, seed=2, right=0.7)
        judged = lambda *rules: json.loads(self.calibrate("--scores", "calibrating.npz", "--test", "test.npz", "--json", "--rules", *rules).stdout)["rules"]
        for what in ("size", "strata"):
            rule = judged(f"conformal:raps(tune={what}):0.1")[0]
            self.assertEqual(rule["rule"], f"conformal:raps(tune={what}):0.1")
            self.assertIn("at least 0.9", rule["guarantee"])
            note = " ".join(rule["notes"])
            self.assertRegex(note, r"lambda \S+ and k \d+ are tuned on 90 of the 300 calibration images", what)
            self.assertGreater(rule["quality"]["coverage"], 0.85)
        for rule, reason in (("raps(tune=sise)", "did you mean 'size'"), ("raps(tune=size,lambda=0.1)", "or tunes them"), ("aps(tune=size)", "aps")):
            self.assertIn(reason, self.calibrate("--scores", "calibrating.npz", "--rules", f"conformal:{rule}:0.1", expect=2).stderr)

    def test_a_run_keeps_tuned_numbers(self):
        self.train("data.calibration_share=0.5")
        rule = "conformal:raps(tune=size):0.2"
        self.calibrate("runs/tiny", "--rules", rule)
        kept = json.loads((self.folder / "runs/tiny/rules-best-val-top2.json").read_text())["rules"][0]
        self.assertEqual((kept["rule"], sorted(kept["tuned"])), (rule, ["k", "lambda"]))
        write_png(self.folder / "photo.png", 12, 12, 100)
        self.run_program("predict", "runs/tiny", "photo.png", "--rule", rule, "--out", "answers.jsonl", "--device", "cpu")
        self.assertEqual(list(json.loads((self.folder / "answers.jsonl").read_text())["sets"]), [rule])

    def test_a_temperature_for_small_sets(self):
        # The model is wrong in a quarter of the images, and far too sure.
        self.drawn("calibrating.npz", 400, seed=1, scale=4, right=0.7)
        self.drawn("test.npz", 400, seed=2, scale=4, right=0.7)
        files = ("--scores", "calibrating.npz", "--test", "test.npz", "--rules", "conformal:aps:0.1", "--json")
        done = json.loads(self.calibrate(*files, "--temperature", "confts:0.1").stdout)
        self.assertEqual((done["temperature_images"], done["temperature_refused"]), (80, None))
        self.assertLess(done["temperature"], 0.0201)  # the labels' scores come near 1 as it falls
        self.assertIn("the least that confts tries", " ".join(done["warnings"]))
        self.assertGreater(done["rules"][0]["quality"]["coverage"], 0.85)
        self.assertEqual(done, json.loads(self.calibrate(*files, "--temperature", "confts:0.1").stdout))
        for text, reason in (("confts:0", "an alpha between 0 and 1"), ("confts:", "an alpha between 0 and 1"), ("confts:0.001", "needs 999 images")):
            self.assertIn(reason, self.calibrate(*files, "--temperature", text, expect=2).stderr)

    def test_rules_too_large_for_an_exported_file_are_refused(self):
        self.train("data.calibration_share=0.5")
        self.calibrate("runs/tiny", "--rules", "conformal:lac:0.2")
        file = self.folder / "runs/tiny/rules-best-val-top2.json"
        rules = json.loads(file.read_text())
        images = 1_100_000
        rules["rules"][0]["images"] = images
        rules["rules"][0]["label_scores"] = {
            "labels": base64.b64encode(bytes(4 * images)).decode(), "scores": base64.b64encode(bytes(8 * images)).decode(),
        }
        file.write_text(json.dumps(rules))
        done = self.run_program("export", "runs/tiny", "--output", "model.safetensors", expect=1)
        self.assertIn("which readers accept up to 16.0 MiB", done.stderr)
        self.assertFalse((self.folder / "model.safetensors").exists())

    def test_unsigned_labels_are_read(self):
        scores, labels = [[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 3.0], [0.0, 3.0, 0.0]] * 10, [0, 1, 2, 1] * 10
        expected = None
        for kind in ("<i8", "<u2", "<u4", "<u8"):
            self.npz("labels.npz", scores, labels, label_type=kind)
            done = json.loads(self.calibrate("--scores", "labels.npz", "--rules", "conformal:lac:0.2", "--json").stdout)
            expected = expected or done
            self.assertEqual(done, expected, kind)
        self.assertEqual(expected["top1"], {"calibration": 1, "judged": 1})
        self.npz("labels.npz", scores, [0, 1, 2, 2**64 - 1] * 10, label_type="<u8")
        refused = self.calibrate("--scores", "labels.npz", expect=1).stderr
        self.assertIn("image 3 is 18446744073709551615", refused)

    def test_sets_without_use_are_noted(self):
        self.drawn("calibrating.npz", 100, seed=1)
        self.drawn("test.npz", 100, seed=2)
        done = self.calibrate("--scores", "calibrating.npz", "--test", "test.npz", "--json", "--rules", "conformal:lac:0.001", "conformal:lac:0.9", "conformal:lac:0.1")
        full, empty, usual = json.loads(done.stdout)["rules"]
        self.assertIn("100.0 % of the sets have all 10 classes", " ".join(full["notes"]))
        self.assertIn(f"{100 * empty['quality']['empty']:.1f} % of the sets are empty", " ".join(empty["notes"]))
        self.assertEqual(usual["notes"], [])

    def test_bad_input_is_reported_with_its_name(self):
        self.npz("good.npz", [[1.0, 0.0]] * 4, [0, 1, 0, 1])
        self.npz("nan.npz", [[1.0, 0.0], [0.0, float("nan")]], [0, 1])
        self.npz("label.npz", [[1.0, 0.0]] * 2, [0, 2])
        self.npz("three.npz", [[1.0, 0.0, 0.0]] * 4, [0, 1, 0, 1])
        self.write("text.npz", "scores")
        (self.folder / "cut.npz").write_bytes((self.folder / "good.npz").read_bytes()[:-30])
        for arguments, code, reason in (
            (("--scores", "nan.npz"), 1, "nan.npz"),
            (("--scores", "label.npz"), 1, "the label of image 1 is 2"),
            (("--scores", "cut.npz"), 1, "cut.npz"),
            (("--scores", "none.npz"), 1, "none.npz"),
            (("--scores", "good.npz", "--test", "three.npz"), 2, "'good.npz' has 2 classes, and 'three.npz' has 3"),
            (("--scores", "good.npz", "--rules", "conformal:lac:1.5"), 2, "conformal:lac:1.5"),
            (("--scores", "good.npz", "--rules", "conformal:lak:0.1"), 2, "lac"),
            (("--scores", "good.npz", "--rules", "top:3"), 2, "top:3"),
            (("--scores", "good.npz", "--temperature", "-1"), 2, "--temperature -1"),
            (("--scores", "good.npz", "--temperature", "inf"), 2, "--temperature inf"),
            (("--scores", "good.npz", "--rules", "conformal:raps(k=1)(k=2):0.1"), 2, "goes on behind its parentheses"),
            (("--scores", "good.npz", "--rules", "conformal:wpas(weights=\x1b]0):0.1"), 2, "control characters"),
            (("--scores", "good.npz", "--share", "0"), 2, "--share 0: expected a number between 0 and 1"),
            (("--scores", "good.npz", "--share", "0.01"), 2, "too few to divide"),
            (("--scores", "good.npz", "--test", "./good.npz"), 2, "the images that calibrate cannot judge"),
            (("--scores", "text.npz"), 1, "is no .npz file"),
            (("--scores", "good.npz", "--checkpoint", "last"), 2, "--checkpoint, --metric and --set are for a run"),
            ((), 2, "takes a run's folder"),
        ):
            self.assertIn(reason, self.run_program("calibrate", *arguments, expect=code).stderr, arguments)
        probabilities = self.calibrate("--scores", "good.npz", "--rules", "conformal:lac:0.5")
        self.assertIn("'good.npz': each image's scores sum to 1, as probabilities do", probabilities.stderr)
        self.npz("other.npz", [[1.0, 0.0]] * 4, [0, 1, 0, 1])
        few = self.calibrate("--scores", "good.npz", "--test", "other.npz", "--rules", "conformal:lac:0.1")
        self.assertIn("9", few.stdout)  # images that 90 % need

    def test_scores_are_judged_by_all_labels_of_images_with_several(self):
        of_one_label = "label_noise: {kind: superclass, rate: 0.2}", "loss: {name: noised_topk, k: 2, epsilon: 1.0, num_draws: 3}"
        text = TINY.replace(of_one_label[0], "labels_per_image: 3").replace(of_one_label[1], "loss: {name: bce_multilabel}")
        self.run_program("--config", self.write("tiny.yaml", text), "--device", "cpu", "--set", "select=[val/top2]", "--set", "data.calibration_share=0.5",
                         "--set", "eval.rules=[conformal:risk:0.2]")
        for split in ("val", "test"):
            self.run_program("scores", "runs/tiny", "--split", split, "--out", f"{split}.safetensors", "--device", "cpu")
        tensors = tensors_of(self.folder / "test.safetensors")
        dtype, shape, label_bytes = tensors["label_sets"]
        self.assertEqual((dtype, shape), ("BOOL", [120, 6]))
        label_sets = [list(label_bytes[i : i + 6]) for i in range(0, 720, 6)]
        numbers = struct.unpack("<720f", tensors["scores"][2])
        rows = [numbers[i : i + 6] for i in range(0, 720, 6)]

        judged = json.loads(self.run_program("scores", "--all-labels", "test.safetensors", "--top-k", "2", "--average-k", "2.5", "9", "--json").stdout)
        recalls = []
        for row, labels in zip(rows, label_sets):
            best = sorted(range(6), key=lambda c: (-row[c], c))[:2]
            recalls.append(sum(labels[c] for c in best) / sum(labels))
        self.assertAlmostEqual(judged["top2_recall"], sum(recalls) / 120, 6)
        self.assertAlmostEqual(judged["avg2.5_size"], 2.5, 2)
        threshold = judged["avg2.5_lambda"]  # of sigmoids, as the loss has them
        hits = sum(label and 1 / (1 + math.exp(-score)) >= threshold for row, labels in zip(rows, label_sets) for score, label in zip(row, labels))
        self.assertAlmostEqual(judged["avg2.5_micro_f1"], 2 * hits / (300 + sum(map(sum, label_sets))), 6)
        self.assertIn("sparse_top_weight", judged)
        self.assertNotIn("avg9_recall", judged)  # of six classes

        self.run_program("scores", "runs/tiny", "--split", "calibration", "--out", "calibration.safetensors", "--device", "cpu")
        rules = ("--rules", "conformal:risk:0.2", "conformal:lac:0.2")
        of_run = json.loads(self.calibrate("runs/tiny", *rules, "--json").stdout)["rules"]
        of_files = json.loads(self.calibrate("--scores", "calibration.safetensors", "--test", "test.safetensors", *rules, "--json").stdout)["rules"]
        self.assertEqual([rule["quality"] for rule in of_run], [rule["quality"] for rule in of_files])
        self.assertIn("at least a share 0.8 of its labels", of_run[0]["guarantee"])
        rule = json.loads((self.folder / "runs/tiny/rules-best-val-top2.json").read_text())["rules"][0]
        threshold = -(rule["thresholds"][0] if isinstance(rule["thresholds"][0], float) else sum(rule["thresholds"][0]))
        chosen = [[1 / (1 + math.exp(-score)) >= threshold for score in row] for row in rows]
        shares = [sum(l and c for l, c in zip(labels, row)) / sum(labels) for labels, row in zip(label_sets, chosen)]
        self.assertAlmostEqual(of_run[0]["quality"]["coverage"], sum(shares) / 120, 6)
        self.assertAlmostEqual(of_run[0]["quality"]["mean_size"], sum(map(sum, chosen)) / 120, 6)
        self.assertGreater(of_run[0]["quality"]["coverage"], 0.7)
        self.assertIn("coverage@conformal:risk:0.2", (self.folder / "runs/tiny/metrics.csv").read_text())

        other = json.loads(self.run_program("scores", "--all-labels", "test.safetensors", "--threshold-scores", "val.safetensors", "--average-k", "2.5", "--json").stdout)
        self.assertNotEqual(other["avg2.5_lambda"], threshold)
        self.assertIn("avg2_micro_f1", self.run_program("scores", "--all-labels", "test.safetensors").stdout)
        for arguments, code, reason in (
            (("--all-labels", "none.safetensors"), 1, "none.safetensors"),
            (("runs/tiny", "--all-labels", "test.safetensors"), 2, "RUN"),
            (("--out", "x.safetensors"), 2, "--all-labels"),
            (("runs/tiny", "--out", "x.safetensors", "--top-k", "2"), 2, "--all-labels"),
            (("--all-labels", "test.safetensors", "--top-k", "0"), 2, "--top-k"),
        ):
            self.assertIn(reason, self.run_program("scores", *arguments, expect=code).stderr, arguments)


if __name__ == "__main__":
    main()
