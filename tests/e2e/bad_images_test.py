"""data.on_bad_image: images that cannot be read end a run, or are left out of it."""

import json

from program import ProgramTest, main, write_png

CONFIG = """
data: {name: image_folder, root: pictures, input_size: 16, batch_size: 4, workers: 2}
model: {name: resnet8, width: 4}
train: {epochs: 2}
eval: {top_k: [1], average_k: []}
"""


class BadImages(ProgramTest):
    def setUp(self):
        super().setUp()
        for split in ("train", "val", "test"):
            for name in ("elm", "oak"):
                folder = self.folder / "pictures" / split / name
                folder.mkdir(parents=True)
                for i in range(6):
                    write_png(folder / f"{i}.png", 20 + i, 24, 20 * i)
        (self.folder / "pictures/train/elm/2.png").write_text("This is no image.\n")
        (self.folder / "pictures/test/oak/1.png").write_bytes(b"")
        self.write("bad.yaml", CONFIG)

    def test_a_bad_image_ends_the_run_and_is_named(self):
        (self.folder / "pictures/test/oak/1.png").unlink()
        error = self.run_program("--config", "bad.yaml", "--device", "cpu", expect=1).stderr
        self.assertIn("pictures/train/elm/2.png", error)
        self.assertIn("data.on_bad_image: skip", error)

    def test_empty_files_are_told_before_anything_is_trained(self):
        for command in (("--dry-run",), (), ("--processes", "2")):
            error = self.run_program("--config", "bad.yaml", "--device", "cpu", *command, expect=1).stderr
            self.assertIn("'pictures/test/oak/1.png' (empty)", error)
            self.assertIn("data.on_bad_image: skip", error)
            self.assertFalse((self.folder / "runs/bad").exists())

    def test_a_listed_picture_of_another_kind_is_told_before_anything_is_trained(self):
        (self.folder / "phone.heic").write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")
        good = [f"pictures/train/{name}/{i}.png {label}\n" for label, name in enumerate(("elm", "oak")) for i in (0, 1, 3)]
        for name, lines in (("train", good), ("val", ["pictures/val/elm/0.png 0\n"]), ("test", ["phone.heic 1\n"])):
            self.write(f"{name}.txt", "".join(lines))
        self.write("list.yaml", CONFIG.replace("image_folder, root: pictures", "file_list, root: ., train: train.txt, val: val.txt, test: test.txt, num_classes: 2"))
        error = self.run_program("--config", "list.yaml", "--device", "cpu", expect=1).stderr
        self.assertIn("test: 1: './phone.heic'", error)
        self.run_program("--config", "list.yaml", "--device", "cpu", "--set", "eval.splits=[val]", "--set", "data.on_bad_image=skip")

    def test_training_images_of_one_class_are_told(self):
        self.write("one.txt", "".join(f"pictures/train/oak/{i}.png 1\n" for i in range(6)))
        self.write("list.yaml", CONFIG.replace("image_folder, root: pictures", "file_list, root: ., train: one.txt, val: other.txt, test: other.txt, num_classes: 3"))
        self.write("other.txt", "pictures/val/elm/0.png 0\n")
        for command in (("--dry-run",), ()):
            self.assertIn("one class, class_1", self.run_program("--config", "list.yaml", "--device", "cpu", *command, expect=1).stderr)

    def test_bad_images_are_left_out_and_listed_once(self):
        done = self.run_program("--config", "bad.yaml", "--device", "cpu", "--set", "data.on_bad_image=skip")
        log = (self.folder / "runs/bad/log.txt").read_text()
        for text in (log, done.stderr):
            self.assertEqual(text.count("left out: 'pictures/train/elm/2.png'"), 1)
            self.assertEqual(text.count("left out: 'pictures/test/oak/1.png'"), 1)
            self.assertIn("could not be read and were left out: 2", text)
            self.assertNotIn("data.on_bad_image", text)
        again = self.run_program("eval", "runs/bad", "--device", "cpu")
        self.assertEqual(again.stdout, done.stdout)
        self.assertIn("could not be read and were left out: 1", again.stderr)

    def test_the_first_process_lists_what_the_others_left_out(self):
        done = self.run_program("--config", "bad.yaml", "--device", "cpu", "--set", "data.on_bad_image=skip", "--processes", "3")
        log = (self.folder / "runs/bad/log.txt").read_text()
        for text in (log, done.stderr):
            self.assertEqual(text.count("left out: 'pictures/train/elm/2.png'"), 1, text)
            self.assertEqual(text.count("left out: 'pictures/test/oak/1.png'"), 1, text)
            self.assertEqual(text.count("could not be read and were left out: 2"), 1, text)

    def test_several_processes_tell_once_of_what_all_of_them_find(self):
        (self.folder / "pictures/train/elm/phone.heic").write_bytes(b"x")
        done = self.run_program("--config", "bad.yaml", "--device", "cpu", "--set", "data.on_bad_image=skip", "--processes", "2")
        self.assertEqual(done.stderr.count("1 file beside the images is not read"), 1, done.stderr)

    def test_a_last_batch_of_one_bad_image_ends_no_run(self):
        # 12 images in batches of 11; with this seed the bad one is alone in its batch in one of the epochs.
        settings = ("data.on_bad_image=skip", "data.batch_size=11", "train.epochs=4", "train.ema_decay=0.9", "seed=4")
        self.run_program("--config", "bad.yaml", "--device", "cpu", *(word for setting in settings for word in ("--set", setting)))
        rows = [json.loads(line) for line in (self.folder / "runs/bad/metrics.jsonl").read_text().splitlines()]
        self.assertEqual([row["step"] for row in rows], [2 * (i + 1) for i in range(4)])

    def test_a_loss_that_stays_is_told_where_the_last_batch_is_one_bad_image(self):
        # 39 images in batches of 2, all alike but the bad one, which comes last with this seed.
        for image in (self.folder / "pictures/train").glob("*/[013-9].png"):
            image.unlink()
        for i in range(37):
            write_png(self.folder / f"pictures/train/oak/more{i}.png", 20, 20, 100)
        settings = ("data.on_bad_image=skip", "data.batch_size=2", "train.epochs=1", "optimizer.lr=1e-9", "seed=22")
        done = self.run_program("--config", "bad.yaml", "--device", "cpu", *(word for setting in settings for word in ("--set", setting)))
        self.assertIn("over the first epoch the loss hardly fell", done.stderr)


if __name__ == "__main__":
    main()
