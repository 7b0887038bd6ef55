"""docs/python.md's table of replacements: the lines of both sides give the same. Those of libraries that are not installed are skipped."""

from package import SOURCE, TensorTest, drawn, main

import ast
import re
import warnings

import torch

SECTION = (SOURCE / "docs/python.md").read_text(encoding="utf-8").split("## In place of other libraries")[1]
RANDOM = 0.1  # relative difference of means over noise


def run(code, names):
    """The value of the last of some statements."""
    *before, last = ast.parse(code).body
    names = dict(names)
    exec(compile(ast.Module(before, []), "docs/python.md", "exec"), names)
    return eval(compile(ast.Expression(last.value), "docs/python.md", "eval"), names)


class Replacements(TensorTest):
    def setUp(self):
        torch.manual_seed(0)
        (scores, labels), (calibration_scores, calibration_labels) = (drawn(classes=6, seed=seed) for seed in (1, 2))
        scores, calibration_scores = scores + torch.rand(400, 6) / 9, calibration_scores + torch.rand(400, 6) / 9  # no ties
        self.names = {"scores": scores, "labels": labels, "calibration_scores": calibration_scores, "calibration_labels": calibration_labels}
        self.names |= {"targets": calibration_scores.softmax(1), "cosines": scores.tanh(), "counts": [50, 30, 20, 10, 5, 2]}
        self.missing = []
        for line in re.search(r"```python\n(.*?)```", SECTION, re.DOTALL)[1].splitlines():
            try:
                exec(line, self.names)
            except ImportError as error:
                self.missing.append(f"{line}: {error}")

    def add_classifier(self):
        """A classifier of scikit-learn, which MAPIE has, and inputs of it."""
        from sklearn.linear_model import LogisticRegression

        names = self.names
        inputs, calibration_inputs = names["scores"].numpy(), names["calibration_scores"].numpy()
        names |= {"inputs": inputs, "calibration_inputs": calibration_inputs, "classifier": LogisticRegression().fit(inputs, names["labels"].numpy())}

    def test_both_sides_give_the_same(self):
        rows = re.findall(r"^\| `([^`]+)` \| `(settrain[^`]+)` \|", SECTION, re.MULTILINE)
        self.assertGreater(len(rows), 12)
        if "SplitConformalClassifier" in self.names:
            self.add_classifier()
        for there, here in rows:
            with self.subTest(there=there):
                used = {node.id for node in ast.walk(ast.parse(there)) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
                absent = used - self.names.keys() - {"p", "m"}
                if absent:
                    self.skipTest(f"{', '.join(sorted(absent))}: not installed ({'; '.join(self.missing)})")
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    expected = run(there, self.names)
                got = run(here, self.names)
                self.assert_close(got, torch.as_tensor(expected).detach().double(), RANDOM if "NoisedTopK" in there else 1e-6)


if __name__ == "__main__":
    main()
