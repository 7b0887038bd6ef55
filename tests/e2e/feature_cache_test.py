"""data.cache_features: a head trained on the features of a frozen body, which are kept in files. The bits of a run without them."""

import fcntl
import re
import resource
import signal
import struct
import subprocess
import time
from pathlib import Path

from processes import free_port
from program import PROGRAM, TINY, ProgramTest, environment, main, tensors_of, write_png

HEAD = ("--set", "model.pretrained=runs/tiny/checkpoints/last.safetensors", "--set", "model.pretrained_head=draw", "--set", "model.trainable=[head]",
        "--set", "optimizer.head_lr_factor=1", "--set", "data.label_noise.kind=none", "--set", "train.epochs=3")


def write_bmp(path, level):
    """8 x 8 pixels of one colour; all such files are of one size."""
    header = struct.pack("<2sIHHIIiiHHIIiiII", b"BM", 54 + 192, 0, 0, 54, 40, 8, 8, 1, 24, 0, 192, 2835, 2835, 0, 0)
    path.write_bytes(header + bytes([level, level // 2, 255 - level]) * 64)


class FeatureCache(ProgramTest):
    def setUp(self):
        super().setUp()
        self.train_tiny("tiny", "--set", "train.epochs=1")

    def head(self, name, *arguments, expect=0, **options):
        """A second stage in runs/NAME, of whose network only the head trains."""
        self.write("tiny.yaml", TINY)
        command = [PROGRAM, "--config", "tiny.yaml", "--device", "cpu", *HEAD, "--set", f"run.dir=runs/{name}", *arguments]
        done = subprocess.run(command, cwd=self.folder, env={**environment(), **options.pop("env", {})}, capture_output=True, text=True, timeout=300, **options)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def weights(self, name):
        tensors = tensors_of(self.folder / f"runs/{name}/checkpoints/last.safetensors")
        return {key: value for key, value in tensors.items() if not key.startswith("state.")}

    def check_equal(self, name, other):
        self.assertEqual(self.metrics(name), self.metrics(other))
        self.assertEqual(self.weights(name), self.weights(other))

    def test_a_run_has_the_bits_of_one_that_sees_its_images_in_every_epoch(self):
        done = self.head("cached")
        self.assertIn("only the head trains", done.stderr)
        self.assertFalse((self.folder / "runs/cached/features").exists())
        without = self.head("without", "--set", "data.cache_features=off")
        self.assertNotIn("only the head trains", without.stderr)
        self.check_equal("cached", "without")
        results = [(self.folder / f"runs/{name}/results.json").read_text() for name in ("cached", "without")]
        self.assertEqual(*results)
        # The whole model is in the checkpoint.
        evaluated = self.run_program("eval", "runs/cached", "--device", "cpu").stdout
        self.assertEqual(evaluated, self.run_program("eval", "runs/without", "--device", "cpu").stdout)
        for processes in ("2", "3"):
            self.head(f"with-{processes}", "--processes", processes, "--set", "data.batch_size=16", "--set", "data.eval_batch_size=32")
            self.head(f"plain-{processes}", "--processes", processes, "--set", "data.batch_size=16", "--set", "data.eval_batch_size=32", "--set", "data.cache_features=off")
            self.check_equal(f"with-{processes}", f"plain-{processes}")

    def test_only_the_last_smaller_batch_is_rounded_otherwise(self):
        arguments = ("--set", "data.train_size=470", "--set", "data.sampler=class_balanced")
        self.head("cached", *arguments)
        self.head("without", *arguments, "--set", "data.cache_features=off")
        for one, other in zip(self.metrics("cached"), self.metrics("without"), strict=True):
            self.assertAlmostEqual(one["train/loss"], other["train/loss"], 5)

    def test_bfloat16_halves_the_files_and_hardly_moves_the_numbers(self):
        sizes, done = {}, {}
        for precision in ("float32", "bfloat16"):
            done[precision] = self.head(precision, "--set", f"data.cache_precision={precision}", env={"SETTRAIN_CACHE": str(self.folder / precision)})
            sizes[precision] = [path.stat().st_size - 256 for path in (self.folder / precision / "features").iterdir()]
        self.assertEqual([len(sizes["float32"]), len(sizes["bfloat16"])], [3, 2])  # test images are scored after the training only
        self.assertLessEqual({2 * size for size in sizes["bfloat16"]}, set(sizes["float32"]))
        rounded, exact = self.metrics("bfloat16"), self.metrics("float32")
        self.assertNotEqual(rounded[0]["train/loss"], exact[0]["train/loss"])
        for one, other in zip(rounded, exact, strict=True):
            self.assertAlmostEqual(one["train/loss"] / other["train/loss"], 1, delta=2**-8)
        for precision in ("float32", "bfloat16"):
            self.assertEqual(self.run_program("eval", f"runs/{precision}", "--device", "cpu").stdout, done[precision].stdout)
        # A run that was stopped before its results has no features any more.
        results = self.folder / "runs/bfloat16/results.json"
        before = results.read_text()
        results.unlink()
        self.run_program("--resume", "runs/bfloat16", "--device", "cpu")
        self.assertEqual(results.read_text(), before)

    def test_why_there_is_no_cache(self):
        for setting, reason in (("data.pipeline=cifar", "cropped, mirrored"), ("data.augment=trivial", "augmented anew"), ("train.epochs=1", "two epochs"), ("model.trainable=[body, head]", "trains"),
                                ("train.ema_decay=0.9", "ema_decay")):
            done = self.head("none", "--set", "data.cache_features=on", "--set", setting, expect=2)
            self.assertRegex(done.stderr, f"data.cache_features: on: .*{reason}")
            self.assertFalse((self.folder / "runs/none").exists())
        self.assertIn("[features] the frozen body sees the images in every epoch: images are cropped, mirrored", self.head("random", "--set", "data.pipeline=cifar").stderr)
        for setting in ("data.cache_features=off", "model.trainable=[body, head]"):
            self.assertNotIn("[features]", self.head("silent", "--overwrite", "--set", "data.pipeline=cifar", "--set", setting).stderr)

    def test_a_dry_run_says_seconds_and_bytes(self):
        told = self.head("none", "--dry-run").stdout
        self.assertRegex(told, r"\nfeatures +720 images once through the frozen body, .*, into [\d.]+ KiB of files")
        self.assertNotIn("\nfeatures ", self.head("none", "--dry-run", "--set", "data.cache_features=off").stdout)

    def test_files_are_shared_and_those_that_do_not_fit_are_not_read(self):
        shared = {"SETTRAIN_CACHE": str(self.folder / "shared")}
        self.head("first", env=shared)
        files = {path: path.stat().st_mtime_ns for path in (self.folder / "shared/features").iterdir()}
        self.assertEqual(len(files), 3)
        self.assertFalse([path for path in files if path.suffix])
        self.head("second", "--set", "loss.epsilon=0.5", env=shared)  # of the loss, not of the features
        self.assertEqual(files, {path: path.stat().st_mtime_ns for path in (self.folder / "shared/features").iterdir()})
        largest = max(files, key=lambda path: path.stat().st_size)
        content = largest.read_bytes()
        for damaged in (content[:-4], content + b"\0\0\0\0", b"\0" * len(content), b""):
            largest.write_bytes(damaged)
            self.assertRegex(self.head("third", "--overwrite", env=shared).stderr, "'.*' is damaged")
            self.assertEqual(largest.read_bytes(), content)
            self.check_equal("third", "first")
        self.train_tiny("tiny", "--set", "train.epochs=2", "--overwrite")  # another body
        self.head("other", env=shared)
        self.assertEqual(len(list((self.folder / "shared/features").iterdir())), 6)

    def test_two_runs_make_one_file(self):
        shared = {**environment(), "SETTRAIN_CACHE": str(self.folder / "shared")}
        self.write("tiny.yaml", TINY)
        command = [PROGRAM, "--config", "tiny.yaml", "--device", "cpu", *HEAD]
        runs = [subprocess.Popen([*command, "--set", f"run.dir=runs/{name}"], cwd=self.folder, env=shared, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for name in "ab"]
        for run in runs:
            self.assertEqual(run.wait(), 0, run.communicate())
        self.check_equal("a", "b")
        self.assertEqual(len(list((self.folder / "shared/features").iterdir())), 3)

    def test_a_killed_run_goes_on_with_what_there_is(self):
        slow = ("--set", "data.image_size=32", "--set", "data.train_size=4800", "--set", "model.width=4")
        self.train_tiny("tiny", "--set", "train.epochs=1", "--set", "data.image_size=32", "--overwrite")
        self.head("whole", *slow)
        self.write("tiny.yaml", TINY)
        command = [PROGRAM, "--config", "tiny.yaml", "--device", "cpu", *HEAD, *slow, "--set", "run.dir=runs/killed"]
        features = self.folder / "runs/killed/features"
        kills, sizes = 0, []
        for stop in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
            process = subprocess.Popen(command, cwd=self.folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            least = sizes[-1] if sizes else 256
            while process.poll() is None:
                size = sum(path.stat().st_size for path in features.glob("*")) if features.exists() else 0
                if size > least + 16 * 64 * 32:
                    process.send_signal(stop)
                    kills += 1
                    break
                time.sleep(0.001)
            process.wait()
            sizes.append(sum(path.stat().st_size for path in features.glob("*")) if features.exists() else 0)
            command = [PROGRAM, "--resume", "runs/killed", "--device", "cpu"]
        self.assertGreaterEqual(kills, 1)
        self.run_program("--resume", "runs/killed", "--device", "cpu")
        self.check_equal("killed", "whole")

    def test_two_processes_go_on_after_an_odd_number_of_batches(self):
        shared = {"SETTRAIN_CACHE": str(self.folder / "shared")}
        settings = ("--set", "run.threads=1", "--set", "data.batch_size=16", "--set", "data.eval_batch_size=16")
        self.head("whole", *settings, env=shared)
        files = {path: path.read_bytes() for path in (self.folder / "shared/features").iterdir()}
        self.assertEqual(len(files), 3)
        boot = Path("/proc/sys/kernel/random/boot_id").read_bytes()
        for path, content in files.items():
            path.unlink()
            header = content[:256].rstrip(b"\0")
            row = int(header.split()[-1]) * 4
            path.with_suffix(".partial").write_bytes((header + boot).ljust(256, b"\0") + content[256:256 + 3 * 16 * row])
        self.head("two", "--processes", "2", *settings, env=shared)
        self.assertEqual(files, {path: path.read_bytes() for path in (self.folder / "shared/features").iterdir()})

    def test_two_processes_wait_for_another_run_longer_than_for_each_other(self):
        shared = {"SETTRAIN_CACHE": str(self.folder / "shared")}
        settings = ("--set", "run.threads=1", "--set", "data.batch_size=16", "--set", "data.eval_batch_size=16")
        self.head("whole", *settings, env=shared)
        files = list((self.folder / "shared/features").iterdir())
        for path in files:
            path.unlink()
        partial = files[0].with_suffix(".partial")
        with open(partial, "wb") as other_run:
            fcntl.flock(other_run, fcntl.LOCK_EX)
            command = [PROGRAM, "--config", "tiny.yaml", "--device", "cpu", *HEAD, "--processes", "2", "--set", "run.dir=runs/two", "--set", "parallel.timeout=3", *settings]
            run = subprocess.Popen(command, cwd=self.folder, env={**environment(), **shared}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            told = []
            while not told or "waiting for another process" not in told[-1]:
                told.append(run.stderr.readline())
                self.assertTrue(told[-1], told)
            time.sleep(5)
            partial.unlink()
        self.assertNotIn("waiting", run.communicate(timeout=300)[1])
        self.assertEqual(run.returncode, 0)
        self.assertTrue(files[0].exists())

    def test_networks_that_differ_without_their_tensors_share_no_file(self):
        vit = ("--set", "model.name=vit", "--set", "model.patch=4", "--set", "model.width=12", "--set", "model.depth=2")
        self.train_tiny("tiny", "--set", "train.epochs=1", "--overwrite", *vit)
        shared = {"SETTRAIN_CACHE": str(self.folder / "shared")}
        self.head("token", *vit, env=shared)
        self.head("mean", *vit, "--set", "model.pooling=mean", env=shared)
        self.head("without", *vit, "--set", "model.pooling=mean", "--set", "data.cache_features=off")
        self.check_equal("mean", "without")
        # Another head is fed the same features.
        self.head("heads", *vit, "--set", "model.heads=6", "--set", "model.pooling=mean", env=shared)
        self.head("heads_without", *vit, "--set", "model.heads=6", "--set", "model.pooling=mean", "--set", "data.cache_features=off")
        self.check_equal("heads", "heads_without")
        files = sorted((self.folder / "shared/features").iterdir())
        self.head("scaled", *vit, "--set", "model.head=scaled", "--set", "model.pretrained_head=keep", env=shared)
        self.assertEqual(files, sorted((self.folder / "shared/features").iterdir()))

    def test_images_that_were_written_anew_share_no_file(self):
        """With the same names and sizes."""
        images = self.folder / "images"
        for split, count in (("train", 6), ("val", 3), ("test", 3)):
            for label in ("a", "b"):
                for i in range(count):
                    (images / split / label).mkdir(parents=True, exist_ok=True)
                    write_bmp(images / split / label / f"{i}.bmp", 60 * (label == "b") + 9 * i)
        shared = {"SETTRAIN_CACHE": str(self.folder / "shared")}
        own = ("--set", "data.name=image_folder", "--set", "data.root=images", "--set", "data.input_size=8", "--set", "data.batch_size=4", "--set", "data.label_noise.kind=none",
               "--set", "model.pretrained_head=draw", "--set", "eval.top_k=[1]", "--set", "loss.name=cross_entropy", "--set", "select=[last]")
        self.head("first", *own, env=shared)
        for file in images.rglob("*.bmp"):
            write_bmp(file, 250 - 9 * int(file.stem) - 100 * (file.parent.name == "a"))
        self.head("second", *own, env=shared)
        self.head("without", *own, "--set", "data.cache_features=off")
        self.check_equal("second", "without")
        self.assertNotEqual(self.weights("first"), self.weights("second"))

    def test_a_folder_of_images_with_the_name_of_a_split_is_read(self):
        (self.folder / "test").mkdir()
        for i in range(20):
            write_png(self.folder / f"test/{i}.png", 20, 14, 10 * i)
        self.head("cached", "--set", "eval.threshold_from=test")
        self.head("without", "--set", "eval.threshold_from=test", "--set", "data.cache_features=off")
        self.check_equal("cached", "without")

    def test_files_of_others_in_the_folder_stay(self):
        self.head("run")
        own = self.folder / "runs/run/features/train.safetensors"
        own.parent.mkdir()
        own.write_text("mine")
        (own.parent / ("0" * 64 + ".partial")).write_text("left by a killed run")
        self.run_program("--resume", "runs/run", "--set", "train.epochs=4", "--device", "cpu")
        self.assertEqual([path.name for path in own.parent.iterdir()], [own.name])

    def test_processes_that_do_not_see_the_folder_train_on_the_images(self):
        (self.folder / "elsewhere").mkdir()
        self.write("tiny.yaml", TINY)
        weights = self.folder / "runs/tiny/checkpoints/last.safetensors"
        port = str(free_port())

        def run(name, *settings):
            command = [PROGRAM, "--config", str(self.folder / "tiny.yaml"), "--device", "cpu", *HEAD, "--set", f"model.pretrained={weights}",
                       "--set", f"run.dir=runs/{name}", *settings]
            variables = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            ranks = [subprocess.Popen(command, cwd=self.folder / where, env={**environment(), **variables, "RANK": rank, "LOCAL_RANK": rank},
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank, where in (("0", "."), ("1", "elsewhere"))]
            return [(rank.communicate(timeout=300)[1], rank.returncode) for rank in ranks]

        for error, code in run("apart"):
            self.assertEqual(code, 0, error)
        for error, code in run("refused", "--set", "data.cache_features=on"):
            self.assertEqual(code, 1, error)
        self.assertEqual([code for _, code in run("off", "--set", "data.cache_features=off")], [0, 0])
        self.check_equal("apart", "off")

    def test_a_run_goes_on_without_the_file(self):
        done = self.head("full", "--set", "data.train_size=4800", expect=1, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000)))
        advice = re.search(r"--set (data\.cache_features=off).*--allow (data\.cache_features)", done.stderr)
        self.assertTrue(advice, done.stderr)
        self.run_program("--resume", "runs/full", "--set", advice[1], "--allow", advice[2], "--device", "cpu")

    def test_a_full_disk(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))

        larger = ("--set", "data.train_size=4800")
        done = self.head("full", *larger, expect=1, preexec_fn=limit)
        self.assertRegex(done.stderr, r"cannot write '.*features/[0-9a-f]+\.partial'.*data\.cache_features=off")
        # The run goes on with the part of the file that is there when there is room again.
        kept = list((self.folder / "runs/full/features").glob("*.partial"))
        self.assertEqual(len(kept), 1)
        self.assertEqual((kept[0].stat().st_size - 256) % (32 * 64), 0)
        self.run_program("--resume", "runs/full", "--device", "cpu")
        self.head("whole", *larger)
        self.check_equal("full", "whole")


if __name__ == "__main__":
    main()
