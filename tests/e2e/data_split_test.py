"""A folder divided into lists, as a user divides and trains on it."""

import json
import unittest

from program import ProgramTest, write_png


class Split(ProgramTest):
    def setUp(self):
        super().setUp()
        for number, (name, count) in enumerate([("oak tree", 12), ("ash, white", 6), ("beech", 5), ("rare", 4)]):
            (self.folder / "trees" / name).mkdir(parents=True)
            for i in range(count):
                write_png(self.folder / "trees" / name / f"{i}.png", 14, 12, 20 * number + i)

    def lines(self, name):
        return (self.folder / "lists" / name).read_text().splitlines()

    def test_the_printed_lines_are_a_config_that_trains(self):
        out = self.run_program("data", "split", "trees", "--to", "lists").stdout
        self.assertIn("left out: 1 class with 4 images in all", out)
        self.assertEqual([len(self.lines(f"{part}.txt")) for part in ("train", "val", "calibration", "test")], [11, 4, 4, 4])
        self.assertEqual(self.lines("classes.csv"), ["class_0,ash, white", "class_1,beech", "class_2,oak tree"])
        data = out[out.index("data: {") :].replace("class_names", "input_size: 12, batch_size: 4, class_names")
        config = self.write("trees.yaml", data + "model: {name: resnet8, width: 4}\nloss: {name: noised_topk, k: 2}\ntrain: {epochs: 1}\neval: {top_k: [1, 2], average_k: [2]}\nselect: [val/top1]\n")
        self.run_program("--config", config, "--device", "cpu", "--dry-run")
        self.run_program("--config", config, "--device", "cpu")
        self.assertTrue((self.folder / "runs" / "trees" / "results.json").exists())

    def test_the_same_seed_gives_the_same_lists_from_anywhere(self):
        self.run_program("data", "split", "trees", "--to", "lists", "--seed", 7)
        self.run_program("data", "split", self.folder / "trees/", "--to", "again", "--seed", 7)
        self.run_program("data", "split", "trees", "--to", "other", "--seed", 8)
        digest = lambda folder: json.loads((self.folder / folder / "split.json").read_text())["sha256"]
        self.assertEqual(digest("lists"), digest("again"))
        self.assertNotEqual(digest("lists"), digest("other"))

    def test_fractions(self):
        self.run_program("data", "split", "trees", "--to", "lists", "--rule", "fractions", "--val", "0.25", "--test", ".25", "--min-images", 0)
        record = json.loads((self.folder / "lists/split.json").read_text())
        self.assertEqual(record["classes"], 4)
        self.assertEqual(record["images"], {"train": 9, "val": 7, "calibration": 4, "test": 7})

    def test_unreadable_images_are_named_and_left_out(self):
        (self.folder / "trees/beech/0.png").write_bytes(b"<html>")
        out = self.run_program("data", "split", "trees", "--to", "lists", "--verify", "--min-images", 3).stdout
        self.assertIn("unreadable, class beech: 'trees/beech/0.png'", out)
        self.assertIn("read: all 27 images; 1 cannot be read", out)
        listed = [line for part in ("train", "val", "calibration", "test") for line in self.lines(f"{part}.txt")]
        self.assertEqual(len(listed), 26)
        self.assertNotIn("beech/0.png 1", listed)
        self.assertEqual(json.loads((self.folder / "lists/split.json").read_text())["unreadable"], ["trees/beech/0.png"])

    def test_the_rule_of_plantnet_keeps_no_calibration_images(self):
        out = self.run_program("data", "split", "trees", "--to", "lists", "--rule", "plantnet").stdout
        self.assertIn("data.calibration_share", out)
        self.assertEqual(len(self.lines("train.txt")), 15)
        self.assertFalse((self.folder / "lists/calibration.txt").exists())

    def test_a_folder_named_by_a_tilde_is_not_made(self):
        for option in (("--to=~/lists",), ("--to", "~/lists"), ("--to", "~")):
            error = self.run_program("data", "split", "trees", *option, expect=2).stderr
            self.assertIn("--to", error)
            self.assertIn("$HOME", error)
        self.assertIn("folder: '~/trees'", self.run_program("data", "split", "~/trees", "--to", "lists", expect=2).stderr)
        self.assertEqual(sorted(entry.name for entry in self.folder.iterdir()), ["trees"])

    def test_what_is_left_out_is_printed(self):
        for name in ("beech/a.heic", "beech/b.HEIC", "c.gif"):
            (self.folder / "trees" / name).write_bytes(b"x")
        write_png(self.folder / "trees/beside.png", 4, 4, 7)
        (self.folder / "trees/beech/0.png").write_bytes(b"")
        out = self.run_program("data", "split", "trees", "--to", "lists").stdout
        for text in ("2 .heic, 1 .gif", "'trees/beech/a.heic'", "'trees/beside.png'", "'trees/beech/0.png'"):
            self.assertIn(text, out)

    def test_a_folder_too_many_above_the_classes_is_told(self):
        for one in ("batch1", "batch2"):
            (self.folder / "all" / one).mkdir(parents=True)
        for place, name in (("batch1", "oak tree"), ("batch1", "beech"), ("batch2", "ash, white"), ("batch2", "rare")):
            (self.folder / "trees" / name).rename(self.folder / "all" / place / name)
        error = self.run_program("data", "split", "all", "--to", "lists").stderr
        self.assertRegex(error, r"no image of 'all' lies directly .*The 2 classes .*batch1.*\(such as batch1/beech, batch1/oak tree, batch2/ash, white\), there is a folder too many")
        (self.folder / "one").mkdir()
        (self.folder / "all" / "batch1").rename(self.folder / "one" / "images")
        self.assertIn("Are the folders in 'images' the classes (images/beech, images/oak tree)?", self.run_program("data", "split", "one", "--to", "other", expect=1).stderr)

    def test_copies_in_two_parts_are_told(self):
        self.assertNotIn("also in", self.run_program("data", "split", "trees", "--to", "lists").stderr)
        oaks = self.folder / "trees" / "oak tree"
        copied = {part: self.lines(f"{part}.txt")[-1].rsplit(" ", 1)[0] for part in ("train", "calibration")}
        (self.folder / "trees" / copied["calibration"]).write_bytes((self.folder / "trees" / copied["train"]).read_bytes())
        for verify in ((), ("--verify",)):
            error = self.run_program("data", "split", "trees", "--to", "lists", "--overwrite", *verify).stderr
            self.assertRegex(error, rf"1 image of calibration is also in train; the first: '\S*{oaks.name}/\d+.png' is the image of '")

    def test_mistakes(self):
        split = ("data", "split", "trees", "--to", "lists")
        self.assertIn("--rule fractions", self.run_program(*split, "--val", "0.2", expect=2).stderr)
        self.assertIn("'1.5'", self.run_program(*split, "--rule", "fractions", "--val", "1.5", expect=2).stderr)
        self.assertIn("none is left to train on", self.run_program(*split, "--rule", "fractions", "--val", "0.8", expect=2).stderr)
        self.run_program(*split, "--rule", "halves", expect=2)
        self.run_program(*split, "--min-images", -1, expect=2)
        self.run_program("data", "split", "trees", expect=2)
        self.assertIn("nowhere", self.run_program("data", "split", "nowhere", "--to", "lists", expect=1).stderr)
        for part in ("train", "val"):
            (self.folder / "divided" / part / "oak").mkdir(parents=True)
        self.assertIn("divided already", self.run_program("data", "split", "divided", "--to", "lists", expect=1).stderr)
        self.assertIn("large enough", self.run_program(*split, "--min-images", 20, expect=1).stderr)
        self.assertFalse((self.folder / "lists").exists())
        self.run_program(*split)
        self.assertIn("--overwrite", self.run_program(*split, expect=1).stderr)
        self.run_program(*split, "--overwrite")


if __name__ == "__main__":
    unittest.main()
