"""Looking at data sets: settrain data verify and stats."""

import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import time
import unittest
import zlib

from program import PROGRAM, TINY, ProgramTest, environment, main, write_png

FOLDER = "data: {name: image_folder, root: pictures, input_size: 16, batch_size: 1}\nselect: []\neval: {top_k: [1], average_k: []}\n"


class Data(ProgramTest):
    def make_folder(self):
        for split in ("train", "val", "test"):
            for name, images in (("elm", 3), ("oak", 2)):
                folder = self.folder / "pictures" / split / name
                folder.mkdir(parents=True)
                for i in range(images):
                    write_png(folder / f"{i}.png", 20 + i, 24, 40 * i)
        self.write("folder.yaml", FOLDER)

    def spoil(self):
        train = self.folder / "pictures" / "train"
        whole = (train / "elm" / "1.png").read_bytes()
        (train / "elm" / "1.png").write_bytes(whole[: len(whole) // 2])
        (train / "oak" / "empty.jpg").write_bytes(b"")
        (self.folder / "pictures" / "test" / "oak" / "text.jpg").write_text("This is no image.\n")
        return ["pictures/train/elm/1.png", "pictures/train/oak/empty.jpg", "pictures/test/oak/text.jpg"]

    def test_verify_finds_every_bad_file(self):
        self.make_folder()
        self.assertIn("train 5 images read, 0 bad", self.run_program("data", "verify", "folder.yaml", "--list", "bad.txt").stdout)
        self.assertEqual((self.folder / "bad.txt").read_text(), "")
        bad = self.spoil()
        for arguments in (("folder.yaml",), ("--config", "folder.yaml", "--workers", 1)):
            printed = self.run_program("data", "verify", *arguments, "--list", "bad.txt", expect=1).stdout.splitlines()
            self.assertEqual((self.folder / "bad.txt").read_text().splitlines(), bad)
            self.assertEqual(len(printed), 6)
            for line, place, file in zip(printed, ("train, class elm", "train, class oak", "test, class oak"), bad):
                self.assertTrue(line.startswith(f"bad: {place}: ") and file in line, line)
            self.assertEqual(printed[3:], ["train 6 images read, 2 bad", "val   5 images read, 0 bad", "test  6 images read, 1 bad"])
        only = self.run_program("data", "verify", "folder.yaml", "--splits", "val").stdout
        self.assertEqual(only, "val   5 images read, 0 bad\n")
        self.run_program("data", "verify", "folder.yaml", "--splits", "val,test", expect=1)

    def test_files_that_are_not_read_and_circles_are_reported_by_all_commands(self):
        self.make_folder()
        for name in ("train/elm/a.HEIC", "train/elm/b.gif", "val/c.avif"):
            (self.folder / "pictures" / name).write_bytes(b"x")
        commands = (("data", "verify", "folder.yaml"), ("data", "stats", "folder.yaml"), ("--config", "folder.yaml", "--device", "cpu", "--dry-run"))
        for command in commands:
            self.assertIn("3 files beside the images are not read: 1 .avif, 1 .gif, 1 .heic; the first is 'pictures/train/elm/a.HEIC'", self.run_program(*command).stderr)
        os.symlink("..", self.folder / "pictures/val/oak/up")
        for command in commands:
            self.assertIn("pictures/val/oak/up", self.run_program(*command, expect=1).stderr)

    def test_verify_counts_decoders_warnings_by_split(self):
        self.make_folder()
        for name in ("train/elm/0.png", "train/oak/0.png", "test/oak/1.png"):
            file = self.folder / "pictures" / name
            content = file.read_bytes()
            palette = struct.pack(">I", 4) + b"PLTEfour" + struct.pack(">I", zlib.crc32(b"PLTEfour"))  # no whole number of colours
            file.write_bytes(content[:33] + palette + content[33:])  # behind the header
        done = self.run_program("data", "verify", "folder.yaml", "--list", "bad.txt")
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], "train, 2 files; the first is 'pictures/train/elm/0.png': libpng")
        self.assertRegex(lines[1], "test, 1 file; the first is 'pictures/test/oak/1.png': libpng")
        self.assertEqual(lines[2:], ["train 5 images read, 0 bad", "val   5 images read, 0 bad", "test  5 images read, 0 bad"])
        self.assertNotIn("libpng", done.stderr)
        self.assertEqual((self.folder / "bad.txt").read_text(), "")

    def test_verify_compares_what_is_too_much_for_loading(self):
        """5,001 files of one size: only verify reports which contents are equal."""
        png = self.folder / "one.png"
        write_png(png, 4, 4, 7)
        content = png.read_bytes()
        for split, images in (("train", 4998), ("val", 2), ("test", 1)):
            folder = self.folder / "images" / split
            folder.mkdir(parents=True)
            for i in range(images):
                (folder / f"{i}.png").write_bytes(content + b"%04d" % (i if split == "train" else 4990 + i if split == "val" else 9000))
            self.write(f"{split}.txt", "".join(f"images/{split}/{i}.png {i % 2}\n" for i in range(images)))
        self.write(
            "list.yaml",
            "data: {name: file_list, root: ., train: train.txt, val: val.txt, test: test.txt, num_classes: 2, input_size: 16}\n"
            "select: []\neval: {top_k: [1], average_k: []}\n",
        )
        self.assertNotIn("also in", self.run_program("data", "stats", "list.yaml").stderr)
        self.assertIn("2 images of val are also in train", self.run_program("data", "verify", "list.yaml").stderr)
        self.assertNotIn("also in", self.run_program("data", "verify", "list.yaml", "--splits", "val,test").stderr)

    def test_verify_tells_how_far_it_came(self):
        write_png(self.folder / "large.png", 2000, 1000, 7)
        write_png(self.folder / "small.png", 20, 20, 7)
        self.write("train.txt", "large.png 0\n" * 20000)  # takes minutes
        self.write("other.txt", "small.png 0\n")
        self.write(
            "list.yaml",
            "data: {name: file_list, root: ., train: train.txt, val: other.txt, test: other.txt, num_classes: 2, input_size: 16}\n"
            "select: []\neval: {top_k: [1], average_k: []}\n",
        )
        running = self.start_program("data", "verify", "list.yaml", "--workers", 1, "--list", "bad.txt")
        self.wait_for_handler(running)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 130, err)
        self.assertRegex(out, r"^train [\d,]+ of 20,000 images read, 0 bad\nval   0 of 1 images read, 0 bad\n")
        self.assertIn("stopped", out)
        self.assertEqual([file.name for file in self.folder.glob("*bad*")], [])  # an empty list would say that all are good

    def wait_for_handler(self, running):
        """Until the program answers SIGINT itself."""
        for _ in range(600):
            status = pathlib.Path(f"/proc/{running.pid}/status").read_text()
            caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
            if int(caught.split()[1], 16) >> (signal.SIGINT - 1) & 1:
                return
            time.sleep(0.1)
        self.fail("the program never asked for SIGINT")

    def test_stats_of_made_images(self):
        config = self.write("tiny.yaml", TINY)
        text = self.run_program("data", "stats", config).stdout
        self.assertIn("synthetic: 6 classes in 2 superclasses of 3 each", text)
        self.assertIn("label noise: superclass, nominal rate 0.2, effective rate 0.1333;", text)
        stats = json.loads(self.run_program("data", "stats", "--config", config, "--json").stdout)
        train = stats["splits"]["train"]
        self.assertEqual(train["images"], 480)
        self.assertEqual(sum(train["class_counts"]), 480)
        self.assertEqual(len(train["lorenz"]), 7)
        matrix = stats["label_noise"]["matrix"]
        self.assertEqual(sum(count for _, _, count in matrix), 480)
        self.assertEqual(sum(count for true, given, count in matrix if true != given), stats["label_noise"]["changed"])
        self.assertTrue(all(true // 3 == given // 3 for true, given, _ in matrix))
        given = [0] * 6
        for _, c, count in matrix:
            given[c] += count
        self.assertEqual(given, train["class_counts"])
        clean = json.loads(self.run_program("data", "stats", config, "--json", "--set", "data.label_noise.kind=none").stdout)
        self.assertEqual(clean["label_noise"], {"kind": "none"})

    def test_stats_of_files_and_of_label_sets(self):
        self.make_folder()
        self.spoil()
        sizes = json.loads(self.run_program("data", "stats", "folder.yaml", "--json").stdout)["splits"]["train"]["image_sizes"]
        self.assertEqual(sizes["formats"], {"PNG": 5, "unknown": 1})
        self.assertEqual((sizes["width"]["min"], sizes["width"]["max"], sizes["height"]["median"]), (20, 22, 24))
        self.assertEqual(sizes["without_size"], 1)
        for name in ("train", "val", "test"):
            self.write(f"{name}.txt", f"pictures/{name}/elm/0.png 0,1\npictures/{name}/oak/0.png 1\n")
        self.write(
            "sets.yaml",
            "data: {name: file_list, root: ., train: train.txt, val: val.txt, test: test.txt, num_classes: 3, input_size: 16, batch_size: 1}\n"
            "loss: {name: bce_multilabel}\nselect: []\neval: {top_k: [1], average_k: []}\n",
        )
        train = json.loads(self.run_program("data", "stats", "sets.yaml", "--json").stdout)["splits"]["train"]
        self.assertEqual((train["images"], train["labels"], train["class_counts"]), (2, 3, [1, 2, 0]))
        self.assertEqual(train["classes_without_image"], [2])

    @unittest.skipUnless(shutil.which("gnuplot"), "Debian's package gnuplot-nox is not installed")
    def test_stats_are_written_and_drawn(self):
        config = self.write("tiny.yaml", TINY)
        done = self.run_program("data", "stats", config, "--out", "out")
        data = {"lorenz": "csv", "class_counts": "csv", "noise_matrix": "dat"}
        figures = [f"{name}.{ending}" for name in data for ending in ("svg", "png", data[name], "gp")]
        self.assertEqual(sorted(os.listdir(self.folder / "out")), sorted(figures + ["stats.json", "stats.txt"]))
        self.assertEqual((self.folder / "out" / "stats.txt").read_text(), done.stdout)
        self.assertIn("</svg>", (self.folder / "out" / "noise_matrix.svg").read_text())

    def test_without_gnuplot_numbers_and_data_are_left(self):
        config = self.write("tiny.yaml", TINY)
        env = {**environment(), "PATH": str(self.folder)}
        done = subprocess.run([PROGRAM, "data", "stats", config, "--out", "out"], cwd=self.folder, env=env, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 1)
        self.assertIn("gnuplot-nox", done.stderr)
        self.assertTrue({"stats.json", "stats.txt", "lorenz.csv", "lorenz.gp"} <= set(os.listdir(self.folder / "out")))

    def test_answers_become_labels(self):
        answers = self.write("answers.csv", "image,user,label\na.jpg,ada,oak\na.jpg,bob,elm\na.jpg,eve,elm\nb.jpg,ada,ash\n")
        voted = self.run_program("data", "vote", answers, "--base", 1, "--threshold", 1.5)
        rows = [line.split(",") for line in voted.stdout.splitlines()]
        self.assertEqual([[row[0], row[1], row[-1]] for row in rows[1:]], [["a.jpg", "elm", "1"], ["b.jpg", "ash", "0"]])
        self.run_program("data", "vote", answers, "--base", 1, expect=2)
        wrong = self.run_program("data", "vote", self.write("wrong.csv", "image,user,label\na.jpg,ada\n"), "--base", 1, "--threshold", 1, expect=1)
        self.assertIn("wrong.csv:2", wrong.stderr)

    def test_mistakes(self):
        config = self.write("tiny.yaml", TINY)
        for command in ("verify", "stats"):
            self.run_program("data", command, expect=2)
            self.run_program("data", command, "none.yaml", expect=2)
            self.run_program("data", command, config, "--config", config, expect=2)
            self.run_program("data", command, config, "--workers", 0, expect=2)
        self.run_program("data", "verify", config, "--splits", "train,vall", expect=2)
        self.assertIn("twice", self.run_program("data", "verify", config, "--splits", "val,val", expect=2).stderr)
        self.assertIn("data.calibration_share", self.run_program("data", "verify", config, "--splits", "calibration", expect=2).stderr)
        unwritable = self.run_program("data", "verify", config, "--list", "none/bad.txt", expect=1)
        self.assertIn("none/bad.txt", unwritable.stderr)
        self.assertNotIn("images read", unwritable.stdout)
        self.run_program("data", "stats", config, "--out", "", expect=2)
        self.run_program("data", "verify", config, "--set", "data.nam=x", expect=2)


if __name__ == "__main__":
    main()
