"""mypy --strict on the package, and on code that uses it."""

from package import PROGRAM, main

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

CODE = """
import torch
from settrain import losses, metrics, sets

scores, labels = torch.zeros(4, 3), torch.zeros(4, dtype=torch.int64)
loss = losses.NoisedTopK(k=2, epsilon="auto", num_draws=3, seed=1, reduction="none", class_weights=[1.0, 2.0, 1.0])
loss.epsilon = 5
loss.reduction = "sum"
value: torch.Tensor = loss(scores, labels, noise=scores)
losses.LDAM(torch.ones(3, dtype=torch.int64), class_weights=torch.ones(3))
coverage: float = sets.quality(scores > 0, labels)["coverage"]
accuracy: float = metrics.topk_accuracy(scores, labels, k=2)
accuracies: dict[str, float] = metrics.accuracies(scores, labels, k=None, average_k=[1.5])

losses.NoisedTopK(K=5)  # "K"
losses.NoisedTopK(redcution="sum")  # "redcution"
losses.NoisedTopK(reduction="nnone")  # "nnone"
loss.reduction = "nnone"  # "nnone"
losses.NoisedTopK(epsilon="atuo")  # "atuo"
losses.NoisedTopK(5)  # "NoisedTopK"
losses.LDAM()  # "class_counts"
losses.LDAM([1, 2, 3], zero_count_class="largest")  # "largest"
losses.SparseTop(class_weights=[1.0])  # "class_weights"
losses.CrossEntropy(seed=1)  # "seed"
loss.k = "5"  # "str"
metrics.accuracies(scores, labels, average_k_score="logits")  # "logits"
sets.quality(scores > 0, labels)["covrage"]  # "covrage"
"""


class Strict(unittest.TestCase):
    def test_the_package_is_clean_and_mistakes_are_found(self):
        with tempfile.TemporaryDirectory(prefix="settrain-python-") as folder:
            path = pathlib.Path(folder) / "code.py"
            path.write_text(CODE)
            command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", folder, str(path)]
            environment = {"MYPYPATH": str(PROGRAM.parents[2] / "python"), "PATH": "", "PYTHONPATH": ":".join(sys.path)}
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
        self.assertEqual(done.stderr, "")
        found = {}
        for line in done.stdout.splitlines():
            where = re.fullmatch(r".*code\.py:(\d+): error: (.*)", line)
            self.assertTrue(where or "note:" in line, f"an error in the package: {line}")
            if where:
                found[int(where[1])] = where[2]
        expected = {number: re.search('# "(.*)"', line)[1] for number, line in enumerate(CODE.splitlines(), 1) if '# "' in line}
        self.assertEqual(sorted(found), sorted(expected), done.stdout)
        for number, word in expected.items():
            self.assertIn(word, found[number])


if __name__ == "__main__":
    main()
