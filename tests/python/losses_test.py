"""settrain.losses: recorded values and gradients, autograd, torch.compile, seeds, and what pytopk says."""

from package import SOURCE, PROGRAM, TensorTest, golden, main

import copy
import inspect
import json
import math
import subprocess
from typing import get_args

import torch

from settrain import losses
from settrain._loss import SHARED

CLASSES = {getattr(losses, name).name: getattr(losses, name) for name in losses.__all__}
FILES = sorted(path.name for path in (SOURCE / "tests/golden/losses").glob("*.json"))
SECTION = json.loads(subprocess.run([PROGRAM, "config", "schema"], capture_output=True, check=True).stdout)["properties"]["loss"]
COUNTS = [40, 20, 10, 6, 3, 1]


def made(name, **keys):
    """A loss of six classes; those that need class counts get some."""
    cls = CLASSES[name]
    if "class_counts" in inspect.signature(cls).parameters:
        keys.setdefault("class_counts", COUNTS)
    if "k" in inspect.signature(cls).parameters:
        keys.setdefault("k", 2)
    return cls(**keys)


def inputs(name, dtype=torch.float64, batch=5, seed=1):
    """Scores of six classes, and the labels."""
    generator = torch.Generator().manual_seed(seed)
    tensors = 2 if name in ("average_k_two_head", "role") else 1
    scores = [torch.randn(batch, 6, generator=generator, dtype=torch.float64).to(dtype).requires_grad_() for _ in range(tensors)]
    return scores, torch.randint(6, (batch,), generator=generator)


def gradients_of(value, tensors):
    return torch.autograd.grad(value, tensors, allow_unused=False)


class Recorded(TensorTest):
    """The values that the program is compared with, from Python."""

    def test_every_loss_has_a_class_and_a_recording(self):
        names = [choice["const"] for choice in SECTION["properties"]["name"]["anyOf"][0]["oneOf"]]
        self.assertEqual(sorted(names), sorted(CLASSES))
        self.assertEqual(sorted(names), [file.removesuffix(".json") for file in FILES])

    def test_values_and_gradients(self):
        cases = 0
        for file in FILES:
            recorded = golden(f"losses/{file}")
            for case in recorded["cases"]:
                with self.subTest(loss=recorded["loss"], case=case["name"]):
                    self.compare(recorded["loss"], case)
                    cases += 1
        self.assertGreater(cases, 200)

    def compare(self, name, case):
        imitation = case.get("agrees_with_formula") is False
        values = case["formula"] if imitation else case
        keys = {("lambda_" if key == "lambda" else key): value for key, value in case["params"].items()}
        keys.pop("theta_lr", None)
        if imitation:
            keys.pop("log_epsilon", None)
        if "class_counts" in case:
            keys["class_counts"] = case["class_counts"]

        leaf = lambda what: torch.tensor(case[what], dtype=torch.float64, requires_grad=True)
        scores = leaf("scores_single" if "scores_multi" in case else "scores")
        leaves = [scores] + [leaf(what) for what in ("scores_multi", "estimate_logits") if what in case]
        if "label_sets" in case:
            labels = torch.zeros(scores.shape, dtype=torch.bool)
            for row, members in zip(labels, case["label_sets"]):
                row[members] = True
        else:
            labels = torch.tensor(case["labels"])
        noise = {"noise": torch.tensor(case["noise"], dtype=torch.float64)} if "noise" in case else {}

        per_sample = CLASSES[name](**keys, reduction="none")(*leaves, labels, **noise)
        large = scores.abs().max().item() > 1000
        if not case.get("batch_level"):
            self.assert_close(per_sample, values["per_sample"], 1e-6 if large else 1e-9)
        mean = CLASSES[name](**keys)(*leaves, labels, **noise)
        self.assert_close(mean, values["loss"], 1e-6 if large else 1e-9)
        expected = values["grad_single" if "scores_multi" in case else "grad_scores"]
        if expected is None:
            return
        expected = [expected] + [values[what] for what in ("grad_multi", "grad_estimate_logits") if what in values]
        self.assertEqual(len(expected), len(leaves))
        for got, gradient in zip(gradients_of(mean, leaves), expected):
            self.assert_close(got, gradient, 1e-6 if large else 1e-9)


