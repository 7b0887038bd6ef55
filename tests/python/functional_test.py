"""settrain.functional: brute force, autograd, torch.compile, noise, ties, NaN and wrong arguments."""

from package import TensorTest, main

import itertools
import math

import torch

from settrain import functional, losses, metrics

INF, NAN = math.inf, math.nan


def random_scores(batch=4, classes=6, dtype=torch.float64, seed=1):
    return torch.randn(batch, classes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def noise_for(scores, draws=5, seed=2):
    return torch.randn(scores.shape[0], draws, scores.shape[1], generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


NOISE = noise_for(random_scores())
KS = torch.tensor([1, 2, 3, 5])
# Each function as one of a tensor, and the shape of its results for scores [4, 6].
CALLS = {
    "smoothed_topk_sum": (lambda s: functional.smoothed_topk_sum(s, 3, epsilon=0.5, noise=NOISE), (4,)),
    "smoothed_kth_largest": (lambda s: functional.smoothed_kth_largest(s, 3, epsilon=0.5, noise=NOISE), (4,)),
    "exact_smoothed_kth_largest": (lambda s: functional.exact_smoothed_kth_largest(s, 3, epsilon=0.5), (4,)),
    "sparse_top_projection": (lambda s: functional.sparse_top_projection(s, KS), (4, 6)),
    "sparse_top_jacobian": (lambda s: functional.sparse_top_jacobian(s, KS), (4, 6, 6)),
    "elementary_symmetric": (lambda s: functional.elementary_symmetric(s, 3), (4, 4)),
    "log_elementary_symmetric": (lambda s: functional.log_elementary_symmetric(s, 3), (4, 4)),
    "average_k_threshold": (lambda s: functional.average_k_threshold(s, 2.5), ()),
}
WITHOUT_GRADIENT = ("average_k_threshold", "sparse_top_jacobian")
DIFFERENTIABLE = [name for name in CALLS if name not in WITHOUT_GRADIENT]


def gradient_of(function, scores):
    leaf = scores.detach().clone().requires_grad_()
    return torch.autograd.grad(function(leaf).sum(), leaf)[0]


class EveryFunction(TensorTest):
    def test_all_are_tested_here(self):
        self.assertEqual(sorted(CALLS), sorted(functional.__all__))

    def test_shapes_and_dtypes(self):
        for name, (call, shape) in CALLS.items():
            for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
                with self.subTest(function=name, dtype=dtype):
                    result = call(random_scores(dtype=dtype))
                    self.assertEqual(tuple(result.shape), shape)
                    expected = torch.float64 if name == "average_k_threshold" or dtype == torch.float64 else torch.float32
                    self.assertEqual(result.dtype, expected)

    def test_float32_is_near_float64(self):
        for name, (call, _) in CALLS.items():
            with self.subTest(function=name):
                scores = random_scores(dtype=torch.float32)
                self.assert_close(call(scores), call(scores.double()), 1e-6)
                if name in DIFFERENTIABLE:
                    self.assert_close(gradient_of(call, scores), gradient_of(call, scores.double()), 1e-6)

    def test_gradients_are_the_derivatives(self):
        for name in DIFFERENTIABLE:
            with self.subTest(function=name):
                self.assertTrue(torch.autograd.gradcheck(CALLS[name][0], random_scores().requires_grad_()))

    def test_half_precision_has_gradients_of_its_own_dtype(self):
        for name in DIFFERENTIABLE:
            with self.subTest(function=name):
                self.assertEqual(gradient_of(CALLS[name][0], random_scores(dtype=torch.bfloat16)).dtype, torch.bfloat16)

    def test_a_second_derivative_is_right_or_refused(self):
        projection = CALLS["sparse_top_projection"][0]
        self.assertTrue(torch.autograd.gradgradcheck(projection, random_scores().requires_grad_()))
        for name in DIFFERENTIABLE:
            if name == "sparse_top_projection":
                continue
            with self.subTest(function=name), self.assertRaisesRegex(RuntimeError, "create_graph"):
                scores = random_scores().requires_grad_()
                torch.autograd.grad(CALLS[name][0](scores).sum(), scores, create_graph=True)

    def test_some_have_no_gradient(self):
        for name in WITHOUT_GRADIENT:
            self.assertFalse(CALLS[name][0](random_scores().requires_grad_()).requires_grad, name)

    def test_no_graph_without_gradients(self):
        for name in DIFFERENTIABLE:
            with self.subTest(function=name), torch.no_grad():
                scores = random_scores()
                self.assertTrue(torch.equal(CALLS[name][0](scores.clone().requires_grad_()), CALLS[name][0](scores)))

    def test_no_rows(self):
        empty = torch.empty(0, 6, dtype=torch.float64)
        for call in (
            lambda s: functional.smoothed_topk_sum(s, 2, epsilon=0.5, seed=1),
            lambda s: functional.smoothed_kth_largest(s, 2, epsilon=0.5, seed=1),
            lambda s: functional.exact_smoothed_kth_largest(s, 2, epsilon=0.5),
            lambda s: functional.sparse_top_projection(s, 2),
            lambda s: functional.elementary_symmetric(s, 2),
            lambda s: functional.log_elementary_symmetric(s, 2),
        ):
            self.assertEqual(len(call(empty)), 0)
            self.assertEqual(gradient_of(call, empty).shape, (0, 6))

    def test_rows_that_do_not_lie_side_by_side(self):
        for name, (call, _) in CALLS.items():
            with self.subTest(function=name):
                self.assertTrue(torch.equal(call(random_scores().t().contiguous().t()), call(random_scores())))

    def test_operators_pass_opcheck(self):
        scores, ops = random_scores().requires_grad_(), torch.ops.settrain
        for operator, arguments in (
            (ops.sampled_topk, (scores, None, torch.tensor(3), 7, 2, 0.5, 5, True, True)),
            (ops.sampled_topk, (scores.detach(), NOISE, None, 0, 2, 0.5, 5, False, False)),
            (ops.exact_topk, (scores, 2, 0.5, 48, True)),
            (ops.sparse_top_projection, (scores, KS)),
            (ops.sparse_top_jacobian, (scores.detach(), KS)),
            (ops.elementary_symmetric, (scores, 3, True)),
            (ops.elementary_symmetric, (scores, 3, False)),
            (ops.average_k_threshold, (scores.detach(), 2.5, False)),
        ):
            with self.subTest(operator=str(operator)):
                results = torch.library.opcheck(operator.default, arguments)
                self.assertEqual(set(results.values()), {"SUCCESS"}, results)

    def test_compiled_it_is_one_graph_with_the_same_results(self):
        for name, (call, _) in CALLS.items():
            with self.subTest(function=name):
                compiled = torch.compile(call, fullgraph=True, dynamic=True, backend="aot_eager")
                self.assertTrue(torch.equal(compiled(random_scores()), call(random_scores())))
                if name in DIFFERENTIABLE:
                    self.assertTrue(torch.equal(gradient_of(compiled, random_scores()), gradient_of(call, random_scores())))

    def test_compiled_with_new_noise_for_every_call(self):
        compiled = torch.compile(lambda s: functional.smoothed_kth_largest(s, 2, epsilon=1.0), fullgraph=True, backend="aot_eager")
        self.assertFalse(torch.equal(compiled(random_scores()), compiled(random_scores())))

    def test_compiled_projection_of_one_k(self):
        compiled = torch.compile(lambda s: functional.sparse_top_projection(s, 2), fullgraph=True, dynamic=True, backend="aot_eager")
        for batch in (4, 7):
            self.assertTrue(torch.equal(compiled(random_scores(batch)), functional.sparse_top_projection(random_scores(batch), 2)))

    def test_compiled_for_any_number_of_rows(self):
        compiled = torch.compile(
            lambda s: functional.smoothed_topk_sum(s, 2, epsilon=1.0, seed=3, step=4), fullgraph=True, dynamic=True, backend="aot_eager"
        )
        for batch in (4, 7):
            scores = random_scores(batch, dtype=torch.float32)
            expected = functional.smoothed_topk_sum(scores, 2, epsilon=1.0, seed=3, step=4)
            self.assertTrue(torch.equal(compiled(scores), expected))


class SmoothedTopK(TensorTest):
    def test_brute_force(self):
        scores = random_scores()
        for k in range(1, 7):
            with self.subTest(k=k):
                ranked = (scores.unsqueeze(1) + 0.5 * NOISE).sort(2, descending=True).values
                self.assert_close(functional.smoothed_topk_sum(scores, k, epsilon=0.5, noise=NOISE), ranked[:, :, :k].sum(2).mean(1), 1e-12)
                self.assert_close(functional.smoothed_kth_largest(scores, k, epsilon=0.5, noise=NOISE), ranked[:, :, k - 1].mean(1), 1e-12)

    def test_the_example_of_the_icml_paper(self):  # section 3.2, "Illustration"
        scores = torch.tensor([[2.4, 2.6, 2.3, 0.5]], dtype=torch.float64)
        noise = torch.tensor([[[0.2, -0.1, 0.1, 0.3], [0.1, 0.1, -0.1, 0.1], [-0.1, -0.1, 0.1, -0.1]]], dtype=torch.float64)
        self.assert_close(functional.smoothed_kth_largest(scores, 2, epsilon=1.0, noise=noise), torch.tensor([7.4 / 3], dtype=torch.float64), 1e-12)

        def gradient(epsilon):
            return gradient_of(lambda s: functional.smoothed_kth_largest(s, 2, epsilon=epsilon, noise=noise), scores)[0]

        self.assert_close(gradient(1.0), torch.tensor([1, 1, 1, 0], dtype=torch.float64) / 3, 1e-12)
        self.assert_close(gradient(0.1), torch.tensor([1, 0, 0, 0], dtype=torch.float64), 0)

    def test_gradients_are_shares_of_the_draws(self):
        def both(k, which):
            return gradient_of(lambda s: which(s, k, epsilon=0.5, noise=NOISE), random_scores())

        for k in range(1, 7):
            sums, ranks = both(k, functional.smoothed_topk_sum), both(k, functional.smoothed_kth_largest)
            self.assert_close(sums.sum(1), torch.full((4,), float(k)), 1e-12)
            self.assert_close(ranks.sum(1), torch.ones(4), 1e-12)
            self.assert_close(sums * 5, (sums * 5).round(), 1e-12)
            if k > 1:
                self.assert_close(sums - both(k - 1, functional.smoothed_topk_sum), ranks, 1e-12)

    def test_many_draws_come_near_the_integral(self):
        scores, epsilon = random_scores(), 0.5
        sampled = functional.smoothed_kth_largest(scores, 3, epsilon=epsilon, num_draws=1000, seed=5)
        exact = functional.exact_smoothed_kth_largest(scores, 3, epsilon=epsilon)
        self.assertLess((sampled - exact).abs().max().item(), 5 * epsilon / math.sqrt(1000))

    def test_a_seed_and_a_step_decide_the_noise(self):
        def value(**noise):
            return functional.smoothed_topk_sum(random_scores(), 2, epsilon=1.0, **noise)

        first = value(seed=5, step=2)
        self.assertTrue(torch.equal(first, value(seed=5, step=torch.tensor(2))))
        self.assertFalse(torch.equal(first, value(seed=5, step=3)))
        self.assertFalse(torch.equal(first, value(seed=6, step=2)))

    def test_without_a_seed_a_generator_decides_it(self):
        def values(generator):
            return [functional.smoothed_topk_sum(random_scores(), 2, epsilon=1.0, generator=generator) for _ in range(2)]

        first, second = values(torch.Generator().manual_seed(3)), values(torch.Generator().manual_seed(3))
        self.assertTrue(torch.equal(first[0], second[0]) and torch.equal(first[1], second[1]))
        self.assertFalse(torch.equal(first[0], first[1]))
        torch.manual_seed(4)
        of_torch = values(None)
        torch.manual_seed(4)
        self.assertTrue(torch.equal(of_torch[0], values(None)[0]))
        self.assertFalse(torch.equal(of_torch[0], of_torch[1]))

    def test_it_is_what_the_noised_loss_compares_the_label_with(self):
        scores, labels = random_scores(dtype=torch.float32), torch.tensor([0, 5, 2, 3])
        loss = losses.NoisedTopK(k=2, epsilon=0.7, num_draws=4, seed=9, reduction="none").eval()
        kth = functional.smoothed_kth_largest(scores, 3, epsilon=0.7, num_draws=4, seed=9)
        expected = (1 + kth - scores.gather(1, labels.unsqueeze(1)).squeeze(1)).relu()
        self.assertGreater(expected.max().item(), 0)
        self.assert_close(loss(scores, labels), expected, 1e-6)

    def test_ties_go_to_the_lower_class(self):
        scores = torch.tensor([[1.0, 2.0, 2.0, 2.0, 0.0]])
        zeros = torch.zeros(1, 1, 5)
        gradient = gradient_of(lambda s: functional.smoothed_topk_sum(s, 2, epsilon=0, noise=zeros), scores)
        self.assertEqual(gradient.tolist(), [[0, 1, 1, 0, 0]])
        gradient = gradient_of(lambda s: functional.smoothed_kth_largest(s, 2, epsilon=0, noise=zeros), scores)
        self.assertEqual(gradient.tolist(), [[0, 0, 1, 0, 0]])

    def test_nan_stays_in_its_row(self):
        scores = random_scores()
        scores[1, 3] = NAN
        for name in ("smoothed_topk_sum", "smoothed_kth_largest"):
            values, gradient = CALLS[name][0](scores), gradient_of(CALLS[name][0], scores)
            self.assertEqual(values.isnan().tolist(), [False, True, False, False])
            self.assertEqual(gradient[1].tolist(), [0] * 6)


class ExactSmoothedTopK(TensorTest):
    def test_two_classes_have_a_closed_form(self):
        # The larger of two normals: a Phi(d) + b Phi(-d) + theta phi(d), theta = epsilon sqrt(2), d = (a - b)/theta.
        scores, theta = torch.tensor([[0.3, -0.4], [2.0, 2.0]], dtype=torch.float64), 0.5 * math.sqrt(2)
        a, b = scores.unbind(1)
        d = (a - b) / theta
        larger = a * torch.special.ndtr(d) + b * torch.special.ndtr(-d) + theta * torch.exp(-d * d / 2) / math.sqrt(2 * math.pi)
        largest = functional.exact_smoothed_kth_largest(scores, 1, epsilon=0.5, nodes=64)
        self.assert_close(largest, larger, 1e-12)
        self.assert_close(functional.exact_smoothed_kth_largest(scores, 2, epsilon=0.5, nodes=64), a + b - larger, 1e-12)

    def test_its_gradient_is_a_probability(self):
        gradient = gradient_of(CALLS["exact_smoothed_kth_largest"][0], random_scores())
        self.assert_close(gradient.sum(1), torch.ones(4), 1e-12)
        self.assertGreater(gradient.min().item(), 0)

    def test_without_noise_it_is_the_rank(self):
        scores = random_scores()
        self.assertTrue(torch.equal(functional.exact_smoothed_kth_largest(scores, 2, epsilon=0), scores.sort(1, descending=True).values[:, 1]))

    def test_an_infinite_score_is_the_largest_or_the_smallest(self):
        others = torch.tensor([[0.3, -0.5, 1.0, 0.2]], dtype=torch.float64)
        infinite = torch.full((1, 1), INF, dtype=torch.float64)

        def ranks(scores):
            return [functional.exact_smoothed_kth_largest(scores, k + 1, epsilon=0.5).item() for k in range(scores.shape[1])]

        finite = ranks(others)
        for found, expected in ((ranks(torch.cat([infinite, others], 1)), [INF, *finite]), (ranks(torch.cat([-infinite, others], 1)), [*finite, -INF])):
            for a, b in zip(found, expected, strict=True):
                self.assertTrue(a == b or abs(a - b) < 1e-9, (found, expected))

    def test_nan_stays_in_its_row(self):
        scores = random_scores()
        scores[1, 3] = NAN
        self.assertEqual(CALLS["exact_smoothed_kth_largest"][0](scores).isnan().tolist(), [False, True, False, False])


class SparseTop(TensorTest):
    def test_by_hand(self):
        project = lambda row, k: functional.sparse_top_projection(torch.tensor([row], dtype=torch.float64), k)
        self.assert_close(project([1.2, 0.8, -3], 1), [[0.7, 0.3, 0]], 1e-12)
        self.assert_close(project([5, 1.1, 0.9, -2], 2), [[1, 0.6, 0.4, 0]], 1e-12)
        self.assert_close(project([1, 1, 1, 1], 3), [[0.75] * 4], 1e-12)  # ties share
        self.assert_close(project([0, -7, 4], 3), [[1, 1, 1]], 1e-12)
        self.assert_close(project([0, -7, 4], 0), [[0, 0, 0]], 1e-12)

    def test_no_point_of_the_simplex_is_nearer(self):
        scores, generator = random_scores(), torch.Generator().manual_seed(6)
        q = functional.sparse_top_projection(scores, 2)
        self.assert_close(q.sum(1), torch.full((4,), 2.0), 1e-12)
        vertices = torch.tensor([[float(j in pair) for j in range(6)] for pair in itertools.combinations(range(6), 2)], dtype=torch.float64)
        for _ in range(200):
            other = torch.rand(15, generator=generator, dtype=torch.float64).pow(8)
            point = (other / other.sum()) @ vertices
            self.assertTrue(((scores - q).square().sum(1) <= (scores - point).square().sum(1)).all())

    def test_the_jacobian_is_autograds(self):
        scores = random_scores()
        of_all = torch.autograd.functional.jacobian(CALLS["sparse_top_projection"][0], scores)
        expected = torch.stack([of_all[i, :, i] for i in range(4)])
        self.assert_close(functional.sparse_top_jacobian(scores, KS), expected, 1e-12)
        self.assertGreater(expected.abs().sum().item(), 1)

    def test_values_that_round_to_one_keep_their_gradient(self):
        # In float32 the first is 1, though it may still move.
        scores = torch.tensor([[1.0, 1e-9, -5.0]])
        self.assertEqual(functional.sparse_top_projection(scores, 1)[0, 0].item(), 1)
        jacobian = functional.sparse_top_jacobian(scores, 1)
        self.assert_close(jacobian, [[[0.5, -0.5, 0], [-0.5, 0.5, 0], [0, 0, 0]]], 1e-6)
        gradient = gradient_of(lambda s: functional.sparse_top_projection(s, 1)[:, 0], scores)
        self.assert_close(gradient, [[0.5, -0.5, 0]], 1e-6)

    def test_what_is_not_finite_makes_its_row_nan(self):
        for wrong in (NAN, INF):
            with self.subTest(score=wrong):
                scores = random_scores()
                scores[1, 3] = wrong
                for result in (functional.sparse_top_projection(scores, 2), functional.sparse_top_jacobian(scores, 2).sum(2)):
                    self.assertTrue(result[1].isnan().all())
                    self.assertFalse(result[[0, 2, 3]].isnan().any())
                self.assertTrue(gradient_of(lambda s: functional.sparse_top_projection(s, 2), scores)[1].isnan().all())


    def test_a_masked_class_is_at_zero(self):
        for k in (1, 2, 5):
            scores = random_scores()
            scores[:, 3] = -INF
            others = [0, 1, 2, 4, 5]
            q = functional.sparse_top_projection(scores, k)
            self.assert_close(q[:, others], functional.sparse_top_projection(scores[:, others], k), 1e-12)
            self.assertEqual(q[:, 3].abs().max().item(), 0)
            gradient = gradient_of(lambda s: functional.sparse_top_projection(s, k).square().sum(1), scores)
            self.assertTrue(gradient.isfinite().all())


class ElementarySymmetric(TensorTest):
    def brute_force(self, values, degree):
        rows = [[sum(math.prod(subset) for subset in itertools.combinations(row, i)) for i in range(degree + 1)] for row in values.tolist()]
        return torch.tensor(rows, dtype=torch.float64)

    def test_brute_force(self):
        for classes in (1, 2, 5, 6, 8):
            values = random_scores(3, classes)
            for degree in range(classes + 1):
                with self.subTest(classes=classes, degree=degree):
                    self.assert_close(functional.elementary_symmetric(values, degree), self.brute_force(values, degree), 1e-12)
                    expected = self.brute_force(values.exp(), degree).log()
                    self.assert_close(functional.log_elementary_symmetric(values, degree), expected, 1e-12)

    def test_leading_dimensions(self):
        values = random_scores(6, 5)
        for function in (functional.elementary_symmetric, functional.log_elementary_symmetric):
            self.assertTrue(torch.equal(function(values.view(2, 3, 5), 3), function(values, 3).view(2, 3, 4)))
            self.assertTrue(torch.equal(function(values[0], 3), function(values, 3)[0]))

    def test_the_gradient_is_the_polynomial_of_the_others(self):
        values = random_scores(1, 5)
        values[0, 2] = 0
        gradient = gradient_of(lambda v: functional.elementary_symmetric(v, 3)[:, 3], values)
        others = [self.brute_force(torch.cat([values[:, :j], values[:, j + 1 :]], 1), 2)[0, 2].item() for j in range(5)]
        self.assert_close(gradient, [others], 1e-12)

    def test_in_logarithms_nothing_overflows(self):
        # sigma_3 of seven equal numbers is 35 times their third power.
        for size in (-1e5, 1e5):
            values = torch.full((1, 7), size, dtype=torch.float32)
            self.assert_close(functional.log_elementary_symmetric(values, 3)[:, 3], [3 * size + math.log(35)], 1e-6)
            self.assert_close(gradient_of(lambda v: functional.log_elementary_symmetric(v, 3)[:, 3], values), [[3 / 7] * 7], 1e-6)
        self.assertEqual(functional.elementary_symmetric(torch.full((1, 7), 1e20), 3)[0, 3].item(), INF)

    def test_the_logarithm_of_zero(self):
        values = torch.tensor([[0.0, -INF, math.log(2), -INF]], dtype=torch.float64)
        result = functional.log_elementary_symmetric(values, 4)
        self.assert_close(result[0, :3], [0, math.log(3), math.log(2)], 1e-12)
        self.assertEqual(result[0, 3:].tolist(), [-INF, -INF])
        gradient = gradient_of(lambda v: functional.log_elementary_symmetric(v, 4), values)
        self.assert_close(gradient, [[1 / 3 + 1, 0, 2 / 3 + 1, 0]], 1e-12)

    def test_nan(self):
        values = random_scores()
        values[1, 3] = NAN
        for function in (functional.elementary_symmetric, functional.log_elementary_symmetric):
            result = function(values, 3)
            self.assertEqual(result[1].isnan().tolist(), [False, True, True, True])
            self.assertFalse(result[[0, 2, 3]].isnan().any())


class AverageKThreshold(TensorTest):
    def test_sets_hold_k_on_average(self):
        values = random_scores(8, 6).softmax(1)
        for k in (0.5, 1, 2.25, 5):
            with self.subTest(k=k):
                threshold = functional.average_k_threshold(values, k)
                self.assertEqual(metrics.returned_classes(values, threshold.item()).sum().item(), 8 * k)
                ranked = values.flatten().sort(descending=True).values
                self.assertEqual(threshold.item(), ranked[int(8 * k) - 1 : int(8 * k) + 1].mean().item())

    def test_none_and_all(self):
        values = random_scores()
        self.assertEqual(functional.average_k_threshold(values, 0.1).item(), INF)
        self.assertEqual(functional.average_k_threshold(values, 6).item(), -INF)

    def test_ties_are_in_or_out(self):
        values = torch.tensor([[0.5, 0.5, 0.5, 0.1]])
        for strict, size in ((False, 3), (True, 0)):
            threshold = functional.average_k_threshold(values, 2, strict=strict).item()
            self.assertEqual(metrics.returned_classes(values, threshold, strict=strict).sum().item(), size)


class Arguments(TensorTest):
    def test_errors(self):
        scores = random_scores()
        f = functional
        wrong = [
            (lambda: f.smoothed_topk_sum(scores, 0, epsilon=0.5), "^k: expected 1 to 6, got 0"),
            (lambda: f.smoothed_kth_largest(scores, 7, epsilon=0.5), "^k: expected 1 to 6, got 7"),
            (lambda: f.exact_smoothed_kth_largest(scores, 7, epsilon=0.5), "^k: expected 1 to 6, got 7"),
            (lambda: f.smoothed_topk_sum(scores[0], 1, epsilon=0.5), "^scores: "),
            (lambda: f.smoothed_topk_sum(scores.long(), 1, epsilon=0.5), "^scores: expected float32"),
            (lambda: f.smoothed_topk_sum(scores, 1, epsilon=-0.5), "^epsilon: "),
            (lambda: f.smoothed_topk_sum(scores, 1, epsilon=NAN), "^epsilon: "),
            (lambda: f.exact_smoothed_kth_largest(scores, 1, epsilon=INF), "^epsilon: "),
            (lambda: f.exact_smoothed_kth_largest(scores, 1, epsilon=0.5, nodes=3), "^nodes: "),
            (lambda: f.smoothed_topk_sum(scores, 1, epsilon=0.5, num_draws=0), "^num_draws: "),
            (lambda: f.smoothed_topk_sum(scores, 1, epsilon=0.5, noise=NOISE[:, :, :3]), "^noise: "),
            (lambda: f.smoothed_topk_sum(scores, 1, epsilon=0.5, noise=NOISE[:, :0]), "^noise: "),
            (lambda: f.smoothed_topk_sum(scores, 1, epsilon=0.5, noise=NOISE * NAN), "^noise: "),
            (lambda: f.smoothed_topk_sum(scores, 1, epsilon=0.5, seed=1, step=-1), "step -1"),
            (lambda: f.smoothed_topk_sum(scores, 1, epsilon=0.5, step=2), "^step: "),
            (lambda: f.smoothed_topk_sum(scores, 1, epsilon=0.5, seed=1, step=torch.tensor(1.5)), "^step: expected a tensor"),
            (lambda: f.smoothed_topk_sum(scores, 1, epsilon=0.5, seed=1, step=torch.tensor([1, 2])), "^step: expected a tensor"),
            (lambda: f.smoothed_topk_sum(scores, 1, epsilon=0.5, seed=1, generator=torch.Generator()), "^seed and generator: "),
            (lambda: f.smoothed_topk_sum(scores, 1, epsilon=0.5, seed=1, noise=NOISE), "^noise and seed: "),
            (lambda: f.smoothed_kth_largest(scores, 1, epsilon=0.5, generator=torch.Generator(), noise=NOISE), "^noise and generator: "),
            (lambda: f.smoothed_topk_sum(scores, 1, epsilon=0.5, seed=-1), "^seed: .*-1"),
            (lambda: f.smoothed_topk_sum(scores, 1, epsilon=0.5, seed=2**63), "^seed: .*9223372036854775808"),
            (lambda: f.sparse_top_projection(scores, 7), "^k: .*0 to 6"),
            (lambda: f.sparse_top_projection(scores, -1), "^k: .*0 to 6"),
            (lambda: f.sparse_top_projection(scores, KS[:3]), "^k: "),
            (lambda: f.sparse_top_jacobian(scores[0], 1), "^scores: "),
            (lambda: f.elementary_symmetric(scores, 7), "^degree: expected 0 to 6, got 7"),
            (lambda: f.log_elementary_symmetric(scores, -1), "^degree: "),
            (lambda: f.elementary_symmetric(scores.long(), 1), "^values: expected float32"),
            (lambda: f.log_elementary_symmetric(torch.tensor(1.0), 0), "^log_values: "),
            (lambda: f.average_k_threshold(scores, 0), "^k: "),
            (lambda: f.average_k_threshold(scores, NAN), "^k: "),
            (lambda: f.average_k_threshold(scores, INF), "^k: "),
            (lambda: f.average_k_threshold(scores * NAN, 1), "^values: expected finite"),
            (lambda: f.average_k_threshold(scores * INF, 1), "^values: expected finite"),
            (lambda: f.average_k_threshold(scores[:0], 1), "^values"),
        ]
        for call, message in wrong:
            with self.subTest(message=message), self.assertRaisesRegex(ValueError, message):
                call()

    def test_wrong_types(self):
        f, scores = functional, random_scores()
        wrong = [
            (lambda: f.smoothed_kth_largest(scores, 2.5, epsilon=0.5), "^k: expected an integer"),
            (lambda: f.exact_smoothed_kth_largest(scores, 2.5, epsilon=0.5), "^k: expected an integer"),
            (lambda: f.smoothed_topk_sum(scores, 1, epsilon=0.5, seed=1.5), "^seed: .*1.5"),
            (lambda: f.smoothed_topk_sum(scores, 1, epsilon=0.5, seed=1, step=1.5), "^step: .*1.5"),
            (lambda: f.smoothed_topk_sum(scores, 1, epsilon=0.5, num_draws=1.5), "^num_draws: .*1.5"),
            (lambda: f.exact_smoothed_kth_largest(scores, 1, epsilon=0.5, nodes=4.5), "^nodes: .*4.5"),
            (lambda: f.elementary_symmetric(scores, 1.5), "^degree: .*1.5"),
            (lambda: f.sparse_top_projection(scores, KS.float()), "^k: expected integers"),
            (lambda: f.sparse_top_projection(scores, 2.5), "^k: expected an integer"),
            (lambda: f.smoothed_topk_sum({0: 1.0}, 1, epsilon=0.5), "^scores: expected a tensor, an array or a list of numbers, got dict"),
        ]
        for call, message in wrong:
            with self.subTest(message=message), self.assertRaisesRegex(TypeError, message):
                call()


if __name__ == "__main__":
    main()
