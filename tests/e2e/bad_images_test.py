"""data.on_bad_image: images that cannot be read end a run, or are left out of it."""

import json
import signal
import time

from program import ProgramTest, main, tensors_of, write_png

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

    def test_empty_files_are_reported_before_anything_is_trained(self):
        for command in (("--dry-run",), (), ("--processes", "2")):
            error = self.run_program("--config", "bad.yaml", "--device", "cpu", *command, expect=1).stderr
            self.assertIn("'pictures/test/oak/1.png' (empty)", error)
            self.assertIn("data.on_bad_image: skip", error)
            self.assertFalse((self.folder / "runs/bad").exists())

    def test_a_listed_picture_of_another_kind_is_reported_before_anything_is_trained(self):
        (self.folder / "phone.heic").write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")
        good = [f"pictures/train/{name}/{i}.png {label}\n" for label, name in enumerate(("elm", "oak")) for i in (0, 1, 3)]
        for name, lines in (("train", good), ("val", ["pictures/val/elm/0.png 0\n"]), ("test", ["phone.heic 1\n"])):
            self.write(f"{name}.txt", "".join(lines))
        self.write("list.yaml", CONFIG.replace("image_folder, root: pictures", "file_list, root: ., train: train.txt, val: val.txt, test: test.txt, num_classes: 2"))
        error = self.run_program("--config", "list.yaml", "--device", "cpu", expect=1).stderr
        self.assertIn("test: 1: './phone.heic'", error)
        self.run_program("--config", "list.yaml", "--device", "cpu", "--set", "eval.splits=[val]", "--set", "data.on_bad_image=skip")

    def test_a_split_without_a_readable_image_is_reported_before_anything_is_trained(self):
        for image in (self.folder / "pictures/test").glob("*/*.png"):
            image.write_bytes(b"")
        skip = ("--config", "bad.yaml", "--device", "cpu", "--set", "data.on_bad_image=skip")
        for command in (("--dry-run",), ()):
            self.assertIn("test: 12: 'pictures/test/elm/0.png' (empty)", self.run_program(*skip, *command, expect=1).stderr)
        self.run_program(*skip, "--set", "eval.splits=[val]")

    def test_a_class_that_loses_all_training_images_is_told(self):
        for image in (self.folder / "pictures/train/oak").iterdir():
            image.write_bytes(image.read_bytes()[:-20])
        done = self.run_program("--config", "bad.yaml", "--device", "cpu", "--set", "data.on_bad_image=skip")
        self.assertEqual(done.stderr.count("no training image of the class 'oak' could be read"), 1, done.stderr)

    def test_training_images_of_one_class_are_reported(self):
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

    def test_a_loss_that_stays_is_warned_of_where_the_last_batch_is_one_bad_image(self):
        # 39 images in batches of 2, all alike but the bad one, which comes last with this seed.
        for image in (self.folder / "pictures/train").glob("*/[013-9].png"):
            image.unlink()
        for i in range(37):
            write_png(self.folder / f"pictures/train/oak/more{i}.png", 20, 20, 100)
        settings = ("data.on_bad_image=skip", "data.batch_size=2", "train.epochs=1", "optimizer.lr=1e-9", "seed=22")
        done = self.run_program("--config", "bad.yaml", "--device", "cpu", *(word for setting in settings for word in ("--set", setting)))
        self.assertIn("over the first epoch the loss hardly fell", done.stderr)

    def test_the_image_may_be_repaired_or_removed_and_the_run_goes_on(self):
        (self.folder / "pictures/train/elm/2.png").unlink()
        broken = self.folder / "pictures/test/oak/1.png"
        for name, mend, told in (
            ("repaired", lambda: write_png(broken, 20, 24, 7), "'test/oak/1.png' has"),
            ("removed", broken.unlink, "'test/oak/1.png' is missing"),
        ):
            with self.subTest(name):
                run = ("--device", "cpu", "--set", f"run.dir=runs/{name}")
                write_png(broken, 20, 24, 100)
                broken.write_bytes(broken.read_bytes()[:-30])
                self.assertIn("Replace or remove", self.run_program("--config", "bad.yaml", *run, expect=1).stderr)
                weights = tensors_of(self.folder / f"runs/{name}/checkpoints/last.safetensors")
                mend()
                rules = ("--rules", "top:1")
                for command in (
                    ("eval", f"runs/{name}"),
                    ("scores", f"runs/{name}", "--split", "test", "--out", f"{name}.safetensors"),
                    ("calibrate", f"runs/{name}", *rules),
                ):
                    self.assertIn(told, self.run_program(*command, "--device", "cpu").stderr)
                resumed = self.run_program("--resume", f"runs/{name}", "--device", "cpu")
                self.assertEqual(resumed.stderr.count(told), 1)
                self.assertEqual(tensors_of(self.folder / f"runs/{name}/checkpoints/last.safetensors"), weights)
                # From now on these are the run's own images.
                after = self.run_program("eval", f"runs/{name}", "--device", "cpu")
                self.assertNotIn("test/oak/1.png", after.stderr)
                self.assertEqual(after.stdout, resumed.stdout)

    def test_an_evaluation_leaves_out_what_has_become_unreadable(self):
        for name in ("train/elm/2.png", "test/oak/1.png"):
            write_png(self.folder / "pictures" / name, 20, 24, 7)
        self.run_program("--config", "bad.yaml", "--device", "cpu")
        broken = self.folder / "pictures/test/oak/1.png"
        broken.write_bytes(broken.read_bytes()[:-30])
        for command in (
            ("eval", "runs/bad"),
            ("scores", "runs/bad", "--split", "test", "--out", "test.safetensors"),
            ("calibrate", "runs/bad", "--rules", "top:1"),
        ):
            advice = "--set data.on_bad_image=skip"
            self.assertIn(advice, self.run_program(*command, "--device", "cpu", expect=1).stderr)
            done = self.run_program(*command, "--device", "cpu", *advice.split())
            self.assertIn("left out: 1", done.stderr)

    def test_a_run_does_not_go_on_with_another_training_image(self):
        bad = ("--config", "bad.yaml", "--device", "cpu", "--set", "data.on_bad_image=skip")
        self.run_program(*bad)
        write_png(self.folder / "pictures/train/elm/2.png", 20, 24, 7)
        error = self.run_program("--resume", "runs/bad", "--device", "cpu", "--set", "train.epochs=3", expect=1).stderr
        self.assertIn("'train/elm/2.png' has", error)
        # Its results are of other images, and its weights are what they were.
        self.assertIn("'train/elm/2.png' has", self.run_program("eval", "runs/bad", "--device", "cpu").stderr)

    def test_runs_tested_on_other_images_are_not_compared_silently(self):
        (self.folder / "pictures/train/elm/2.png").unlink()
        write_png(self.folder / "pictures/test/oak/1.png", 20, 24, 7)
        for name, rate in (("one", "0.1"), ("two", "0.01")):
            self.run_program("--config", "bad.yaml", "--device", "cpu", "--set", f"run.dir=runs/{name}", "--set", f"optimizer.lr={rate}")
            write_png(self.folder / "pictures/test/oak/1.png", 21, 24, 7)
        found = json.loads(self.run_program("compare", "runs/one", "runs/two", "--no-bootstrap", "--json").stdout)
        self.assertEqual(found["metrics"][0]["differences"][0]["other_images"], [4])
        # Evaluated again, both are on the images that are there now.
        both = self.run_program("compare", "runs/one", "runs/two", "--device", "cpu", "--resamples", "20")
        self.assertIn("over images", both.stdout)
        self.assertIn("'test/oak/1.png' has", both.stderr)