def defaults_in(keys):
    """Keys with their defaults; smoothing_epsilon for the key epsilon of the map smoothing."""
    defaults = {}
    for key, of in keys.items():
        if of.get("type") == "object":
            defaults |= {f"{key}_{name}": default for name, default in defaults_in(of["properties"]).items()}
        else:
            defaults[key] = of["default"]
    return defaults


class Signatures(TensorTest):
    def test_parameters_and_defaults_are_the_configs(self):
        theirs = {}
        for variant in SECTION["allOf"]:
            keys = variant["then"]["properties"]
            theirs[variant["if"]["properties"]["name"]["const"]] = defaults_in(keys)
        for name, cls in CLASSES.items():
            with self.subTest(loss=name):
                of_config = theirs.get(name, {})
                # The optimizer's keys are left to the module's user.
                of_config = {key: default for key, default in of_config.items() if not key.startswith("theta_")}
                self.assertEqual(self.defaults_of(cls), of_config)

    def defaults_of(self, cls):
        parameters = inspect.signature(cls.__init__).parameters.items()
        return {key.rstrip("_"): parameter.default for key, parameter in parameters if key not in ("self", *SHARED)}

    def test_choices_are_the_configs(self):
        for variant in SECTION["allOf"]:
            cls = CLASSES[variant["if"]["properties"]["name"]["const"]]
            for key, of in variant["then"]["properties"].items():
                if "enum" in of:
                    with self.subTest(loss=cls.name, key=key):
                        self.assertEqual(sorted(get_args(cls.__dataclass_fields__[key].type)), sorted(of["enum"]))


class Autograd(TensorTest):
    def test_gradients_are_the_derivatives(self):
        for name in CLASSES:
            if name in ("topk_zero_one", "role"):  # no gradient; stopped gradients, which no difference sees
                continue
            with self.subTest(loss=name):
                tensors, labels = inputs(name)
                loss = made(name, reduction="none").eval()
                self.assertTrue(torch.autograd.gradcheck(lambda *scores: loss(*scores, labels), tensors))

    def test_gradients_flow_to_any_of_several_tensors(self):
        for wanted in range(2):
            tensors, labels = inputs("average_k_two_head")
            tensors[1 - wanted].requires_grad_(False)
            value = made("average_k_two_head")(*tensors, labels)
            both, _ = inputs("average_k_two_head")
            expected = gradients_of(made("average_k_two_head")(*both, labels), both)[wanted]
            self.assert_close(gradients_of(value, [tensors[wanted]])[0], expected, 1e-12)

    def test_the_kernels_refuse_a_second_derivative(self):
        (scores,), labels = inputs("noised_topk", torch.float32)
        with self.assertRaisesRegex(RuntimeError, "no gradient of its own"):
            torch.autograd.grad(made("noised_topk")(scores, labels), scores, create_graph=True)

    def test_the_error_has_a_gradient_of_zero(self):
        (scores,), labels = inputs("topk_zero_one")
        value = made("topk_zero_one")(scores, labels)
        value.backward()
        self.assertEqual(scores.grad.abs().max().item(), 0)

    def test_operators_pass_opcheck(self):
        for name in ("noised_topk", "smoothed_topk_hinge", "average_k_two_head", "ldam"):
            with self.subTest(loss=name):
                tensors, labels = inputs(name, torch.float32)
                loss = made(name)
                multi = tensors[1] if len(tensors) == 2 else None
                arguments = (tensors[0], multi, None, labels, None, torch.tensor(3), 7, loss._text, -100, "mean")
                results = torch.library.opcheck(torch.ops.settrain.loss.default, arguments)
                self.assertEqual(set(results.values()), {"SUCCESS"}, results)


