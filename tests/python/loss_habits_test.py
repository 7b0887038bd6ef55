"""The habits of PyTorch users: every loss of settrain over empty, ignored, masked, zero-count and extreme inputs, its state and its settings."""

from package import TensorTest, main

import copy
import dataclasses
import io
import math
import pathlib
import pickle
import tempfile

import torch
from safetensors.torch import load_file, save_file

from settrain import losses
from settrain._loss import CountingLoss, Noised

CLASSES = [getattr(losses, name) for name in losses.__all__]
NOISED = [cls for cls in CLASSES if issubclass(cls, Noised)]
OF_PROBABILITIES = [losses.CrossEntropy, losses.Focal, losses.LDAM, losses.LogitAdjusted, losses.BalancedSoftmax]
COUNTS = [40, 20, 10, 6, 3, 1]
BATCH = 5


def made(cls, **settings):
    """A loss of six classes. Smoothable hinges are smoothed with `smoothing_epsilon`."""
    if issubclass(cls, CountingLoss):
        settings.setdefault("class_counts", COUNTS)
    if "k" in cls.__dataclass_fields__:
        settings.setdefault("k", 2)
    if cls in NOISED and (not issubclass(cls, losses.SmoothableHinge) or settings.get("smoothing_epsilon")):
        settings.setdefault("seed", 3)
    return cls(**settings)


def each():
    """Every loss, hinges with and without smoothing, coupled ones with their regulariser."""
    for cls in CLASSES:
        yield made(cls)
        if issubclass(cls, losses.SmoothableHinge):
            yield made(cls, smoothing_epsilon=0.5)
        if "epsilon" in cls.__dataclass_fields__:
            yield made(cls, epsilon=0.3)
        if cls is losses.ROLE:
            yield made(cls, lambda_=1.0)


def drawn(batch=BATCH, dtype=torch.float32, seed=1):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(batch, 6, generator=generator, dtype=torch.float64).to(dtype)
    return scores, torch.randint(6, (batch,), generator=generator)


def takes_others(loss):
    return isinstance(loss, (losses.ROLE, losses.AverageKTwoHead))


def called(loss, scores, labels, others=None):
    """The loss, and the gradient by the scores of a sum of what it gives. `others`: estimates, or scores of the second head."""
    scores = scores.clone().requires_grad_()
    if takes_others(getattr(loss, "_orig_mod", loss)):
        others = (torch.ones_like(scores) * 0.5 if others is None else others).detach().clone().requires_grad_()
        value = loss(scores, others, labels)
    else:
        value = loss(scores, labels)
    (gradient,) = torch.autograd.grad(value.sum(), scores, allow_unused=True)
    return value.detach(), gradient


class LossTest(TensorTest):
    def for_each(self, check):
        for loss in each():
            with self.subTest(loss=str(loss)):
                check(loss)


