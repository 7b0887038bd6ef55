"""Checkpoints of every format version stay readable: tests/golden/checkpoints has one of each."""

import json
import pathlib
import struct
import unittest

from program import ProgramTest, tensors_of

CHECKPOINTS = sorted((pathlib.Path(__file__).parents[1] / "golden/checkpoints").glob("*.safetensors"))


class CheckpointVersions(ProgramTest):
    def test_each_is_evaluated_as_on_the_day_it_was_made(self):
        self.assertTrue(CHECKPOINTS)
        for file in CHECKPOINTS:
            content = file.read_bytes()
            metadata = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]
            self.assertEqual(file.stem, "version_" + metadata["format_version"])
            run = self.folder / file.stem
            (run / "checkpoints").mkdir(parents=True)
            (run / ".settrain-run").touch()
            (run / "config.yaml").write_text(metadata["config"])
            (run / "checkpoints/last.safetensors").write_bytes(content)
            result = json.loads(self.run_program("eval", run, "--checkpoint", "last", "--json", "--device", "cpu").stdout)[0]
            self.assertEqual(result["epoch"], 1)
            for name, (_, _, values) in tensors_of(file).items():
                if name.startswith("selection.val/"):
                    best, epoch = struct.unpack("<2d", values)
                    self.assertEqual(epoch, 1)
                    # Of 120 images; another processor's roundings may move one.
                    self.assertAlmostEqual(result["metrics"]["val"][name.removeprefix("selection.val/")], best, delta=1.5 / 120)


if __name__ == "__main__":
    unittest.main()