class Dtypes(TensorTest):
    def test_float32_is_near_float64(self):
        for name in CLASSES:
            with self.subTest(loss=name):
                tensors, labels = inputs(name, torch.float32)
                in_float64 = [tensor.detach().double().requires_grad_() for tensor in tensors]
                value = made(name, **self.seed(name))(*tensors, labels)
                self.assertEqual(value.dtype, torch.float32)
                expected = made(name, **self.seed(name))(*in_float64, labels)
                self.assertEqual(expected.dtype, torch.float64)
                self.assert_close(value, expected.item(), 2e-5)

    def test_half_precision_is_computed_in_float32(self):
        for dtype in (torch.bfloat16, torch.float16):
            for name in CLASSES:
                with self.subTest(loss=name, dtype=dtype):
                    tensors, labels = inputs(name, dtype)
                    rounded = [tensor.detach().float().requires_grad_() for tensor in tensors]
                    value = made(name, **self.seed(name))(*tensors, labels)
                    expected = made(name, **self.seed(name))(*rounded, labels)
                    self.assertEqual(value.dtype, torch.float32)
                    self.assertEqual(value.item(), expected.item())
                    for got, gradient in zip(gradients_of(value, tensors), gradients_of(expected, rounded)):
                        self.assertEqual(got.dtype, dtype)
                        self.assertTrue(torch.equal(got, gradient.to(dtype)))

    def seed(self, name):
        return {"seed": 5} if "noised" in name else {}


class Compiled(TensorTest):
    def test_one_graph_with_the_same_results(self):
        for name in ("noised_topk", "noised_topk_imbalanced", "smoothed_topk_hinge", "average_k_two_head"):
            with self.subTest(loss=name):
                seed = {"seed": 5} if "noised" in name else {}
                plain = made(name, **seed)
                compiled = torch.compile(made(name, **seed), fullgraph=True, dynamic=True, backend="aot_eager")
                for batch in (5, 7):
                    tensors, labels = inputs(name, torch.float32, batch)
                    value, expected = compiled(*tensors, labels), plain(*tensors, labels)
                    self.assert_close(value, expected.item(), 1e-6)
                    for got, gradient in zip(gradients_of(value, tensors), gradients_of(expected, tensors)):
                        self.assert_close(got, gradient, 1e-6)


class Noise(TensorTest):
    def value(self, loss):
        (scores,), labels = inputs("noised_topk", torch.float32)
        return loss(scores, labels).item()

    def test_a_seed_and_a_step_decide_it(self):
        first, second, other = (made("noised_topk", epsilon=1.0, seed=seed) for seed in (5, 5, 6))
        row = [self.value(first) for _ in range(3)]
        self.assertEqual(row, [self.value(second) for _ in range(3)])
        self.assertEqual(len(set(row)), 3)
        self.assertNotEqual(row[0], self.value(other))

    def test_torchs_seed_decides_it_where_none_is_given(self):
        torch.manual_seed(1)
        first = self.value(made("noised_topk", epsilon=1.0))
        second = self.value(made("noised_topk", epsilon=1.0))
        torch.manual_seed(1)
        self.assertEqual(first, self.value(made("noised_topk", epsilon=1.0)))
        self.assertNotEqual(first, second)

    def test_a_state_dict_goes_on_where_it_was(self):
        loss = made("noised_topk", epsilon=1.0, seed=5)
        self.value(loss)
        state = copy.deepcopy(loss.state_dict())
        expected = self.value(loss)
        resumed = made("noised_topk", epsilon=1.0)
        resumed.load_state_dict(state)
        self.assertEqual(self.value(resumed), expected)

    def test_evaluation_does_not_count_steps(self):
        loss = made("noised_topk", epsilon=1.0, seed=5).eval()
        self.assertEqual(self.value(loss), self.value(loss))

    def test_a_generator_decides_it(self):
        values = []
        for _ in range(2):
            loss = made("noised_topk", epsilon=1.0, seed=0, generator=torch.Generator().manual_seed(3))
            values.append([self.value(loss) for _ in range(3)])
        self.assertEqual(values[0], values[1])
        self.assertEqual(len(set(values[0])), 3)