class Inputs(LossTest):
    def test_an_empty_batch(self):
        def check(loss):
            scores, labels = torch.zeros(0, 6), torch.zeros(0, dtype=torch.int64)
            for reduction, expected in (("none", torch.zeros(0)), ("sum", torch.tensor(0.0)), ("mean", torch.tensor(math.nan))):
                loss.reduction = reduction
                value, gradient = called(loss, scores, labels)
                self.assertEqual(value.shape, expected.shape)
                self.assertTrue(torch.equal(value.nan_to_num(7), expected.nan_to_num(7)))
                self.assertEqual(gradient.shape, (0, 6))

        self.for_each(check)

    def test_labels_of_any_width(self):
        def check(loss):
            scores, labels = drawn()
            expected = called(loss.eval(), scores, labels)
            for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32):
                for got, wanted in zip(called(loss, scores, labels.to(dtype)), expected):
                    self.assertTrue(torch.equal(got, wanted))

        self.for_each(check)

    def test_narrow_labels_do_not_wrap_the_ignored_one_around(self):
        scores = torch.randn(4, 200, generator=torch.Generator().manual_seed(1))
        labels = torch.tensor([156, 0, 1, 199])  # 156 is -100 in eight bits
        for loss in (losses.CrossEntropy(), losses.CrossEntropy(ignore_index=300)):
            self.assertTrue(torch.equal(loss(scores, labels.to(torch.uint8)), loss(scores, labels)))

    def test_soft_labels_with_margins_that_exceed_float32(self):
        loss = losses.LDAM([1, 10**8], max_margin=0.5, scale=1000.0, reduction="none")
        scores = torch.tensor([[1.0, -1.0], [0.2, 0.1], [-1.0, 1.0]], requires_grad=True)
        hard = loss(scores, torch.tensor([0, 0, 1]))
        soft = loss(scores, torch.eye(2)[[0, 0, 1]])
        self.assert_close(soft, hard.detach(), 1e-5)
        (gradient,) = torch.autograd.grad(soft.sum(), scores)
        (expected,) = torch.autograd.grad(hard.sum(), scores)
        self.assert_close(gradient, expected, 1e-3)

    def test_soft_labels_of_classes_without_images(self):
        scores, shares = torch.zeros(2, 3), torch.tensor([[1.0, 0, 0], [0.5, 0, 0.5]])
        for kind in (losses.LogitAdjusted, losses.BalancedSoftmax):
            self.assertTrue(kind([5, 0, 1])(scores, shares).isfinite())
            with self.assertRaisesRegex(ValueError, r"^labels.1.: class 2 has no training image"):
                kind([5, 1, 0])(scores, shares)

    def test_masked_classes_that_leave_too_few(self):
        scores = torch.randn(3, 10, generator=torch.Generator().manual_seed(2))
        scores[0, 5:] = -math.inf
        scores.requires_grad_()
        for loss in (losses.ExactTopK(k=5), losses.ExactTopKImbalanced([1] * 10, k=5), losses.ExactTopK(k=5, epsilon=0.3)):
            loss.reduction = "none"
            value = loss(scores, torch.tensor([0, 1, 2]))
            self.assertEqual(value[0], 0)
            (gradient,) = torch.autograd.grad(value.sum(), scores)
            self.assertTrue(gradient.isfinite().all())

    def test_names_that_are_no_settings(self):
        loss = losses.NoisedTopK(k=2)
        with self.assertRaisesRegex(AttributeError, "NoisedTopK has no setting 'epsilonn'; it has .*epsilon"):
            loss.epsilonn = 0.1
        loss.scorer = torch.nn.Linear(2, 2)
        loss.train(False)
        self.assertIsInstance(losses.CrossEntropy(class_weights=[1.0] * 6).class_weights, tuple)

    def test_what_smoothing_alone_takes(self):
        for name, value in (("seed", 3), ("generator", torch.Generator()), ("smoothing_num_draws", 4)):
            loss = losses.TopKHinge(k=2)
            with self.assertRaisesRegex(ValueError, f"{name}: without an effect, since smoothing_epsilon is 0"):
                setattr(loss, name, value)
            with self.assertRaisesRegex(ValueError, f"{name}: without an effect, since smoothing_epsilon is 0"):
                losses.TopKHinge(k=2, **{name: value})
        loss.smoothing_epsilon = 0.1
        loss.smoothing_num_draws = 4
        loss.smoothing_epsilon = 0.0
        loss.load_state_dict(losses.TopKHinge(k=2).state_dict())
        loss = losses.TopKHinge(k=2)
        loss.load_state_dict(losses.TopKHinge(k=2).state_dict())
        self.assertIsNone(loss.seed)

    def test_ignored_samples_take_no_part(self):
        def check(loss):
            scores, labels = drawn()
            loss.eval()
            kept, ignoring = torch.tensor([0, 1, 3]), labels.clone()
            ignoring[[2, 4]] = -100
            garbage = scores.clone()
            garbage[[2, 4]] = math.nan
            for reduction in ("none", "sum", "mean"):
                loss.reduction = reduction
                value, gradient = called(loss, garbage, ignoring)
                expected, expected_gradient = self.without_others(loss, scores, labels, kept)
                if reduction == "none":
                    self.assertEqual(value[[2, 4]].tolist(), [0, 0])
                    value = value[kept]
                self.assert_close(value, expected, 1e-6)
                self.assert_close(gradient[kept], expected_gradient, 1e-6)
                self.assertEqual(gradient[[2, 4]].abs().max().item(), 0)
            loss.ignore_index = 7
            with self.assertRaisesRegex(ValueError, "labels.*-100"):
                called(loss, scores, ignoring)
            loss.ignore_index = -100
            value, gradient = called(loss, garbage, torch.full((BATCH,), -100))
            self.assertTrue(math.isnan(value))

        self.for_each(check)

    def without_others(self, loss, scores, labels, kept):
        """The loss of the samples `kept` alone, and the gradient by their scores. Noise is a function of the row."""
        if not isinstance(loss, Noised):
            return called(loss, scores[kept], labels[kept])
        of_all = copy.deepcopy(loss)
        of_all.reduction = "none"
        value, gradient = called(of_all, scores, labels)
        share = 1 / len(kept) if loss.reduction == "mean" else 1
        return value[kept] if loss.reduction == "none" else value[kept].sum() * share, gradient[kept] * share

    def test_a_masked_class_takes_no_part(self):
        def check(loss):
            for dtype in (torch.float32, torch.float64):
                scores, labels = drawn(dtype=dtype)
                labels = labels.clamp_max(4)
                scores[:, 5] = -math.inf
                scores[1, 0], labels[1] = -math.inf, 2
                value, gradient = called(loss.eval(), scores, labels)
                self.assertTrue(value.isfinite(), value)
                self.assertTrue(gradient.isfinite().all(), gradient)
                self.assertEqual(gradient[scores.isneginf()].abs().max().item(), 0)

        self.for_each(check)

    def test_a_masked_label_has_an_infinite_loss_or_the_largest(self):
        def check(loss):
            scores, labels = drawn()
            loss.reduction = "none"
            scores[0, labels[0]] = -math.inf
            value, _ = called(loss.eval(), scores, labels)
            largest = {losses.TopKZeroOne: 1.0}.get(type(loss), math.inf)
            self.assertEqual(value[0].item(), largest)

        self.for_each(check)

    def test_large_scores(self):
        def check(loss):
            for dtype in (torch.float32, torch.float64):
                scores, labels = drawn(dtype=dtype)
                for large in (scores * 1e4, scores * 0, torch.full_like(scores, -1e4)):
                    value, gradient = called(loss.eval(), large, labels)
                    self.assertTrue(value.isfinite(), value)
                    self.assertTrue(gradient.isfinite().all(), gradient)

        self.for_each(check)

    def test_classes_without_images(self):
        def check(loss):
            if not isinstance(loss, CountingLoss):
                return
            loss.class_counts = [0, *COUNTS[1:]]
            scores, labels = drawn()
            value, gradient = called(loss.eval(), scores, labels.clamp_min(1))
            self.assertTrue(value.isfinite())
            self.assertTrue(gradient.isfinite().all())

        self.for_each(check)

    def test_a_class_without_images_as_a_label(self):
        for cls in (losses.LogitAdjusted, losses.BalancedSoftmax):
            with self.subTest(loss=cls.__name__):
                scores, labels = drawn()
                loss = cls([0, *COUNTS[1:]], zero_count_class="rarest")
                expected = cls([1, *COUNTS[1:]])
                for got, wanted in zip(called(loss, scores, labels * 0), called(expected, scores, labels * 0)):
                    self.assert_close(got, wanted, 1e-6)

    def test_autocast_changes_nothing(self):
        def check(loss):
            scores, labels = drawn(dtype=torch.bfloat16)
            expected = called(loss.eval(), scores, labels)
            with torch.autocast("cpu", torch.bfloat16):
                got = called(loss, scores, labels)
            self.assertEqual(got[0].dtype, torch.float32)
            self.assertTrue(torch.equal(got[0], expected[0]))
            self.assertTrue(torch.equal(got[1], expected[1]))

        self.for_each(check)

    def test_compiled_calls_do_the_same(self):
        for cls in (losses.NoisedTopK, losses.LDAM, losses.AverageKTwoHead):
            with self.subTest(loss=cls.__name__):
                loss = made(cls).eval()
                compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
                scores, labels = drawn()
                labels[1] = -100
                for got, wanted in zip(called(compiled, scores, labels), called(loss, scores, labels)):
                    self.assert_close(got, wanted, 1e-6)
                with self.assertRaisesRegex(ValueError, "labels"):
                    compiled(*[scores] * (2 if cls is losses.AverageKTwoHead else 1), labels + 9)


