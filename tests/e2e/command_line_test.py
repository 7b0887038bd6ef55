"""The command line and its exit codes."""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import struct
import subprocess
import termios
import unittest

from program import PROGRAM, TINY, ProgramTest, environment


class CommandLine(ProgramTest):
    def test_help_and_version(self):
        self.assertIn("train", self.run_program("--help").stdout)
        self.assertRegex(self.run_program("--version").stdout, r"^settrain \d+\.\d+\.\d+\n$")

    def test_a_start_loads_few_libraries_and_none_of_a_gpu(self):
        environment = {**os.environ, "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(self.folder / "loaded")}
        subprocess.run([PROGRAM, "--version"], env=environment, check=True, capture_output=True)
        lines = [line for file in self.folder.glob("loaded.*") for line in file.read_text().splitlines()]
        libraries = [line.rsplit("/", 1)[-1] for line in lines if "calling init: " in line]
        self.assertIn("libtorch_cpu.so", libraries)
        self.assertLessEqual(len(libraries), 60)
        for heavy in ("libtorch_cuda", "libcudnn", "libopencv_imgcodecs", "libgdal"):
            self.assertFalse([name for name in libraries if name.startswith(heavy)], heavy)

    def test_wrong_usage_exits_with_2(self):
        for arguments in ([], ["trian"], ["train"], ["--config"], ["list", "loses"], ["eval"], ["--config", ""], ["--config", "x", "--bogus"]):
            self.run_program(*arguments, expect=2)

    def test_wrong_usage_points_at_the_help_of_the_command(self):
        for command in (["bench", "losses"], ["table"], ["table", "list"], ["eval"]):
            self.assertIn(f"Run `settrain {' '.join(command)} --help`", self.run_program(*command, "--bogus", expect=2).stderr)

    def test_keys_fit_a_terminal(self):
        reader, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
        listed = subprocess.Popen([PROGRAM, "config", "keys"], stdout=terminal)
        os.close(terminal)
        text = b""
        with contextlib.suppress(OSError):  # the system's way to say that the other end is closed
            while part := os.read(reader, 65536):
                text += part
        os.close(reader)
        self.assertEqual(listed.wait(), 0)
        lines = text.decode().splitlines()
        self.assertEqual([line for line in lines if len(line) > 60 and " " in line.strip()], [])
        keys = [line.split()[0] for line in self.run_program("config", "keys").stdout.splitlines()]
        self.assertEqual([line.split()[0] for line in lines if not line.startswith(" ")], keys)

    def test_any_size_of_plantnet_will_do_where_asked(self):
        folder = pathlib.Path(__file__).parents[2] / "configs"
        configs = sorted([*folder.glob("plantnet*.yaml"), *folder.glob("plantnet300k/*.yaml")])
        self.assertGreater(len(configs), 3)
        for config in configs:
            shown = self.run_program("config", "show", "--config", config, "--set", "data.expected=any").stdout
            self.assertEqual(len(re.findall(r": any +# --set data.expected=any", shown)), 5, config)

    def test_a_subcommand_that_is_not_there_names_the_nearest(self):
        self.assertIn("did you mean 'train'?", self.run_program("trian", expect=2).stderr)
        self.assertIn("`list loses`", self.run_program("list", "loses", expect=2).stderr)
        self.run_program("trian", "--help", expect=2)
        self.assertEqual(self.run_program("help", "eval").stdout, self.run_program("eval", "--help").stdout)

    def test_three_mistakes_are_three_places_with_suggestions(self):
        config = self.write("wrong.yaml", "optimizer: {learning_rat: 0.1, momentun: 0.9}\nloss:\n  name: noised_topk\n  epsilon: -1\n")
        error = self.run_program("--config", config, expect=2).stderr
        self.assertIn("wrong.yaml:1:", error)
        self.assertIn("did you mean 'optimizer.momentum'", error)
        self.assertRegex(error, r"wrong\.yaml:4:\d+: loss\.epsilon: -1")
        self.assertFalse((self.folder / "runs").exists())

    def test_a_losss_key_is_refused_by_another_loss(self):
        config = self.write("other.yaml", "loss: {name: cross_entropy, epsilon: 0.1}\n")
        error = self.run_program("--config", config, expect=2).stderr
        self.assertRegex(error, r"other\.yaml:1:\d+: loss\.epsilon")
        self.assertIn("noised_topk", error)

    def test_a_loss_that_needs_a_normalised_head_says_so_before_any_data_are_read(self):
        config = self.write("head.yaml", "loss: {name: noised_topk_imbalanced}\ndata: {root: /nowhere}\n")
        self.assertIn("model.head: normalised", self.run_program("--config", config, expect=2).stderr)

    def test_a_metric_that_is_not_measured_cannot_be_selected(self):
        config = self.write("select.yaml", "select: [val/top7]\neval: {top_k: [1, 5]}\n")
        self.assertIn("val/top7", self.run_program("--config", config, expect=2).stderr)
        for neither in ("avg5_size", "avg5_lambda"):  # larger is neither better nor worse
            error = self.run_program("config", "show", "--set", f"select=[val/{neither}]", expect=2).stderr
            self.assertRegex(error, f"select: 'val/{neither}'")
        rule = "size@top:5"
        shown = self.run_program("config", "show", "--set", "eval.rules=['top:5']", "--set", f"select=['val/{rule}']").stdout
        self.assertIn(rule, shown)
        config = self.write("nothing.yaml", "eval: {top_k: [], average_k: []}\n")
        self.assertIn("nothing would be measured", self.run_program("--config", config, expect=2).stderr)
        config = self.write("twice.yaml", "eval: {top_k: [1, 5, 1]}\n")
        self.assertRegex(self.run_program("--config", config, expect=2).stderr, r"twice\.yaml:1:\d+: eval\.top_k: names 1 twice")

    def test_bins_of_training_images_ascend_and_can_be_selected(self):
        config = self.write("bins.yaml", "select: [val/bin10_49_top1]\neval: {count_bins: [10, 50]}\n")
        self.assertIn("val/bin10_49_top1", self.run_program("config", "show", "--config", config).stdout)
        config = self.write("down.yaml", "eval: {count_bins: [50, 10]}\n")
        self.assertRegex(self.run_program("--config", config, expect=2).stderr, r"down\.yaml:1:\d+: eval\.count_bins: does not ascend")

    def test_a_run_stays_where_runs_are(self):
        for wrong in ("name=a/../../b", "name=..", "run.dir=~/x"):
            self.assertIn("--set " + wrong.split("=")[0], self.run_program("config", "show", "--set", wrong, expect=2).stderr)

    def test_a_tilde_that_the_shell_has_left_is_refused(self):
        for command in (
            ("data", "stats", "--config=~/a.yaml"),
            ("data", "verify", "a.yaml", "--list=~/bad.txt"),
            ("train", "--config", "a.yaml", "--resume=~/runs/a"),
            ("predict", "~/run", "a.png"),
            ("predict", "run", "a.png", "--out=~/a.csv"),
            ("sweep", "grid.yaml", "--dir=~/sweep"),
            ("data", "fetch", "cifar100", "--to", "~/data"),
            ("data", "fetch", "cifar100", "--to", "$HOME/data"),
        ):
            error = self.run_program(*command, expect=2).stderr
            self.assertRegex(error, r"begins with (~|\$HOME)")
            self.assertIn("$HOME/", error)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_tilde_in_a_config_is_refused_where_nothing_of_that_name_is_read(self):
        images = self.write("images.yaml", "data: {name: image_folder, root: ~/pictures, input_size: 16}\nmodel: {pretrained: ~/weights.pth}\n")
        error = self.run_program("config", "show", "--config", images, expect=2).stderr
        for key, path in (("data.root", "pictures"), ("model.pretrained", "weights.pth")):
            self.assertRegex(error, rf"images\.yaml:\d:\d+: {key}: .*\$\{{env:HOME\}}/{path}")
        for setting in ("data.root=$HOME/pictures", "run.dir=$HOME/runs"):
            self.assertIn("${env:HOME}/", self.run_program("config", "show", "--set", setting, expect=2).stderr)
        (self.folder / "~").mkdir()
        (self.folder / "~/pictures").mkdir()
        self.assertNotIn("data.root", self.run_program("config", "show", "--config", images, expect=2).stderr)
        self.assertIn("run.dir", self.run_program("config", "show", "--set", "run.dir=~/pictures", expect=2).stderr)
        variables = {**environment(), "SETTRAIN_DATA": "~/data"}
        done = subprocess.run([PROGRAM, "data", "fetch", "cifar100"], cwd=self.folder, env=variables, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("SETTRAIN_DATA", done.stderr)

    def test_a_config_that_is_not_there_names_the_nearest(self):
        self.assertIn("quickstart.yaml", self.run_program("--config", "quickstrat.yaml", expect=2).stderr)

    def test_a_config_of_the_program_is_found_from_any_folder(self):
        shown = self.run_program("config", "show", "--config", "quickstart.yaml").stdout
        self.assertRegex(shown, r"epsilon: 1\.0 +# .*quickstart\.yaml:\d+:\d+")

    def test_every_config_of_the_program_is_valid(self):
        folder = pathlib.Path(__file__).parents[2] / "configs"
        # Grids and tables are no configs, and have tests of their own.
        configs = sorted(path for path in folder.rglob("*.yaml") if not {"sweeps", "tables", "figures"} & set(path.relative_to(folder).parts))
        self.assertGreater(len(configs), 3)
        for config in configs:
            with self.subTest(config=config.name):
                self.run_program("config", "show", "--config", config)

    def test_set_overrides_the_file_and_is_named_as_the_place(self):
        config = self.write("tiny.yaml", TINY)
        shown = self.run_program("config", "show", "--config", config, "--set", "train.epochs=7").stdout
        self.assertRegex(shown, r"epochs: 7 +# --set")
        self.assertIn("--set train.epochs=x", self.run_program("config", "show", "--config", config, "--set", "train.epochs=x", expect=2).stderr)

    def test_schema_keys_and_docs(self):
        schema = json.loads(self.run_program("config", "schema").stdout)
        self.assertIn('"minimum": 0', json.dumps(schema["properties"]["train"]["properties"]["epochs"]))
        self.assertIn("optimizer.lr", self.run_program("config", "keys").stdout)
        self.assertIn("loss", self.run_program("config", "docs").stdout)

    def test_unknown_options(self):
        for arguments, text in (
            (("export", "runs/none", "--outt", "m.onnx"), "there is no option --outt, did you mean '--out'"),
            (("--confg", "quickstart.yaml"), "there is no option --confg, did you mean '--config'"),
            (("data", "stats", "quickstart.yaml", "--zzzzzzzz=3"), "there is no option --zzzzzzzz\nRun `settrain data stats --help`"),
            (("export", "runs/none", "-outt", "m.onnx"), "there is no option -outt, did you mean '--out'"),
            (("--versionn",), "there is no option --versionn, did you mean '--version'"),
            (("export", "runs/none", "--first", "--second", "2"), "there is no option --first"),
            (("export", "runs/none", "--", "--output"), "not expected: --output"),
            (("export", "runs/none", "-7"), "not expected: -7"),
        ):
            with self.subTest(arguments=arguments):
                self.assertIn(text, self.run_program(*arguments, expect=2).stderr)
        self.assertIn("not expected: more", self.run_program("config", "show", "quickstart.yaml", "more", expect=2).stderr)

    def test_lists(self):
        for kind, name in (("losses", "noised_topk"), ("models", "resnet20"), ("datasets", "cifar100"), ("metrics", "average_k"),
                           ("optimizers", "adamw")):
            self.assertIn(name, self.run_program("list", kind).stdout)
        self.assertRegex(self.run_program("list", "models").stdout, r"densenet40_40 +1,941,620 +0\.799 G +3x32x32, 100 classes")

    def test_benchmarks_of_training(self):
        arguments = ("bench", "train", "--device", "cpu", "--rounds", "1", "--steps", "2", "--warm-up", "1", "--batch", "8")
        measured = json.loads(self.run_program(*arguments, "--model", "resnet8", "--size", "12", "--classes", "6", "--json").stdout)
        self.assertEqual((measured["model"], measured["batch"], measured["steps"]), ("resnet8", 8, 2))
        phases = [measured[key] for key in ("forward_ms", "backward_ms", "update_ms")]
        self.assertGreater(min(phases), 0)
        self.assertLessEqual(sum(phases), measured["step_ms"])
        self.assertAlmostEqual(measured["images_per_second"], 8000 / measured["step_ms"], delta=0.001 * measured["images_per_second"])
        table = self.run_program(*arguments, "--config", self.write("tiny.yaml", TINY)).stdout
        self.assertIn("batches of 8", table)
        self.assertRegex(table, r"loader / cached \d+\.\d+")
        self.assertIn("--size", self.run_program(*arguments, "--config", "tiny.yaml", "--size", "12", expect=2).stderr)
        beside = json.loads(self.run_program(*arguments, "--model", "resnet8", "--size", "12", "--beside", "1", "--json").stdout)
        self.assertEqual(beside["beside"], 1)
        self.assertGreater(beside["images_per_second_beside"], 0)
        ratio = beside["images_per_second_beside"] / beside["images_per_second"]
        self.assertAlmostEqual(beside["ratios_of_beside_to_cached"][0], ratio, delta=0.001 * ratio)

    def test_benchmarks_of_metrics(self):
        arguments = ("bench", "metrics", "--device", "cpu", "--samples", "3000", "--classes", "40", "--rounds", "3", "--sort-rounds")
        measured = json.loads(self.run_program(*arguments, "2", "--json").stdout)
        self.assertEqual([measured[key] for key in ("device", "threads", "samples", "classes", "average_k")], ["cpu", 1, 3000, 40, [1, 2, 5, 10]])
        for key, rounds in (("average_k_thresholds", 3), ("label_ranks", 3), ("topk_of_each_row", 3), ("evaluation", 3), ("sort_of_all_values", 2), ("sort_of_each_row", 2)):
            with self.subTest(key=key):
                self.assertEqual(len(measured[key]["ms"]), rounds)
                self.assertGreater(min(measured[key]["ms"]), 0)
        for key, base in (("sort_of_all_values", "average_k_thresholds"), ("sort_of_each_row", "label_ranks"), ("topk_of_each_row", "label_ranks")):
            times = zip(measured[key]["ms"], measured[base]["ms"])
            for ratio, (time, base_time) in zip(measured[key]["ratios"], times):
                self.assertAlmostEqual(ratio, time / base_time, places=6)
        self.assertAlmostEqual(measured["images_per_second"], 3e6 / sorted(measured["evaluation"]["ms"])[1], delta=1)
        table = self.run_program(*arguments, "0").stdout
        self.assertIn("3,000 samples of 40 classes", table)
        self.assertIn("ranks of the labels", table)
        self.assertNotIn("at::sort", table)
        self.assertRegex(table, r"images/s evaluated; medians of 3 rounds\n")

    def test_a_benchmark_of_metrics_beyond_the_memory_is_refused(self):
        error = self.run_program("bench", "metrics", "--device", "cpu", "--samples", "100000000", "--classes", "1000000", expect=1).stderr
        self.assertRegex(error, r"PiB of memory here, of which .* are available: fewer --samples, or no sorts with --sort-rounds 0")

    def test_a_model_and_images_that_do_not_suit_are_reported_before_a_run_begins(self):
        config = self.write("small.yaml", TINY.replace("{name: resnet8, width: 4}", "{name: densenet40_12}"))
        error = self.run_program("--config", config, "--device", "cpu", expect=2).stderr
        self.assertRegex(error, r"small\.yaml:\d+:\d+: model\.name: .*32x32")
        self.assertFalse((self.folder / "runs").exists())
        config = self.write("deep.yaml", "data: {name: synthetic, image_size: 32}\nmodel: {name: densenet, depth: 41}\n")
        self.assertRegex(self.run_program("--config", config, "--device", "cpu", expect=2).stderr, r"deep\.yaml:2:\d+: model\.depth")
        config = self.write("one_pixel.yaml", TINY.replace("train_size: 480", "train_size: 481").replace("image_size: 12", "image_size: 4"))
        self.assertIn("data.drop_last", self.run_program("--config", config, "--device", "cpu", expect=1).stderr)
        self.assertFalse((self.folder / "runs").exists())
        self.run_program("--config", config, "--device", "cpu", "--set", "data.drop_last=true")
        config = self.write("two.yaml", "model: {head: two_head}\n")
        self.assertIn("model.head: linear", self.run_program("--config", config, expect=2).stderr)

    def test_unknown_device(self):
        self.write("tiny.yaml", TINY)
        self.assertIn("--device tpu", self.run_program("--config", "tiny.yaml", "--device", "tpu", expect=2).stderr)

    def test_check_compares_with_golden_values_and_fails_on_a_mismatch(self):
        for kind in ("losses", "metrics", "weights"):
            self.assertIn("rows passed", self.run_program("check", kind, "--device", "cpu").stdout)
        folder = pathlib.Path(__file__).parents[1] / "golden"
        models = self.run_program("check", "models", "--device", "cpu").stdout
        self.assertRegex(models, r"\n(\d+) of \1 rows passed")
        for file in (folder / "models").glob("*.params.txt"):
            self.assertIn(f"\n{file.name.removesuffix('.params.txt')} ", "\n" + models)
        self.assertIn("cannot be read", self.run_program("check", "models", "nothing.params.txt", "--device", "cpu", expect=1).stderr)
        golden = folder / "losses" / "cross_entropy.json"
        wrong = json.loads(golden.read_text())
        wrong["cases"][0]["per_sample"][0] += 1e-6
        path = self.write("wrong.json", json.dumps(wrong))
        self.assertIn("FAILED", self.run_program("check", "losses", path, "--device", "cpu", expect=1).stdout)
        self.assertIn("wrong.json", self.run_program("check", "losses", self.write("wrong.json", "{"), expect=1).stderr)
        both = self.run_program("check", "losses", self.write("broken.json", "{"), golden, "--device", "cpu", expect=1)
        self.assertIn("broken.json", both.stderr)
        self.assertRegex(both.stdout, r"\n(\d+) of \1 rows passed")
        empty = self.write("empty.json", json.dumps({**wrong, "cases": []}))
        self.assertIn("no cases", self.run_program("check", "losses", empty, expect=1).stderr)

    def test_closed_streams_do_not_lead_into_files(self):
        self.write("tiny.yaml", TINY)
        subprocess.run([PROGRAM, "--config", "tiny.yaml", "--device", "cpu"], cwd=self.folder, env=environment(), preexec_fn=lambda: os.closerange(0, 3))
        log = (self.folder / "runs/tiny/log.txt").read_text()
        self.assertIn("[train] epoch 2/2", log)
        self.assertNotIn("accuracy, %", log)


if __name__ == "__main__":
    unittest.main()
