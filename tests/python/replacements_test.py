"""docs/python.md's table of replacements: the lines of both sides give the same. Lines of libraries that are not installed are skipped."""

from package import SOURCE, TensorTest, drawn, main

import sys
import warnings

import torch

sys.path.insert(0, str(SOURCE / "scripts"))
from bench_replacements import absent, compiled, imported, lines, names_of  # noqa: E402

RANDOM = 0.1  # relative difference of means over noise


class Replacements(TensorTest):
    def setUp(self):
        torch.manual_seed(0)
        (scores, labels), (calibration_scores, calibration_labels) = (drawn(classes=6, seed=seed) for seed in (1, 2))
        scores, calibration_scores = scores + torch.rand(400, 6) / 9, calibration_scores + torch.rand(400, 6) / 9  # no ties
        self.names = names_of(scores, labels, calibration_scores, calibration_labels)
        self.missing = imported(self.names)
        if "SplitConformalClassifier" in self.names:  # MAPIE, which has scikit-learn
            from sklearn.linear_model import LogisticRegression

            inputs = {"inputs": scores.numpy(), "calibration_inputs": calibration_scores.numpy()}
            self.names |= {**inputs, "classifier": LogisticRegression().fit(inputs["inputs"], labels.numpy())}

    def test_both_sides_give_the_same(self):
        self.assertGreater(len(lines()), 12)
        for there, here in lines():
            with self.subTest(there=there):
                if names := absent(there, self.names):
                    self.skipTest(f"{', '.join(sorted(names))}: not installed ({'; '.join(self.missing)})")
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    expected = torch.as_tensor(compiled(there)(self.names)).detach().double()
                self.assert_close(compiled(here)(self.names), expected, RANDOM if "NoisedTopK" in there else 1e-6)


if __name__ == "__main__":
    main()