class SoftTargets(TensorTest):
    def test_the_mean_of_the_labels_losses(self):
        for cls in OF_PROBABILITIES:
            for weights in (None, [0.5, 1.0, 2.0, 0.1, 1.5, 3.0]):
                with self.subTest(loss=cls.__name__, weights=weights):
                    loss = made(cls, reduction="none", class_weights=weights)
                    scores, labels = drawn(dtype=torch.float64)
                    others, share = labels.flip(0), torch.linspace(0, 1, BATCH, dtype=torch.float64)
                    one_hot = torch.nn.functional.one_hot(torch.stack([labels, others]), 6).double()
                    mixed = share.unsqueeze(1) * one_hot[0] + (1 - share).unsqueeze(1) * one_hot[1]
                    value, gradient = called(loss, scores, mixed)
                    of_labels, of_others = called(loss, scores, labels), called(loss, scores, others)
                    self.assert_close(value, share * of_labels[0] + (1 - share) * of_others[0], 1e-12)
                    expected = share.unsqueeze(1) * of_labels[1] + (1 - share).unsqueeze(1) * of_others[1]
                    self.assert_close(gradient, expected, 1e-12)

    def test_torchs_cross_entropy_says_the_same(self):
        scores, _ = drawn(dtype=torch.float64)
        targets = drawn(seed=2, dtype=torch.float64)[0].softmax(1)
        for smoothing in (0.0, 0.2):
            value, gradient = called(losses.CrossEntropy(label_smoothing=smoothing), scores, targets)
            leaf = scores.clone().requires_grad_()
            expected = torch.nn.functional.cross_entropy(leaf, targets, label_smoothing=smoothing)
            self.assert_close(value, expected.item(), 1e-12)
            self.assert_close(gradient, torch.autograd.grad(expected, leaf)[0], 1e-12)

    def test_a_masked_class_has_no_share(self):
        for cls in OF_PROBABILITIES:
            with self.subTest(loss=cls.__name__):
                scores, _ = drawn()
                targets = drawn(seed=2)[0].softmax(1)
                scores[:, 5], targets[:, 5] = -math.inf, 0
                value, gradient = called(made(cls), scores, targets / targets.sum(1, keepdim=True))
                self.assertTrue(value.isfinite())
                self.assertTrue(gradient.isfinite().all())

    def test_mixup_in_half_precision(self):
        scores, labels = drawn(dtype=torch.bfloat16)
        mixed = (0.3 * torch.nn.functional.one_hot(labels, 6) + 0.7 * torch.nn.functional.one_hot(labels.flip(0), 6)).bfloat16()
        self.assertTrue(called(losses.CrossEntropy(), scores, mixed)[0].isfinite())


