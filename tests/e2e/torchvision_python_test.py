"""Fine-tuning from a file that Python's torch.save wrote of a torchvision model."""

import os
import subprocess

from program import ProgramTest, environment, main, tensors_of

PYTHON = os.environ.get("SETTRAIN_PYTHON")
SCRIPT = os.path.join(os.environ["SETTRAIN_SOURCE_DIR"], "tests/inference/torchvision_weights.py")


class FineTuning(ProgramTest):
    def test_a_resnet18_begins_with_the_file_to_the_bit(self):
        if not PYTHON:
            self.skipTest("SETTRAIN_PYTHON is not set")
        subprocess.run([PYTHON, SCRIPT, "make", "resnet18", "weights"], cwd=self.folder, env=environment(), check=True)
        settings = []
        # The smallest step, and few of them: parameters stay what they are, to the bit.
        for setting in ("model.name=resnet18", "model.pretrained=weights.pth", "data.image_size=32", "data.train_size=64", "data.batch_size=32",
                        "train.epochs=1", "optimizer.lr=1e-38", "optimizer.weight_decay=0"):
            settings += ["--set", setting]
        done = self.train_tiny("tuned", *settings)
        self.assertRegex(done.stderr, r"weights of 'weights\.pth' \(SHA-256 [0-9a-f]{16}\): 120 tensors, head 'fc' left as drawn")
        theirs = tensors_of(self.folder / "weights.safetensors")
        ours = tensors_of(self.folder / "runs/tuned/checkpoints/last.safetensors")
        statistics = ("running_mean", "running_var", "num_batches_tracked")
        parameters = [name for name in theirs if not name.endswith(statistics) and not name.startswith("fc.")]
        self.assertEqual(len(parameters), 60)
        for name in parameters:
            self.assertEqual(ours["model." + name], theirs[name], name)
        self.assertEqual(ours["model.fc.weight"][1], [6, 512])


if __name__ == "__main__":
    main()
