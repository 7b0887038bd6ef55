"""A run from the config to its folder."""

import csv
import json
import re
import shutil
import signal
import time
import unittest

from program import TINY, ProgramTest, tensors_of, write_png


MEASURED = ("--set", "train.top_k=[1, 2, 6]", "--set", "train.gradient_nonzeros=true")


class Training(ProgramTest):
    def test_a_run_leaves_everything_in_its_folder(self):
        done = self.train_tiny()
        run = self.folder / "runs" / "tiny"
        for name in ("config.yaml", "provenance.json", "class_counts.csv", "log.txt", "metrics.jsonl", "metrics.csv", "results.json", "results.txt", "events.out.tfevents.settrain"):
            self.assertTrue((run / name).is_file(), name)
        for name in ("last", "best-val-top1", "best-val-top2"):
            self.assertTrue((run / "checkpoints" / f"{name}.safetensors").is_file(), name)
        self.assertEqual(done.stdout, (run / "results.txt").read_text())
        self.assertIn("avg1.5", done.stdout)
        self.assertIn("size", done.stdout)

        rows = self.metrics()
        self.assertEqual([row["epoch"] for row in rows], [1, 2])
        self.assertEqual([row["step"] for row in rows], [15, 30])
        self.assertLess(rows[1]["train/loss"], rows[0]["train/loss"])
        self.assertEqual(len(list(csv.DictReader((run / "metrics.csv").read_text().splitlines()))), 2)

        provenance = json.loads((run / "provenance.json").read_text())
        noise = provenance["label_noise"]
        self.assertEqual(noise["kind"], "superclass")
        self.assertAlmostEqual(noise["effective_rate"], 0.2 * 2 / 3)
        self.assertEqual(len(noise["digest"]), 64)
        self.assertIn("--config", provenance["command_line"])

    def test_the_model_learns_and_stays_below_the_bayes_optimum_by_no_less_than_chance_allows(self):
        self.train_tiny("tiny", "--set", "train.epochs=6")
        result = json.loads((self.folder / "runs/tiny/results.json").read_text())[0]
        test, bayes = result["metrics"]["test"], result["metrics"]["test Bayes"]
        self.assertGreater(test["top2"], 2 / 6 + 0.2)
        # The optimum is an expectation over labels; on 120 samples the model may exceed it by 4 standard errors of a fraction.
        self.assertLess(test["top2"], bayes["top2"] + 4 * 0.5 / 120**0.5)
        self.assertAlmostEqual(bayes["avg2_size"], 2.0)

    def test_splits_are_evaluated_after_every_so_many_epochs_and_after_the_last(self):
        constant = ("--set", "eval.every=2", "--set", "train.epochs=3", "--set", "schedule.name=constant")
        self.train_tiny("second", *constant)
        self.assertEqual([row["epoch"] for row in self.metrics("second") if "val/top1" in row], [2, 3])
        warning = self.run_program("--resume", "runs/second", "--set", "train.epochs=4", "--device", "cpu").stderr
        self.assertIn("epoch 3 was evaluated since it was the last", warning)
        self.assertEqual([row["epoch"] for row in self.metrics("second") if "val/top1" in row], [2, 3, 4])
        self.train_tiny("unwatched", *constant, "--set", "eval.during_training=[]", "--set", "select=[last]")
        self.assertNotIn("was evaluated", self.run_program("--resume", "runs/unwatched", "--set", "train.epochs=4", "--device", "cpu").stderr)

    def test_a_run_without_validation_images_keeps_the_last_epoch_and_the_best_on_test(self):
        self.train_tiny("all", "--set", "data.val_size=0", "--set", "eval.during_training=[test]", "--set", "eval.splits=[test]", "--set", "eval.threshold_from=same",
                        "--set", "select=[last, test/top1]", "--set", "train.epochs=3")  # fmt: skip
        rows = self.metrics("all")
        self.assertFalse([name for row in rows for name in row if name.startswith("val/")])
        last, best = json.loads((self.folder / "runs/all/results.json").read_text())
        self.assertEqual((last["checkpoint"], last["epoch"], best["checkpoint"]), ("last", 3, "best-test-top1"))
        self.assertAlmostEqual(last["metrics"]["test"]["top1"], rows[-1]["test/top1"])
        self.assertEqual(best["metrics"]["test"]["top1"], max(row["test/top1"] for row in rows))
        self.assertIn("too optimistic", (self.folder / "runs/all/log.txt").read_text())
        self.run_program("report", "runs/all", "--device", "cpu")

    def test_without_validation_images_nothing_may_ask_for_them(self):
        errors = self.train_tiny("all", "--set", "data.val_size=0", expect=2).stderr
        for key in ("eval.during_training", "eval.splits", "eval.threshold_from"):
            self.assertIn(key, errors)

    def test_the_same_config_gives_the_same_bits_for_any_number_of_workers(self):
        self.train_tiny("a")
        self.train_tiny("b", "--set", "data.workers=3")
        self.assertEqual(self.metrics("a"), self.metrics("b"))
        weights = [(self.folder / "runs" / name / "checkpoints/best-val-top2.safetensors").read_bytes() for name in "ab"]
        header = [int.from_bytes(w[:8], "little") + 8 for w in weights]  # the headers hold the configs, which differ
        self.assertEqual(weights[0][header[0] :], weights[1][header[1] :])

    def test_the_resolved_config_repeats_the_run(self):
        self.train_tiny("a")
        self.run_program("--config", "runs/a/config.yaml", "--device", "cpu", "--set", "run.dir=runs/again")
        self.assertEqual(self.metrics("a"), self.metrics("again"))

    def test_what_the_data_show_to_be_wrong_names_the_key_and_its_place(self):
        for path, value in (("eval.top_k", "[1, 2, 7]"), ("train.top_k", "[7]"), ("data.normalisation", "fashion_mnist"), ("data.batch_size", "481")):
            extra = ("--set", "data.drop_last=true") if path == "data.batch_size" else ()
            error = self.train_tiny("tiny", "--set", f"{path}={value}", *extra, expect=2).stderr
            self.assertRegex(error, r"--set data\.drop_last=true" if extra else rf"--set {path}=")
        self.assertFalse((self.folder / "runs").exists())

    def test_superclass_accuracy_is_measured_and_selected_on_where_the_data_have_superclasses(self):
        wanted = ("--set", "eval.superclass_accuracy=true", "--set", "select=[val/top1_superclass]")
        self.assertIn("top1_superclass", self.train_tiny("tiny", *wanted).stdout)
        result = json.loads((self.folder / "runs/tiny/results.json").read_text())[0]
        self.assertEqual(result["checkpoint"], "best-val-top1_superclass")
        self.assertGreater(result["metrics"]["test"]["top1_superclass"], result["metrics"]["test"]["top1"])
        for i in range(6):
            folder = self.folder / "pictures" / ("train", "val", "test")[i // 2] / ("elm", "oak")[i % 2]
            folder.mkdir(parents=True)
            write_png(folder / "0.png", 16, 16, 20)
        self.write("folder.yaml", "data: {name: image_folder, root: pictures, input_size: 16}\neval: {top_k: [1], average_k: []}\n")
        self.assertIn("has no superclasses", self.run_program("--config", "folder.yaml", "--device", "cpu", *wanted, expect=2).stderr)

    def test_set_rules_are_measured_and_selected_on_beside_a_split_that_only_calibrates(self):
        rules = ["conformal:lac:0.2", "conformal:raps(lambda=0.05,k=2):0.2", "top:2"]
        selected = ["val/coverage@conformal:lac:0.2", "val/size@conformal:raps(lambda=0.05,k=2):0.2"]
        wanted = ("--set", "data.calibration_share=0.5", "--set", f"eval.rules={json.dumps(rules)}", "--set", f"select={json.dumps(selected)}",
                  "--set", "eval.splits=[val, calibration, test]", "--set", "train.epochs=4")  # fmt: skip
        done = self.train_tiny("tiny", *wanted)
        run = self.folder / "runs" / "tiny"
        self.assertIn("480 training, 60 validation, 60 calibration and 120 test images", (run / "log.txt").read_text())
        self.assertRegex(done.stdout, r"\nmacro_coverage@conformal:raps\(lambda=0.05,k=2\):0.2 ")
        self.assertRegex(done.stdout, r"\ncoverage@top:2 .*\(size 2\.00\)")

        rows = self.metrics()
        results = json.loads((run / "results.json").read_text())
        self.assertEqual([r["checkpoint"] for r in results], ["best-val-coverage@conformal-lac-0.2", "best-val-size@conformal-raps-lambda=0.05,k=2--0.2"])
        for result, metric, best in zip(results, selected, (max, min)):
            self.assertTrue((run / "checkpoints" / f"{result['checkpoint']}.safetensors").is_file())
            self.assertEqual(rows[result["epoch"] - 1][metric], best(row[metric] for row in rows))
            split, name = metric.split("/")
            self.assertEqual(result["metrics"][split][name], rows[result["epoch"] - 1][metric])
        with open(run / "metrics.csv", newline="") as file:
            self.assertEqual([float(row[selected[1]]) for row in csv.DictReader(file)], [row[selected[1]] for row in rows])
        for split in ("val", "calibration", "test"):
            values = results[0]["metrics"][split]
            for rule in rules:
                self.assertTrue(0 <= values[f"coverage@{rule}"] <= 1 and 0 <= values[f"below_half@{rule}"] <= 1 and 0 < values[f"size@{rule}"] <= 6)
            self.assertNotIn("undercoverage_gap@top:2", values)
            # Half of val and of calibration, and all of test, are judged.
            self.assertEqual(sum(results[0]["set_sizes"][split]["coverage@top:2"]), 120 if split == "test" else 30)
        # Calibrated on the other 60 images, the best top-2 sets of the test split are still those of top-2 accuracy.
        self.assertEqual(results[0]["metrics"]["test"]["coverage@top:2"], results[0]["metrics"]["test"]["top2"])
        self.assertEqual(self.run_program("eval", "runs/tiny", "--device", "cpu").stdout, done.stdout)

        # What trains a run does not change; its validation images do.
        self.train_tiny("plain", "--set", "train.epochs=4")
        self.assertEqual([row["train/loss"] for row in self.metrics("plain")], [row["train/loss"] for row in rows])
        self.assertNotEqual([row["val/top1"] for row in self.metrics("plain")], [row["val/top1"] for row in rows])

    def test_set_rules_and_shares_that_make_no_sense_are_refused_with_their_place(self):
        for settings, key, reason in (
            (["eval.rules=[conformal:lac:2, top:x]"], "eval.rules", "top:x"),
            (["eval.rules=[top:7]"], "eval.rules", "7"),
            (["select=[val/coverage@top:2]"], "select", "eval.rules"),
            (["eval.splits=[calibration]"], "eval.splits", "data.calibration_share"),
            (["data.calibration_share=1"], "data.calibration_share", "1"),
            (["data.calibration_share=0.001"], "data.calibration_share", "none to calibrate on"),
            (["data.calibration_share=0.5", "data.val_size=0"], "data.calibration_share", "data.val_size is 0"),
            (["eval.rules=[top:2]", "data.val_size=0", "eval.splits=[test]"], "eval.rules", "data.val_size is 0"),
        ):
            with self.subTest(settings):
                error = self.train_tiny("tiny", *(word for setting in settings for word in ("--set", setting)), expect=2).stderr
                self.assertIn(key, error)
                self.assertIn(reason, error)
        self.write("listed.yaml", "data: {name: file_list, root: ., num_classes: 2, train: a.txt, val: a.txt, test: a.txt, calibration: a.txt, calibration_share: 0.5}\n")
        error = self.run_program("--config", "listed.yaml", "--device", "cpu", expect=2).stderr
        self.assertRegex(error, r"listed\.yaml:1:\d+: data\.calibration_share: data\.calibration lists")
        self.write("sigmoids.yaml", re.sub("loss: .*", "loss: {name: assume_negative}", TINY.replace("average_k:", "rules: [conformal:aps:0.1], average_k:")))
        error = self.run_program("--config", "sigmoids.yaml", "--device", "cpu", expect=2).stderr
        self.assertRegex(error, r"sigmoids\.yaml:\d+:\d+: eval\.rules: .*conformal:aps:0\.1")
        self.assertFalse((self.folder / "runs").exists())

    def test_accumulated_batches_are_one_step(self):
        self.train_tiny("tiny", "--set", "train.accumulate=4")
        self.assertEqual([row["step"] for row in self.metrics()], [4, 8])

    def test_what_training_steps_measure_changes_nothing_else(self):
        self.train_tiny("a")
        self.train_tiny("b", *MEASURED)
        rows = self.metrics("b")
        for row in rows:
            self.assertGreaterEqual(row.pop("train/top2"), row["train/top1"])
            self.assertEqual(row.pop("train/top6"), 1)
            self.assertTrue(0 < row.pop("train/gradient_nonzeros") <= 6)
        self.assertEqual(rows, self.metrics("a"))
        a, b = (tensors_of(self.folder / "runs" / name / "checkpoints/last.safetensors") for name in "ab")
        self.assertEqual(a, b)

    def test_without_epochs_the_first_weights_are_evaluated(self):
        none = ("--set", "train.epochs=0")
        dry = self.train_tiny("tiny", *none, "--dry-run").stdout
        self.assertIn("none: the first weights are evaluated as they are", dry)
        self.assertNotIn("nan", dry)
        done = self.train_tiny("tiny", *none)
        self.assertEqual(done.stdout, (self.folder / "runs/tiny/results.txt").read_text())
        (result,) = json.loads((self.folder / "runs/tiny/results.json").read_text())
        self.assertEqual((result["checkpoint"], result["epoch"]), ("last", 0))
        self.assertEqual(set(result["metrics"]), {"val", "val Bayes", "test", "test Bayes"})
        self.assertEqual(self.metrics(), [])
        self.assertEqual(self.run_program("eval", "runs/tiny", "--device", "cpu").stdout, done.stdout)
        self.run_program("report", "runs/tiny", "--device", "cpu")
        self.assertIn("is finished: 0 epochs", self.run_program("--resume", "runs/tiny", "--device", "cpu").stderr)
        # More epochs are those of a run that had them from the start.
        self.train_tiny("whole")
        self.run_program("--resume", "runs/tiny", "--set", "train.epochs=2", "--device", "cpu")
        self.assertEqual(self.metrics(), self.metrics("whole"))
        results = [json.loads((self.folder / "runs" / name / "results.json").read_text()) for name in ("tiny", "whole")]
        self.assertEqual(*results)

    def test_the_dry_run_counts_a_checkpoint_for_each_metric_of_select(self):
        def disk(select):
            lines = self.train_tiny("tiny", "--dry-run", "--set", f"select={select}").stdout.splitlines()
            return next(line for line in lines if line.startswith("disk")).split(" of checkpoints")[0]

        self.assertEqual(disk("[last, val/top1]"), disk("[val/top1]"))
        self.assertNotEqual(disk("[val/top1]"), disk("[val/top1, val/top2]"))

    def test_a_training_that_stays_at_the_accuracy_of_a_guess_is_warned_of_once(self):
        # Four steps an epoch have no tenths whose losses could be compared.
        settings = ("data.batch_size=120", "optimizer.lr=1e-12", "train.epochs=16")
        done = self.train_tiny("still", *(word for setting in settings for word in ("--set", setting)))
        self.assertEqual(done.stderr.count("the top-1 accuracy on the training images is"), 1, done.stderr)
        self.assertRegex(done.stderr, r"after epoch 13 .* a guess among the 6 classes has 0\.1667")
        self.assertNotIn("a guess among", self.train_tiny("fine", "--set", "train.epochs=4").stderr)

    def test_eval_repeats_the_results(self):
        trained = self.train_tiny()
        self.assertEqual(self.run_program("eval", "runs/tiny", "--device", "cpu").stdout, trained.stdout)
        last = json.loads(self.run_program("eval", "runs/tiny", "--checkpoint", "last", "--json", "--device", "cpu").stdout)
        self.assertEqual(last[0]["checkpoint"], "last")
        self.assertAlmostEqual(last[0]["metrics"]["val"]["top2"], self.metrics()[1]["val/top2"])
        narrower = self.run_program("eval", "runs/tiny", "--set", "eval.average_k=[3]", "--set", "eval.splits=[test]", "--device", "cpu").stdout
        self.assertIn("avg3", narrower)
        self.assertNotIn("\ntop1 ", self.run_program("eval", "runs/tiny", "--set", "eval.top_k=[2]", "--device", "cpu").stdout)
        for checkpoint in ("best", "../checkpoints/last"):
            error = self.run_program("eval", "runs/tiny", "--checkpoint", checkpoint, expect=1).stderr
            self.assertIn("best-val-top1", error)
        self.run_program("eval", "runs/nothing", expect=1)
        for setting in ("model.width=8", "run.dir=elsewhere"):
            self.assertIn("--set " + setting.split("=")[0], self.run_program("eval", "runs/tiny", "--set", setting, expect=2).stderr)

    def test_averaged_weights_are_what_is_evaluated(self):
        settings = ("--set", "train.ema_decay=0.5", "--set", "train.gradient_checkpointing=true", "--set", "train.precision=bf16")
        self.train_tiny("tiny", *settings)
        tensors = tensors_of(self.folder / "runs/tiny/checkpoints/last.safetensors")
        self.assertNotEqual(tensors["ema.fc.weight"], tensors["model.fc.weight"])
        last = json.loads(self.run_program("eval", "runs/tiny", "--checkpoint", "last", "--json", "--device", "cpu").stdout)
        averaged = self.metrics()[1]
        for name in ("top2", "avg2_lambda"):
            self.assertEqual(last[0]["metrics"]["val"][name], averaged[f"val/{name}"])
        more = ("--resume", "runs/tiny", "--set", "train.epochs=3", "--device", "cpu", "--allow", "train.ema_decay", "--set")
        self.assertIn("cannot change", self.run_program(*more, "train.ema_decay=0", expect=2).stderr)
        self.run_program(*more, "train.ema_decay=0.6")  # another average goes on
        self.train_tiny("tiny", "--overwrite", "--set", "train.precision=bf16")
        self.assertNotIn("ema.fc.weight", tensors_of(self.folder / "runs/tiny/checkpoints/last.safetensors"))
        plain = self.metrics()[1]
        self.assertEqual(plain["train/loss"], averaged["train/loss"])
        self.assertNotEqual(plain["val/avg2_lambda"], averaged["val/avg2_lambda"])
        error = self.run_program("--resume", "runs/tiny", "--set", "train.ema_decay=0.5", "--set", "train.epochs=3", "--device", "cpu", expect=2).stderr
        self.assertIn("train.ema_decay: 0.0 there, 0.5 now (cannot change within a run)", error)

    def test_unlabelled_images_can_set_the_thresholds(self):
        self.train_tiny()
        images = self.folder / "images"
        images.mkdir()
        for i in range(20):
            write_png(images / f"{i}.png", 20, 14, 10 * i)
        by_val = self.run_program("eval", "runs/tiny", "--json", "--device", "cpu").stdout
        by_folder = self.run_program("eval", "runs/tiny", "--json", "--set", "eval.threshold_from=images", "--device", "cpu").stdout
        val, folder = (json.loads(text)[0]["metrics"]["val"] for text in (by_val, by_folder))
        self.assertNotEqual(val["avg2_lambda"], folder["avg2_lambda"])
        self.assertEqual(val["top2"], folder["top2"])
        (images / "3.png").write_bytes(b"no image")
        self.assertIn("3.png", self.run_program("eval", "runs/tiny", "--set", "eval.threshold_from=images", "--device", "cpu", expect=1).stderr)
        error = self.run_program("eval", "runs/tiny", "--set", "eval.threshold_from=imags", "--device", "cpu", expect=2).stderr
        self.assertIn("eval.threshold_from", error)

    def test_a_folder_that_is_gone_can_be_replaced_when_the_run_goes_on(self):
        (self.folder / "images").mkdir()
        write_png(self.folder / "images/0.png", 20, 14, 10)
        self.train_tiny("tiny", "--set", "eval.threshold_from=images", "--set", "eval.average_k=[]")
        shutil.rmtree(self.folder / "images")
        self.run_program("--resume", "runs/tiny", "--device", "cpu", expect=2)
        replaced = ("--set", "eval.threshold_from=val", "--allow", "eval.threshold_from")
        self.run_program("--resume", "runs/tiny", *replaced, "--device", "cpu")

    def test_overwriting_with_a_config_that_cannot_run_loses_nothing(self):
        self.train_tiny()
        before = self.metrics()
        self.train_tiny("tiny", "--overwrite", "--set", "data.normalisation=fashion_mnist", expect=2)
        self.assertEqual(self.metrics(), before)

    def test_a_run_is_not_overwritten_unless_told(self):
        self.train_tiny()
        before = self.metrics()
        self.assertIn("--overwrite", self.train_tiny(expect=1).stderr)
        self.assertEqual(self.metrics(), before)
        self.train_tiny("tiny", "--overwrite", "--set", "train.epochs=1")
        self.assertEqual(len(self.metrics()), 1)

    def test_a_loss_that_is_not_finite_stops_the_run_and_says_where(self):
        error = self.train_tiny("tiny", "--set", "optimizer.lr=1e30", "--set", "schedule.name=constant", "--set", "schedule.warmup_epochs=0", expect=1).stderr
        for words in ("not finite at step", "learning rate 1e+30", "ids", "largest |score|", "first tensor that is not finite is "):
            self.assertIn(words, error)

    def test_missing_data_say_what_is_missing_and_where_it_was_looked_for(self):
        config = self.write("cifar.yaml", "data: {name: cifar100, root: nowhere}\n")
        error = self.run_program("--config", config, expect=1).stderr
        self.assertIn("nowhere", error)
        self.assertIn("cifar", error)


class Interruption(ProgramTest):
    LONG = ("--set", "train.epochs=1000000")

    def wait_for_rows(self, rows=1):
        metrics = self.folder / "runs/long/metrics.jsonl"
        deadline = time.monotonic() + 120
        while not (metrics.exists() and metrics.read_text().count("\n") >= rows) and time.monotonic() < deadline:
            time.sleep(0.05)

    def interrupt(self, number):
        self.write("long.yaml", TINY)
        process = self.start_program("--config", "long.yaml", "--device", "cpu", *self.LONG)
        self.wait_for_rows()
        process.send_signal(number)
        _, error = process.communicate(timeout=60)
        step = int(re.search(r"stopped by a signal at step (\d+)", error).group(1))
        saved = tensors_of(self.folder / "runs/long/checkpoints/last.safetensors")["state.step"][2]
        self.assertEqual(int.from_bytes(saved, "little"), step)
        self.assertGreater(step, 15)
        self.assertIn("go on by --resume runs/long", error)
        self.assertFalse(list(self.folder.rglob("*.tmp-*")))
        return process.returncode

    def test_sigterm_exits_with_143(self):
        self.assertEqual(self.interrupt(signal.SIGTERM), 143)

    def test_sigint_exits_with_130(self):
        self.assertEqual(self.interrupt(signal.SIGINT), 130)

    def test_a_second_sigint_stops_at_once_and_harms_nothing(self):
        self.write("long.yaml", TINY)
        process = self.start_program("--config", "long.yaml", "--device", "cpu", *self.LONG, "--set", "train.checkpoint_every.steps=1")
        self.wait_for_rows()
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.run_program("eval", "runs/long", "--checkpoint", "last", "--device", "cpu")
        process = self.start_program("--resume", "runs/long", "--device", "cpu")
        self.wait_for_rows(len(self.metrics("long")) + 1)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143)
        self.assertFalse(list(self.folder.rglob("*.tmp-*")))

    def test_the_clock_brings_checkpoints_within_an_epoch(self):
        self.write("long.yaml", TINY)
        settings = ("--set", "data.train_size=200000", "--set", "train.checkpoint_every.minutes=0.002")
        process = self.start_program("--config", "long.yaml", "--device", "cpu", *settings)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        last = self.folder / "runs/long/checkpoints/last.safetensors"
        deadline = time.monotonic() + 120
        while not (last.exists() and int.from_bytes(tensors_of(last)["state.batch"][2], "little")) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertGreater(int.from_bytes(tensors_of(last)["state.batch"][2], "little"), 0)

    def test_what_steps_measure_goes_on_within_an_epoch(self):
        self.write("long.yaml", TINY)
        start = ("--config", "long.yaml", "--device", "cpu", "--set", "data.train_size=4000", "--set", "train.checkpoint_every.steps=1", *MEASURED)
        self.run_program(*start, "--set", "run.dir=runs/whole")
        process = self.start_program(*start)
        last = self.folder / "runs/long/checkpoints/last.safetensors"
        batch = lambda: int.from_bytes(tensors_of(last)["state.batch"][2], "little")
        deadline = time.monotonic() + 120
        while not (last.exists() and batch()) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.kill()
        process.communicate()
        self.assertGreater(batch(), 0)
        self.assertEqual(tensors_of(last)["state.measured"][:2], ("F64", [3]))
        error = self.run_program("--resume", "runs/long", "--set", "train.top_k=[3]", "--allow", "train.top_k", expect=1).stderr
        self.assertIn("train.top_k cannot change", error)
        self.run_program("--resume", "runs/long", "--device", "cpu")
        self.assertEqual(self.metrics("long"), self.metrics("whole"))

    def test_two_processes_cannot_write_one_run(self):
        self.write("long.yaml", TINY)
        first = self.start_program("--config", "long.yaml", "--device", "cpu", *self.LONG)
        self.addCleanup(first.communicate)
        self.addCleanup(first.kill)
        config = self.folder / "runs/long/config.yaml"
        deadline = time.monotonic() + 120
        while not config.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        error = self.run_program("--config", "long.yaml", "--overwrite", "--device", "cpu", expect=1).stderr
        self.assertIn(str(first.pid), error)


if __name__ == "__main__":
    unittest.main()