ONES = """
data: {name: image_folder, root: pictures, input_size: 8, batch_size: 4, workers: 2, on_bad_image: skip}
model: {name: resnet18}
optimizer: {lr: 0.001}
run: {threads: 1}
train: {epochs: 6, checkpoint_every: {steps: 1}, clip_norm: 0.1} # batch norm over two values has enormous gradients
eval: {top_k: [1], average_k: []}
"""


class BatchesOfOne(ProgramTest):
    """A network of which one pixel is left, on 14 images in batches of 4: one or both of the last batch's are bad in some epochs."""

    def setUp(self):
        super().setUp()
        self.write_pictures(("elm", "oak"), 7, 90)
        for name in ("elm/2.png", "oak/0.png", "oak/3.png"):
            (self.folder / "pictures/train" / name).write_text("This is no image.\n")
        self.write("ones.yaml", ONES)

    def result(self, run):
        rows = [json.loads(line) for line in (self.folder / "runs" / run / "metrics.jsonl").read_text().splitlines()]
        rows = [{key: value for key, value in row.items() if not key.startswith("time/")} for row in rows]
        return rows, tensors_of(self.folder / "runs" / run / "checkpoints/last.safetensors")

    def arguments(self, run, *settings):
        return ("--config", "ones.yaml", "--device", "cpu", "--set", f"run.dir=runs/{run}", *(word for setting in settings for word in ("--set", setting)))

    def test_they_are_left_out_of_their_steps_and_counted(self):
        whole = self.run_program(*self.arguments("whole"))
        rows, weights = self.result("whole")
        self.assertEqual([row["step"] for row in rows], [4 * (i + 1) for i in range(6)])
        log = (self.folder / "runs/whole/log.txt").read_text()
        self.assertEqual(log.count("a training batch of which a single image"), 1)
        self.assertRegex(log, r"batches of which a single image could be read, and which were left out: \d+")
        self.assertEqual(whole.stderr.count("a training batch of which a single image"), 1)
        with self.subTest("in two processes"):
            self.run_program(*self.arguments("one", "train.accumulate=2"))
            self.run_program(*self.arguments("two"), "--processes", "2")
            self.assertEqual(self.result("two"), self.result("one"))
            log = [(self.folder / "runs" / run / "log.txt").read_text() for run in ("one", "two")]
            counts = [next(line for line in text.splitlines() if "and which were left out" in line).split("left out: ")[1] for text in log]
            self.assertEqual(counts[0], counts[1])
            self.assertEqual(log[1].count("a training batch of which a single image"), 1)
        with self.subTest("stopped and resumed"):
            process = self.start_program(*self.arguments("stopped"))
            metrics = self.folder / "runs/stopped/metrics.jsonl"
            while process.poll() is None and not (metrics.exists() and metrics.stat().st_size > 0):
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
            self.run_program("--resume", "runs/stopped", "--device", "cpu")
            self.assertEqual(self.result("stopped"), (rows, weights))

    def test_an_epoch_without_a_batch_that_can_be_used_ends_the_run(self):
        for name in ("elm", "oak"):
            for i in range(7):
                image = self.folder / f"pictures/train/{name}/{i}.png"
                image.write_bytes(image.read_bytes()[:-20])
        self.assertIn("no training batch", self.run_program(*self.arguments("none"), expect=1).stderr)
        error = self.run_program(*self.arguments("none"), "--overwrite", "--processes", "2", expect=1).stderr
        self.assertEqual(error.count("no training batch"), 1)

    def test_a_batch_of_one_in_every_epoch_is_refused_at_the_start(self):
        error = self.run_program(*self.arguments("all", "data.batch_size=13"), expect=1).stderr
        self.assertIn("data.drop_last: true", error)
        self.assertFalse((self.folder / "runs/all").exists())
        self.run_program(*self.arguments("all", "data.batch_size=13", "data.drop_last=true", "train.epochs=1"))


if __name__ == "__main__":
    main()