class Transforms(LossTest):
    def test_they_are_refused_plainly(self):
        def check(loss):
            scores, labels = drawn()
            more = [scores] if takes_others(loss) else []
            with self.assertRaisesRegex(RuntimeError, "do not take torch.func's transforms"):
                torch.func.grad(lambda s: loss(s, *more, labels))(scores)
            with self.assertRaisesRegex(RuntimeError, "do not take torch.func's transforms"):
                torch.func.vmap(lambda s: loss(s, *more, labels))(scores.expand(3, BATCH, 6))

        self.for_each(check)


class Settings(LossTest):
    def test_setting_one_does_what_the_constructor_does(self):
        scores, labels = drawn()
        loss = losses.NoisedTopK(k=1, seed=4).eval()
        changes = {"k": 3, "epsilon": 0.7, "num_draws": 3, "margin": 2.0, "reduction": "sum", "class_weights": COUNTS, "seed": 9}
        given = {"k": 1, "seed": 4}
        for name, value in changes.items():
            before = called(loss, scores, labels)[0]
            setattr(loss, name, value)
            given[name] = value
            expected = called(losses.NoisedTopK(**given).eval(), scores, labels)[0]
            self.assertEqual(called(loss, scores, labels)[0].item(), expected.item())
            self.assertNotEqual(expected.item(), before.item())
            self.assertEqual(getattr(loss, name), tuple(value) if isinstance(value, list) else value)
        self.assertIn("k=3, epsilon=0.7", str(loss))

    def test_a_wrong_value_changes_nothing(self):
        loss = losses.NoisedTopK(k=2, epsilon=0.5, seed=4)
        for name, value, error in (("k", 0, ValueError), ("epsilon", "much", ValueError), ("k", "2", TypeError), ("reduction", "men", ValueError)):
            before = getattr(loss, name)
            with self.assertRaisesRegex(error, f"^{name}: "):
                setattr(loss, name, value)
            self.assertEqual(getattr(loss, name), before)
        self.assertEqual(called(loss.eval(), *drawn())[0].item(), called(losses.NoisedTopK(k=2, epsilon=0.5, seed=4).eval(), *drawn())[0].item())

    def test_smoothing_can_be_turned_on_and_off(self):
        scores, labels = drawn()
        torch.manual_seed(0)
        loss = losses.TopKHinge(k=2).eval()
        plain = called(loss, scores, labels)[0]
        loss.smoothing_epsilon = 2.0
        smoothed = called(loss, scores, labels)[0]
        self.assertNotEqual(plain.item(), smoothed.item())
        loss.smoothing_epsilon = 0.0
        self.assertEqual(called(loss, scores, labels)[0].item(), plain.item())

    def test_a_compiled_loss_follows_its_settings(self):
        scores, labels = drawn()
        loss = losses.NoisedTopK(k=1, epsilon=0.5, seed=4).eval()
        compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
        for k in (1, 3):
            loss.k = k
            self.assertEqual(compiled(scores, labels).item(), losses.NoisedTopK(k=k, epsilon=0.5, seed=4).eval()(scores, labels).item())

    def test_every_loss_describes_its_arguments_and_settings(self):
        shared = "reduction", "ignore_index", "class_weights"
        for cls in CLASSES:
            with self.subTest(loss=cls.__name__):
                text = cls.__doc__ + (losses.TopKHinge.__doc__ if "moothed as TopKHinge" in cls.__doc__ else "")
                named = [name for name in (field.name for field in dataclasses.fields(cls)) if name not in shared]
                for name in ["scores", "labels", *named]:
                    if name not in ("seed", "generator") or not issubclass(cls, losses.SmoothableHinge):
                        self.assertRegex(text, rf"\b{name}\b")
                self.assertIn("[batch, classes]", text)
                self.assertRegex(text, r"\b(20\d\d|thesis)\b")