class Pytopk(TensorTest):
    """The package of the noised losses' authors, with the same noise."""

    def compare(self, theirs, ours, num_draws):
        generator = torch.Generator().manual_seed(2)
        scores = torch.randn(16, 6, generator=generator)
        labels = torch.randint(6, (16,), generator=generator)
        torch.manual_seed(9)
        noise = torch.randn(16, 6, num_draws)  # what theirs draws
        torch.manual_seed(9)
        their_scores, our_scores = scores.clone().requires_grad_(), scores.clone().requires_grad_()
        their_value = theirs(their_scores, labels)
        our_value = ours(our_scores, labels, noise=noise.transpose(1, 2))
        self.assertGreater(our_value.item(), 0)
        self.assert_close(our_value, their_value.item(), 1e-6)
        self.assert_close(gradients_of(our_value, [our_scores])[0], gradients_of(their_value, [their_scores])[0], 1e-6)

    def test_balanced(self):
        from pytopk import BalNoisedTopK

        self.compare(BalNoisedTopK(k=2, epsilon=0.5, n_sample=7), losses.NoisedTopK(k=2, epsilon=0.5, num_draws=7), 7)

    def test_imbalanced(self):
        from pytopk import ImbalNoisedTopK

        theirs = ImbalNoisedTopK(k=2, epsilon=0.1, max_m=0.3, cls_num_list=COUNTS, scale=50, n_sample=7)
        self.compare(theirs, losses.NoisedTopKImbalanced(COUNTS, k=2, epsilon=0.1, max_margin=0.3, scale=50.0, num_draws=7), 7)


class SmoothTopk(TensorTest):
    """Recorded values of the smoothed hinge authors' code, its switch to the hard hinge included."""

    def test_values(self):
        cases = [case for case in golden("losses/smoothed_topk_hinge.json")["cases"] if "reference_class" in case]
        for case in cases:
            with self.subTest(case=case["name"]):
                loss = losses.SmoothedTopKHinge(**case["params"], reference_threshold=1000.0, reduction="none")
                self.assert_close(loss(torch.tensor(case["scores"], dtype=torch.float64), torch.tensor(case["labels"])), case["per_sample"], 1e-6)
        self.assertEqual({case["reference_class"] for case in cases}, {"SmoothTopkSVM", "SmoothTop1SVM"})


