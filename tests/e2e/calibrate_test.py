"""settrain scores and settrain calibrate: from a run to rules, and from files of scores."""

import json
import struct
import zipfile

from program import TINY, ProgramTest, main

RULES = ("--rules", "top:2", "conformal:lac:0.2", "average-error:0.2")


def npy(descr, shape, values):
    """The bytes of a .npy file."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header = header.ljust(117) + "\n"
    kind = {"<f4": "f", "<i8": "q"}[descr]
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}{kind}", *values)


class Calibrate(ProgramTest):
    def train(self, *settings):
        self.write("tiny.yaml", TINY)
        arguments = [word for setting in ("select=[val/top2]", *settings) for word in ("--set", setting)]
        return self.run_program("--config", "tiny.yaml", "--device", "cpu", *arguments)

    def calibrate(self, *arguments, expect=0):
        return self.run_program("calibrate", *arguments, *(() if "--scores" in arguments else ("--device", "cpu")), expect=expect)

    def npz(self, name, scores, labels, compression=zipfile.ZIP_STORED):
        with zipfile.ZipFile(self.folder / name, "w", compression) as archive:
            classes = len(scores[0])
            archive.writestr("scores.npy", npy("<f4", (len(scores), classes), [score for row in scores for score in row]))
            archive.writestr("labels.npy", npy("<i8", (len(labels),), labels))

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

    def test_bad_input_is_told_with_its_name(self):
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


if __name__ == "__main__":
    main()
