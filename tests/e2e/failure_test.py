"""What goes wrong while a run is under way: full disks, missing memory, damaged files, other circumstances. Nothing is lost."""

import json
import os
import re
import resource
import shutil
import struct
import subprocess
import unittest

from program import PROGRAM, TINY, ProgramTest, environment, main, tensors_of

RESUME = ("--resume", "runs/tiny", "--device", "cpu")


class FailingWrites(ProgramTest):
    def last(self, run="runs/tiny"):
        return (self.folder / run / "checkpoints/last.safetensors").read_bytes()

    def assert_nothing_is_lost(self, before, run="runs/tiny"):
        self.assertEqual(self.last(run), before)
        self.assertFalse(list((self.folder / run).rglob("*.tmp-*")))

    def test_a_file_over_the_size_limit(self):
        self.train_tiny()
        before = self.last()
        limit = len(before) // 2

        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        done = subprocess.run(
            [PROGRAM, *RESUME, "--set", "train.epochs=4"], cwd=self.folder, env=environment(), capture_output=True, text=True, preexec_fn=limited
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("last.safetensors': File too large", done.stderr)
        self.assert_nothing_is_lost(before)
        self.run_program(*RESUME, "--set", "train.epochs=4")
        self.assertEqual([row["epoch"] for row in self.metrics()], [1, 2, 3, 4])

    def test_a_folder_that_cannot_be_made(self):
        for wrong in ("/proc/run", "/dev/null", "/dev/null/run"):
            error = self.train_tiny("tiny", "--set", f"run.dir={wrong}", expect=1).stderr
            self.assertIn(f"cannot create '{wrong}'", error)

    @unittest.skipIf("SETTRAIN_SANITIZED" in os.environ, "a sanitiser's shadow memory is over any limit")
    def test_missing_memory(self):
        self.write("tiny.yaml", TINY)

        def limited():
            resource.setrlimit(resource.RLIMIT_DATA, (700_000_000, 700_000_000))

        large = ("data.train_size=100000", "data.batch_size=100000", "model.width=64")
        settings = [argument for setting in large for argument in ("--set", setting)]
        done = subprocess.run(
            [PROGRAM, "--config", "tiny.yaml", "--device", "cpu", *settings],
            **{"cwd": self.folder, "env": environment(), "capture_output": True, "text": True, "preexec_fn": limited},
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("Out of memory. Lower data.batch_size", done.stderr)


class Refusals(ProgramTest):
    def setUp(self):
        super().setUp()
        self.train_tiny()
        self.tiny = self.folder / "runs/tiny"
        self.checkpoint = self.tiny / "checkpoints/last.safetensors"

    def resume(self, *arguments, expect, run="runs/tiny"):
        return self.run_program("--resume", run, "--device", "cpu", *arguments, expect=expect).stderr

    def test_a_finished_run_says_so_and_goes_on_for_more_epochs(self):
        self.assertIn("is finished: 2 epochs", self.resume(expect=0))
        self.assertIn("has completed 2 epochs", self.resume("--set", "train.epochs=1", expect=2))
        self.assertIn("schedule", self.resume("--set", "train.epochs=3", expect=0))
        self.assertEqual([row["epoch"] for row in self.metrics()], [1, 2, 3])
        self.assertEqual(len(json.loads((self.tiny / "provenance.json").read_text())["resumed"]), 1)
        self.assertIn("is finished: 3 epochs", self.resume(expect=0))

    def test_changed_keys_are_listed_and_must_be_allowed_by_name(self):
        changes = ("--set", "train.epochs=3", "--set", "optimizer.lr=0.01", "--set", "data.workers=2", "--set", "train.clip_norm=1")
        error = self.resume(*changes, expect=2)
        self.assertIn("optimizer.lr: 0.05 there, 0.01 now", error)
        self.assertIn("train.clip_norm: 0.0 there, 1.0 now", error)
        self.assertNotIn("data.workers", error)
        self.assertIn("did you mean 'optimizer.lr'", self.resume(*changes, "--allow", "optimizer.lrr", expect=2))
        self.resume(*changes, "--allow", "optimizer.lr", "--allow", "train.clip_norm", expect=0)
        self.assertEqual(self.metrics()[2]["epoch"], 3)
        # From now on these are the run's own.
        self.assertIn("is finished", self.resume(expect=0))

    def test_a_config_file_is_compared_too(self):
        config = self.write("tiny.yaml", TINY.replace("epsilon: 1.0", "epsilon: 0.5"))
        self.assertIn("loss.epsilon: 1.0 there, 0.5 now", self.resume("--config", config, expect=2))

    def test_what_does_not_go_together(self):
        for arguments in (["--overwrite"], ["--dry-run"]):
            self.resume(*arguments, expect=2)
        self.run_program("--config", "tiny.yaml", "--allow-inexact", expect=2)
        self.run_program("--config", "tiny.yaml", "--allow", "optimizer.lr", expect=2)

    def test_another_number_of_threads_changes_bits(self):
        more = ("--set", "train.epochs=3", "--set", "run.threads=2")
        error = self.resume(*more, expect=1)
        self.assertIn("machine.threads: 1 there, 2 now", error)
        self.assertIn("--allow-inexact", error)
        self.assertIn("going on inexactly", self.resume(*more, "--allow-inexact", expect=0))

    def test_other_data(self):
        for key, what in (("data.seed", "data.digest"), ("data.label_noise.seed", "data.labels")):
            error = self.resume("--set", "train.epochs=3", "--set", f"{key}=99", "--allow", key, expect=1)
            self.assertIn(what, error)

    def test_damage_in_one_bit_is_seen(self):
        content = bytearray(self.checkpoint.read_bytes())
        start = 8 + int.from_bytes(content[:8], "little")
        for place in (start + 5, len(content) - 1, content.index(b"model.conv1"), content.index(b"optimizer.lr") if b"optimizer.lr" in content else start):
            damaged = bytearray(content)
            damaged[place] ^= 1
            self.checkpoint.write_bytes(damaged)
            error = self.resume("--set", "train.epochs=3", expect=1)
            self.assertIn("last.safetensors", error)
        self.checkpoint.write_bytes(content[:-10])
        self.assertIn("last.safetensors", self.resume(expect=1))
        self.checkpoint.write_bytes(b"something else")
        self.assertIn("is not a safetensors file", self.resume(expect=1))
        self.assertIn("is not a safetensors file", self.run_program("eval", "runs/tiny", "--checkpoint", "last", expect=1).stderr)

    def test_a_checkpoint_of_another_version(self):
        content = self.checkpoint.read_bytes()
        self.checkpoint.write_bytes(content.replace(b'"format_version":"1"', b'"format_version":"9"'))
        self.assertIn("expected format_version '1', got '9'", self.resume(expect=1))

    def test_eval_refuses_other_data_than_the_run_was_trained_on(self):
        config = self.tiny / "config.yaml"
        config.write_text(config.read_text().replace("train_size: 480", "train_size: 479"))
        self.assertIn("data.digest", self.run_program("eval", "runs/tiny", "--device", "cpu", expect=1).stderr)
        config.write_text(config.read_text().replace("train_size: 479", "train_size: 480").replace("normalisation: auto", "normalisation: imagenet"))
        self.assertIn("data.normalisation: auto there, imagenet now", self.run_program("eval", "runs/tiny", "--device", "cpu", expect=1).stderr)

    def test_weights_that_are_not_finite_do_not_replace_a_good_checkpoint(self):
        """The loss of a step is finite, and its update is not: the next step would see it, a checkpoint in between must not keep it."""
        steps = ("--set", "train.epochs=9", "--set", "train.checkpoint_every.steps=1", "--set", "optimizer.lr=1e38", "--allow", "optimizer.lr")
        error = self.resume(*steps, expect=1)
        self.assertIn("is not finite", error)
        for name, (dtype, _, content) in tensors_of(self.checkpoint).items():
            if dtype == "F32":
                self.assertTrue(all(value == value and abs(value) != float("inf") for (value,) in struct.iter_unpack("<f", content)), name)

    def test_a_run_whose_last_checkpoint_was_removed_is_not_begun_again(self):
        self.checkpoint.unlink()
        before = self.metrics()
        self.assertIn("last.safetensors' is missing", self.resume("--set", "train.epochs=3", expect=1))
        self.assertEqual(self.metrics(), before)
        self.assertTrue((self.tiny / "results.json").exists())

    def test_logs_that_were_cut_are_not_taken_for_the_runs(self):
        (self.tiny / "metrics.jsonl").write_text("")
        self.assertIn("metrics.jsonl", self.resume("--set", "train.epochs=3", expect=1))

    def test_a_damaged_provenance_is_neither_replaced_nor_lost(self):
        provenance = self.tiny / "provenance.json"
        provenance.write_text(provenance.read_text()[:-10])
        damaged = provenance.read_text()
        self.assertIn("provenance.json' is damaged", self.resume("--set", "train.epochs=3", expect=1))
        self.assertEqual(provenance.read_text(), damaged)
        self.assertTrue((self.tiny / "results.json").exists())
        provenance.unlink()
        self.assertIn("provenance.json' was missing", self.resume("--set", "train.epochs=3", expect=0))
        self.assertEqual([entry["step"] for entry in json.loads(provenance.read_text())["resumed"]], [self.metrics()[1]["step"]])

    def test_a_best_checkpoint_is_the_last_one_by_another_name(self):
        """Until the last one is replaced; the best one then stays what it was."""
        best = self.checkpoint.with_name("best-val-top1.safetensors")
        self.resume("--set", "train.epochs=9", "--set", "train.checkpoint_every.steps=1", expect=0)
        rows = {row["epoch"]: row["val/top1"] for row in self.metrics()}
        of_best, of_last = (tensors_of(file)["state.epoch"] for file in (best, self.checkpoint))
        self.assertEqual(int.from_bytes(of_best[2], "little"), max(rows, key=rows.get))
        self.assertEqual(best.samefile(self.checkpoint), of_best == of_last)

    def test_tensorboards_file_is_written_again_where_it_is_lost(self):
        events = self.tiny / "events.out.tfevents.settrain"
        self.resume("--set", "train.epochs=3", expect=0)
        size = events.stat().st_size
        events.unlink()
        (self.tiny / "results.json").unlink()
        self.resume(expect=0)
        self.assertEqual(events.stat().st_size, size)

    def test_a_run_without_its_first_checkpoint_begins(self):
        expected = tensors_of(self.checkpoint), self.metrics()
        shutil.rmtree(self.tiny / "checkpoints")
        for name in ("results.json", "metrics.jsonl", "metrics.csv", "events.out.tfevents.settrain"):
            (self.tiny / name).unlink()
        self.resume(expect=0)
        self.assertEqual((tensors_of(self.checkpoint), self.metrics()), expected)

    def test_a_run_that_was_moved_goes_on_where_it_is(self):
        self.tiny.rename(self.folder / "moved")
        self.resume("--set", "train.epochs=3", expect=0, run="moved")
        self.assertTrue((self.folder / "moved/results.json").exists())
        self.assertFalse(self.tiny.exists())

    def test_a_run_goes_on_where_it_is(self):
        self.assertIn("--set run.dir=", self.resume("--set", "run.dir=elsewhere", expect=2))
        self.run_program("--resume", "", expect=2)

    def test_what_is_no_run_cannot_be_resumed(self):
        self.assertIn("runs/tiny", self.resume(expect=1, run="runs/tini"))


class DryRun(ProgramTest):
    def test_it_tells_what_the_run_then_takes_and_writes_nothing(self):
        config = self.write("tiny.yaml", TINY)
        # Wide enough for its activations to outweigh what the program itself takes.
        arguments = ("--config", config, "--device", "cpu", "--set", "model.width=64", "--set", "data.batch_size=480", "--set", "data.image_size=20")
        # As many steps as are measured: the allocator's heap grows over the first ones.
        arguments += ("--set", "train.epochs=6")
        told = self.run_program(*arguments, "--dry-run").stdout
        self.assertFalse((self.folder / "runs").exists())
        self.assertRegex(told, r"images +480 training, 120 validation, 120 test; 6 classes")
        self.assertRegex(told, r"steps +6: 1 an epoch, 6 epochs")
        for words in ("parameters ", "a step ", "time ", "disk ", "run folder   runs/tiny"):
            self.assertIn(words, told)

        diverged = self.run_program(*arguments, "--dry-run", "--set", "optimizer.lr=1e30", expect=1)
        self.assertRegex(diverged.stdout, r"\na step +[\d.e-]+ s .*learning rate of 0")
        self.assertRegex(diverged.stdout, r"\ntime +\S+.* of training")
        self.assertRegex(diverged.stderr, "not finite")

        error = self.run_program(*arguments).stderr
        self.assertIn("holds a run", self.run_program(*arguments, "--dry-run").stdout)
        told_bytes, taken = (self.mebibytes(rf"{line} +([\d.]+) (\w+)", text) for line, text in (("memory", told), ("peak memory", error)))
        self.assertGreater(taken, 800)
        self.assertLess(abs(told_bytes / taken - 1), 0.25)
        disk = self.mebibytes(r"disk +([\d.]+) (\w+)", told)
        used = sum(file.stat().st_size for file in (self.folder / "runs/tiny/checkpoints").iterdir()) / 2**20
        # Four copies at most, three of which stay.
        self.assertLess(abs(disk / used * 3 / 4 - 1), 0.1)

    def mebibytes(self, pattern, text):
        number, unit = re.search(pattern, text).groups()
        return float(number) * {"KiB": 2**-10, "MiB": 1, "GiB": 2**10}[unit]


if __name__ == "__main__":
    main()