class Arguments(TensorTest):
    def test_reductions(self):
        (scores,), labels = inputs("cross_entropy")
        each = losses.CrossEntropy(reduction="none")(scores, labels)
        self.assert_close(each, torch.nn.functional.cross_entropy(scores, labels, reduction="none"), 1e-12)
        self.assert_close(losses.CrossEntropy(reduction="sum")(scores, labels), each.sum().item(), 1e-12)
        self.assert_close(losses.CrossEntropy()(scores, labels), each.mean().item(), 1e-12)

    def test_class_weights(self):
        (scores,), labels = inputs("cross_entropy")
        weights = torch.tensor([0.5, 1.0, 2.0, 0.0, 1.5, 3.0], dtype=torch.float64)
        each = losses.CrossEntropy(reduction="none", class_weights=weights)(scores, labels)
        self.assert_close(each, torch.nn.functional.cross_entropy(scores, labels, weight=weights, reduction="none"), 1e-12)

    def test_numpy_numbers_are_numbers(self):
        import numpy

        loss = losses.LDAM(numpy.array(COUNTS), max_margin=numpy.float64(0.1), scale=numpy.float64(1e-7))
        self.assertEqual((loss.scale, loss.class_counts), (1e-7, tuple(COUNTS)))

    def test_errors(self):
        (scores,), labels = inputs("noised_topk")
        wrong = [
            (lambda: losses.NoisedTopK(k=0), "^k: 0 is out of range"),
            (lambda: losses.NoisedTopK(epsilon=float("nan")), "^epsilon: 'nan' is not a finite number"),
            (lambda: losses.NoisedTopK(k=0, margin=-1.0), "^k: 0 .*\nmargin: -1"),
            (lambda: losses.NoisedTopK(k=10**30), "^k: "),
            (lambda: losses.TopKHinge(smoothing_epsilon=-1.0), "^smoothing_epsilon: "),
            (lambda: losses.ROLE(lambda_=-1.0), "^lambda_: "),
            (lambda: losses.LDAM(COUNTS, zero_count_class="largest"), "^zero_count_class: expected 'largest_margin' or 'error', got 'largest'"),
            (lambda: losses.NoisedTopK(epsilon="atuo"), "^epsilon: expected 'auto' or a number, got 'atuo'"),
            (lambda: losses.NoisedTopK(reduction="average"), "^reduction: "),
            (lambda: losses.NoisedTopK(k=6)(scores, labels), "^k: must be less than the number of classes"),
            (lambda: losses.LDAM([1, 2])(scores, labels), "^class_counts: expected 6"),
            (lambda: losses.BalancedSoftmax([1, 2, 3, 4, 5, -6]), "^class_counts: .*-6"),
            (lambda: losses.LogitAdjusted([0] * 6), "^class_counts: "),
            (lambda: losses.LDAM([1, 2], class_weights=[1.0] * 6)(scores, labels), "^class_counts: expected 6"),
            (lambda: losses.LDAM(COUNTS, class_weights=[1.0, 2.0])(scores, labels), "^class_weights: expected 6, one a class, got 2"),
            (lambda: losses.CrossEntropy(class_weights=[1.0, 2.0])(scores, labels), "^class_weights: expected 6, one a class, got 2"),
            (lambda: losses.CrossEntropy(class_weights=[1.0] * 10_001)(scores, labels), "^class_weights: expected 6, one a class, got 10001"),
            (lambda: losses.NoisedTopK(class_weights=[1.0] * 7)(scores, labels), "^class_weights: expected 6"),
            (lambda: losses.CrossEntropy(class_weights=[-1.0] * 6), "^class_weights: "),
            (lambda: losses.CrossEntropy(class_weights=[0.0] * 6), "^class_weights: "),
            (lambda: losses.CrossEntropy(class_weights=[math.nan] * 6), "^class_weights: expected finite numbers"),
            (lambda: losses.CrossEntropy(class_weights=[]), "^class_weights: "),
            (lambda: losses.CrossEntropy(class_weights=2.0), "^class_weights: "),
            (lambda: losses.CrossEntropy()(scores, labels + 6), r"labels\[\d\]: expected a class from 0 to 5"),
            (lambda: losses.CrossEntropy()(scores, labels[:3]), "^labels"),
            (lambda: losses.CrossEntropy()(scores[0], labels), "^scores: expected \\[batch, classes\\], got 1 dimensions"),
            (lambda: losses.CrossEntropy()(scores.long(), labels), "^scores: expected float32"),
            (lambda: losses.NoisedTopK(k=2)(scores, labels, noise=torch.zeros(5, 3, 6)), "noise"),
            (lambda: losses.TopKHinge(smoothing_num_draws=50), "^smoothing_num_draws: "),
            (lambda: losses.TopKHingeConvex(seed=1), "^seed: "),
            (lambda: losses.NoisedTopK(seed=-1), "^seed: .*-1"),
            (lambda: losses.NoisedTopK(seed=2**64), "^seed: expected 0 to 2.63 - 1, got 18446744073709551616"),
            (lambda: losses.TopKHinge(k=2)(scores, labels, noise=torch.zeros(5, 10, 5)), "^noise: "),
            (lambda: losses.TopKHinge(k=2)(scores, scores.softmax(1)), r"^labels: expected \[batch\] integers"),
            (lambda: losses.CrossEntropy()(scores, scores), "^labels: expected probabilities"),
            (lambda: losses.CrossEntropy()(scores, torch.ones(5, 6, dtype=torch.int64)), "^labels: expected probabilities in floating point"),
            (lambda: losses.CrossEntropy()(scores, torch.ones(5, 4)), "^labels: "),
            (lambda: losses.BCEMultilabel()(scores, scores.softmax(1)), "^labels: expected 0 and 1"),
            (lambda: losses.BCEMultilabel()(scores, torch.full((5, 6), -1)), "^labels: expected 0 and 1"),
            (lambda: losses.BCEMultilabel()(scores, torch.zeros(5, 5)), "^labels"),
            (lambda: losses.BCEMultilabel()(scores, torch.zeros(5, 6)), "at least one|empty"),
            (lambda: losses.BalancedSoftmax([0, 1, 1, 1, 1, 1])(scores, labels * 0), "^labels.0.: class 0 has no training image.*rarest"),
            (lambda: losses.BalancedSoftmax([0, 1, 1, 1, 1, 1], zero_count_class="error")(scores, labels), "^zero_count_class: class 0"),
        ]
        for call, message in wrong:
            with self.subTest(message=message), self.assertRaisesRegex(ValueError, message):
                call()

    def test_wrong_types(self):
        (scores,), labels = inputs("noised_topk")
        wrong = [
            (lambda: losses.NoisedTopK(K=5), "unexpected keyword argument 'K'"),
            (lambda: losses.NoisedTopK(5), "positional"),
            (lambda: losses.SparseTop(class_weights=[1.0] * 6), "class_weights"),
            (lambda: losses.NoisedTopK(k="5"), "^k: expected an integer, got '5'"),
            (lambda: losses.NoisedTopK(k=2.0), "^k: expected an integer, got 2.0"),
            (lambda: losses.NoisedTopK(k=True), "^k: expected an integer"),
            (lambda: losses.NoisedTopK(epsilon=None), "^epsilon: expected 'auto' or a number, got None"),
            (lambda: losses.NoisedTopK(margin="1"), "^margin: expected a number"),
            (lambda: losses.NoisedTopK(seed=1.5), "^seed: .*1.5"),
            (lambda: losses.NoisedTopK(generator=1), "^generator: "),
            (lambda: losses.NoisedTopK(reduction=None), "^reduction: "),
            (lambda: losses.AverageKTwoHead(negatives_include_label=1), "^negatives_include_label: expected a bool"),
            (lambda: losses.LDAM({0: 3}), "^class_counts: expected whole numbers, got dict"),
            (lambda: losses.LogitAdjusted([0.1] * 6), "^class_counts: .*whole numbers"),
            (lambda: losses.CrossEntropy(class_weights=["a"]), "^class_weights: "),
            (lambda: losses.CrossEntropy(class_weights={0: 1.0}), "^class_weights: expected a tensor, an array or a list of numbers, got dict"),
            (lambda: losses.CrossEntropy()(scores.detach().numpy(), labels), "^scores: expected a tensor, got ndarray"),
            (lambda: losses.ROLE()(scores, [1.0], labels), "^estimates: expected a tensor, got list"),
            (lambda: losses.CrossEntropy()(scores, labels.float()), "^labels: expected integers, got Float"),
            (lambda: losses.CrossEntropy()(scores, labels > 2), "^labels: expected integers, got Bool"),
        ]
        for call, message in wrong:
            with self.subTest(message=message), self.assertRaisesRegex(TypeError, message):
                call()


if __name__ == "__main__":
    main()
