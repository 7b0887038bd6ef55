"""settrain import and export, and runs that begin with what they wrote."""

import json
import os
import pathlib
import unittest

from program import ProgramTest, tensors_of

GOLDEN = pathlib.Path(os.environ["SETTRAIN_SOURCE_DIR"]) / "tests/golden/weights"


class Import(ProgramTest):
    def test_what_is_in_a_file_is_shown(self):
        shown = self.run_program("import", str(GOLDEN / "tiny_module_nested_legacy.pth.tar")).stdout
        self.assertRegex(shown, r"torch\.save before PyTorch 1\.6, 2\.0 KiB, SHA-256 [0-9a-f]{64}\ntensors: 8, ")
        self.assertRegex(shown, r"\n  state_dict\.module\.conv\.weight +float32 +\[4, 3, 3, 3\] +432 B\n")
        self.assertIn("\nother values: 3\n  epoch: 12\n  arch: \"tiny\"\n  best_acc1: 0.625\n", shown)
        self.assertIn("taken for a model's: 8 tensors (its key state_dict, without the prefix module.)", shown)
        shown = self.run_program("import", str(GOLDEN / "mixed_zip.pth")).stdout
        self.assertRegex(shown, r"transposed +float32 +\[6, 4\] +96 B  shares the memory of base")

    def test_a_file_is_converted_once(self):
        command = ("import", str(GOLDEN / "mixed_legacy.pth"), "--output", "mixed.safetensors")
        self.assertIn("written to 'mixed.safetensors'", self.run_program(*command).stdout)
        self.assertEqual(tensors_of(self.folder / "mixed.safetensors"), tensors_of(GOLDEN / "mixed.safetensors"))
        self.assertIn("is there already; --overwrite replaces it", self.run_program(*command, expect=1).stderr)
        self.run_program(*command, "--overwrite")
        self.assertIn("exists and is no file", self.run_program("import", str(GOLDEN / "mixed_zip.pth"), "--output", ".", expect=1).stderr)

    def test_a_key_chooses_the_averaged_weights_of_a_checkpoint_with_opaque_values(self):
        file = str(GOLDEN / "timm_legacy.pth.tar")
        shown = self.run_program("import", file).stdout
        self.assertIn("args: <argparse.Namespace>, not read", shown)
        self.assertIn("2 tensors (its key state_dict, ", shown)
        shown = self.run_program("import", file, "--key", "state_dict_ema", "--output", "ema.safetensors").stdout
        self.assertIn("2 tensors (its key state_dict_ema, ", shown)
        self.assertEqual(sorted(tensors_of(self.folder / "ema.safetensors")), ["head.bias", "head.weight"])
        self.assertIn("state_dict, state_dict_ema", self.run_program("import", file, "--key", "ema", expect=1).stderr)

    def test_files_that_mean_harm_are_refused(self):
        for name in sorted(os.listdir(GOLDEN / "hostile")):
            done = self.run_program("import", str(GOLDEN / "hostile" / name), "--output", "x.safetensors", expect=1)
            self.assertRegex(done.stderr, rf"error: .*{name}'")
            self.assertEqual(os.listdir(self.folder), [])
        self.assertIn("cannot read 'nothing.pth': No such file", self.run_program("import", "nothing.pth", expect=1).stderr)


class Export(ProgramTest):
    def test_weights_leave_a_run_and_begin_another(self):
        self.train_tiny("tiny")
        run = self.folder / "runs/tiny"
        ambiguous = self.run_program("export", "runs/tiny", expect=2).stderr
        self.assertIn("say --metric val/top1, or --metric val/top2", ambiguous)
        self.assertIn("best-val-top2", self.run_program("export", "runs/tiny", "--metric", "val/top7", expect=1).stderr)
        done = self.run_program("export", "runs/tiny", "--metric", "val/top2").stdout
        self.assertRegex(done, r"'tiny-best-val-top2\.safetensors': \d+ tensors of [\d,]+ numbers, .*, of best-val-top2 after epoch [12]")
        checkpoint = tensors_of(run / "checkpoints/best-val-top2.safetensors")
        expected = {name.removeprefix("model."): tensor for name, tensor in checkpoint.items() if name.startswith("model.")}
        self.assertEqual(tensors_of(self.folder / "tiny-best-val-top2.safetensors"), expected)
        self.assertIn("--overwrite", self.run_program("export", "runs/tiny", "--metric", "val/top2", expect=1).stderr)
        self.run_program("export", "runs/tiny", "--checkpoint", "last", "--output", "last.safetensors")

        self.assertIn("is a checkpoint of a run", self.run_program("export", "runs/tiny", "--checkpoint", "last", "--output", "runs/tiny/checkpoints/last.safetensors", "--overwrite", expect=1).stderr)

        # A checkpoint itself is as good a beginning.
        settings = ("--set", "train.epochs=1", "--set", "optimizer.lr=1e-38", "--set", "optimizer.weight_decay=0")
        for name, file in (("a", "tiny-best-val-top2.safetensors"), ("b", "runs/tiny/checkpoints/best-val-top2.safetensors")):
            log = self.train_tiny(name, "--set", f"model.pretrained={file}", *settings).stderr
            self.assertIn(f"[model] weights of '{file}'", log)
            began = tensors_of(self.folder / f"runs/{name}/checkpoints/last.safetensors")
            self.assertEqual(began["model.layer3.0.conv2.weight"], expected["layer3.0.conv2.weight"])
            self.assertEqual(began["model.fc.weight"], expected["fc.weight"])
        self.assertIn("tensors (a checkpoint of settrain)", log)
        self.assertEqual(json.loads((self.folder / "runs/b/provenance.json").read_text())["pretrained"]["from"], "a checkpoint of settrain")


if __name__ == "__main__":
    unittest.main()