class State(LossTest):
    """Seeds and steps, as tensors."""

    def sequence(self, loss, calls=3):
        return [loss(*drawn()).item() for _ in range(calls)]

    def test_it_is_tensors_of_int64(self):
        for cls in CLASSES:
            with self.subTest(loss=cls.__name__):
                state = made(cls).state_dict()
                self.assertEqual(sorted(state), ["noise_seed", "step"] if cls in NOISED else [])
                self.assertTrue(all(value.dtype == torch.int64 and value.shape == () for value in state.values()))

    def test_the_moving_average_idiom(self):
        loss = losses.NoisedTopK(seed=5)
        average = {name: value.clone() for name, value in loss.state_dict().items()}
        for name, value in loss.state_dict().items():
            average[name].copy_(value)
        loss.load_state_dict(average)
        self.assertEqual(loss.seed, 5)
        averaged = torch.optim.swa_utils.AveragedModel(loss, use_buffers=True)
        averaged.update_parameters(loss)
        self.assertEqual(averaged.module.seed, 5)

    def test_safetensors(self):
        loss = losses.NoisedTopK(k=2, epsilon=1.0, seed=2**63 - 1)
        self.sequence(loss)
        with tempfile.TemporaryDirectory(prefix="settrain-python-") as folder:
            path = pathlib.Path(folder) / "state.safetensors"
            save_file(loss.state_dict(), path)
            resumed = losses.NoisedTopK(k=2, epsilon=1.0)
            resumed.load_state_dict(load_file(path))
        self.assertEqual(resumed.seed, 2**63 - 1)
        self.assertEqual(self.sequence(resumed), self.sequence(loss))

    def test_it_is_part_of_a_models_state(self):
        def model():
            return torch.nn.ModuleDict({"head": torch.nn.Linear(6, 6), "loss": losses.NoisedTopK(k=2, epsilon=1.0)})

        first, second = model(), model()
        self.sequence(first["loss"])
        second.load_state_dict(first.state_dict())
        self.assertEqual(self.sequence(first["loss"]), self.sequence(second["loss"]))

    def test_copies_go_on_alike(self):
        for copied in (copy.deepcopy, lambda loss: pickle.loads(pickle.dumps(loss)), self.through_torch_save):
            loss = losses.NoisedTopK(k=2, epsilon=1.0, seed=5, class_weights=COUNTS)
            self.sequence(loss)
            same = copied(loss)
            same.margin = loss.margin = 3.0
            self.assertEqual(self.sequence(same), self.sequence(loss))

    def through_torch_save(self, loss):
        file = io.BytesIO()
        torch.save(loss, file)
        file.seek(0)
        return torch.load(file, weights_only=False)

    def test_a_new_seed_is_saved(self):
        loss = losses.NoisedTopK(k=2, epsilon=1.0, seed=5)
        loss.seed = 6
        self.assertEqual(loss.state_dict()["noise_seed"].item(), 6)

    def test_equally_seeded_generators_draw_the_same(self):
        for cls in NOISED:
            with self.subTest(loss=cls.__name__):
                settings = {"smoothing_epsilon": 1.0} if issubclass(cls, losses.SmoothableHinge) else {"epsilon": 1.0}
                rows = []
                for global_seed in (1, 2):
                    torch.manual_seed(global_seed)
                    rows.append(self.sequence(made(cls, seed=None, generator=torch.Generator().manual_seed(3), **settings)))
                self.assertEqual(*rows)
                self.assertEqual(len(set(rows[0])), 3)


if __name__ == "__main__":
    main()
