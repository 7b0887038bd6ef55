"""Building blocks of the losses, as differentiable functions of tensors: the top-K functions of Garcin et al. (ICML 2022; thesis, chapter 4)
and their smoothed versions, the projection on the top-K simplex (thesis, chapter 6), the elementary symmetric polynomials of Berrada et al.
(ICLR 2018), and the threshold of average-K classification (thesis, algorithm 1). docs/functional.md has a picture of each.

`scores` are [batch, classes] float32 or float64, on the CPU or CUDA; half precision is computed in float32. Results lie on their device.
Gradients are first derivatives: a second one is a RuntimeError, but for sparse_top_projection(), which has it. torch.compile keeps one
graph; torch.func's transforms are not supported. Wrong values are ValueErrors.
"""

import operator
from typing import Any

import torch
from torch import Tensor

from settrain._ops import integer, number, ops, tensor
from settrain._ops import seed as checked_seed

__all__ = [
    "average_k_threshold",
    "elementary_symmetric",
    "exact_smoothed_kth_largest",
    "log_elementary_symmetric",
    "smoothed_kth_largest",
    "smoothed_topk_sum",
    "sparse_top_jacobian",
    "sparse_top_projection",
]


def smoothed_topk_sum(
    scores: Tensor,
    k: int,
    *,
    epsilon: float,
    num_draws: int = 10,
    seed: int | None = None,
    step: int | Tensor | None = None,
    generator: torch.Generator | None = None,
    noise: Tensor | None = None,
) -> Tensor:
    """The mean over `num_draws` draws z of normal noise of the sum of the k largest of scores + epsilon z (thesis eq. 4.6, 4.11; ICML 2022,
    eq. 6, 11): [batch], dtype of the scores.

    k: 1 to classes. epsilon: at least 0, in units of the scores; 0 is the sum itself, whatever the noise.

    The noise is a function of (seed, step, row, class, draw), to the last bit the same on every device: with `seed` (and `step`, 0 by default, an
    integer from 0 to 2^32 - 1 or a tensor [] int64 of one) a call can be repeated, and NoisedTopK(seed=seed) draws the same numbers at
    that step. A seed is 0 to 2^63 - 1. Without a seed the call takes its noise from `generator`, or from torch's own. noise: [batch, any
    number, classes] standard normals in place of drawn ones; num_draws is their number then, and neither a seed nor a generator may be given.

    Gradient: the share of the draws in which a class is among the k largest (eq. 4.7), which sums to k; for the same noise it is the
    derivative wherever no two perturbed scores tie. Among equal ones the lower class comes first. A row with a NaN has the value NaN and the
    gradient 0. It takes memory for [batch, num_draws, classes] numbers; the noised losses take none.
    """
    return _sampled(scores, k, epsilon, num_draws, seed, step, generator, noise, sum=True)


def smoothed_kth_largest(
    scores: Tensor,
    k: int,
    *,
    epsilon: float,
    num_draws: int = 10,
    seed: int | None = None,
    step: int | Tensor | None = None,
    generator: torch.Generator | None = None,
    noise: Tensor | None = None,
) -> Tensor:
    """The mean over draws z of normal noise of the k-th largest of scores + epsilon z (thesis, definition 4.3.4 and eq. 4.10; ICML 2022,
    definition 3.4 and eq. 10): [batch], dtype of the scores. The noised top-K losses compare the label's score with that of k = K + 1.

    Arguments, ties, NaN and noise as of smoothed_topk_sum(); with the same noise it is the sum for k less the sum for k - 1. Gradient: the
    share of the draws in which a class is the k-th largest, which sums to 1.
    """
    return _sampled(scores, k, epsilon, num_draws, seed, step, generator, noise, sum=False)


def exact_smoothed_kth_largest(scores: Tensor, k: int, *, epsilon: float, nodes: int = 48) -> Tensor:
    """E[k-th largest of scores + epsilon z], z standard normal, as an integral and without draws (thesis, definition 4.3.4; ICML 2022,
    definition 3.4): [batch], dtype of the scores. smoothed_kth_largest() estimates it.

    k: 1 to classes. epsilon: at least 0, in units of the scores; 0 is the k-th largest itself. nodes: points of a Gauss-Legendre rule, 4 to
    512; 32 are right to 1e-8 epsilon, 64 to 1e-12. Computed in float64.

    Gradient: the probability that a class is the k-th largest; it sums to 1. With epsilon above 0 there are no ties. An infinite score is
    the largest or smallest whatever the noise. A row with a NaN is NaN. On CUDA there is a kernel for k up to 33; larger ones go through
    PyTorch's operations.
    """
    values: Tensor = ops.exact_topk(_floats(scores), integer("k", k), number("epsilon", epsilon), integer("nodes", nodes), _wants_gradient(scores))[0]
    return values


def sparse_top_projection(scores: Tensor, k: int | Tensor) -> Tensor:
    """The nearest point q of the top-k simplex {0 <= q <= 1, sum q = k} (thesis eq. 6.13 to 6.15): [batch, classes], q_j = clip(s_j -
    lambda, 0, 1). With k = 1 it is sparsemax. Adding a number to all scores changes nothing. A class whose score is -infinity is masked: it is at 0
    where k of the others can be at 1; where fewer than k are not masked, these are at 1 and q sums to their number.

    k: 0 to classes, the same for all rows or [batch] integers. Computed in float64 from sorted breakpoints, without iterations.

    Gradient: the product with sparse_top_jacobian(); at kinks, where a class is about to leave 0 or 1, one of the one-sided limits. Ties
    get equal shares. A row with a NaN or a score of +infinity is NaN, its gradient too.
    """
    scores = _floats(scores)
    projection: Tensor = ops.sparse_top_projection(scores, _ks(k, scores))[0]
    return projection


def sparse_top_jacobian(scores: Tensor, k: int | Tensor) -> Tensor:
    """The Jacobian of sparse_top_projection() at `scores` (thesis eq. 6.18, 6.21): [batch, classes, classes] Diag(m) - m m^T / |M|, m the
    indicator of the classes M strictly between 0 and 1; zeros where there are none. It has no gradient of its own.

    Its products with vectors need no such matrix: autograd computes m (v - mean of v over M). Kinks and NaN as there.
    """
    scores = _floats(scores)
    jacobian: Tensor = ops.sparse_top_jacobian(scores.detach(), _ks(k, scores))
    return jacobian


def elementary_symmetric(values: Tensor, degree: int) -> Tensor:
    """The elementary symmetric polynomials of degrees 0 to `degree`: [..., classes] to [..., degree + 1], where number i is the sum over all
    sets of i classes of the product of their values (ICLR 2018, section 4.1). Polynomials 1 + values_j X are multiplied in pairs (algorithm 1).

    degree: 0 to classes. values: float32 or float64, computed in float64. Sums of positive numbers keep their digits, values of both signs may
    cancel; what is too large for the dtype becomes infinite, for which there is log_elementary_symmetric().

    Gradient: by value j it is the polynomial of one degree less of the other values, from products of positive terms, not by the division
    of algorithm 2, which is unstable. Polynomials have no ties. A NaN makes all but degree 0 NaN.
    """
    return _symmetric(values, degree, in_logarithms=False)


def log_elementary_symmetric(log_values: Tensor, degree: int) -> Tensor:
    """log(elementary_symmetric(exp(log_values), degree)) without the detour: [..., classes] to [..., degree + 1]. Nothing overflows, and
    nothing cancels.

    log_values: below infinity. -infinity, the logarithm of 0, is one whose gradient is 0; where fewer classes are left than a degree, the
    result is -infinity, without a gradient. Gradient: the probability that a class is in a set of i classes, drawn in proportion to its
    product; it sums to i. NaN as in elementary_symmetric().
    """
    return _symmetric(log_values, degree, in_logarithms=True)


def average_k_threshold(values: Tensor, k: float, *, strict: bool = False) -> Tensor:
    """The threshold with which sets of `values` [samples, classes], such as probabilities, hold k classes on average (thesis, algorithm 1):
    [] float64, halfway between the values numbered k * samples and one more in descending order; -infinity where all are in, infinity where none
    is.

    k: finite and above 0, need not be whole. Ties: values that equal the threshold are in the set, so that sets may be larger; with `strict`
    they are not, so that sets hold at most k on average (eq. 3.5). settrain.metrics.returned_classes() makes the sets. A NaN or an infinity
    is a ValueError.

    It has no gradient: the threshold is found by counting. On CUDA it waits for the device.
    """
    threshold: Tensor = ops.average_k_threshold(_floats(values, "values").detach(), number("k", k), strict)
    return threshold


def _floats(scores: Tensor, name: str = "scores") -> Tensor:
    scores = tensor(name, scores)
    return scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores


def _wants_gradient(scores: Tensor) -> bool:
    return torch.is_grad_enabled() and isinstance(scores, Tensor) and scores.requires_grad


def _ks(k: int | Tensor, scores: Tensor) -> Tensor:
    """[batch] int64 on the scores' device."""
    if isinstance(k, Tensor) and k.dim() > 0:
        if k.is_floating_point():
            raise TypeError(f"k: expected integers, got {k.dtype}")
        return k.to(scores.device, torch.int64)
    try:
        size = operator.index(k)
    except TypeError:
        raise TypeError(f"k: expected an integer or [batch] integers, got {k!r}") from None
    if scores.dim() == 2 and not 0 <= size <= scores.shape[1]:  # the operator would have to wait for a GPU to see it
        raise ValueError(f"k: expected 0 to {scores.shape[1]}, got {size}")
    return torch.full(scores.shape[:1], size, dtype=torch.int64, device=scores.device)


def _sampled(
    scores: Tensor,
    k: int,
    epsilon: float,
    num_draws: int,
    seed: int | None,
    step: int | Tensor | None,
    generator: torch.Generator | None,
    noise: Tensor | None,
    *,
    sum: bool,
) -> Tensor:
    given = [name for name, value in {"noise": noise, "seed": seed, "generator": generator}.items() if value is not None]
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)}: expected one of them, got {len(given)}")
    if step is not None and seed is None:
        raise ValueError("step: without an effect, since there is no seed")
    if seed is None and noise is None:
        step = torch.randint(2**32, (), generator=generator, device=None if generator is None else generator.device)
    elif not isinstance(step, Tensor):
        step = torch.tensor(0 if step is None else integer("step", step))
    elif step.dtype != torch.int64 or step.dim() > 0:
        raise ValueError(f"step: expected a tensor [] int64, got {list(step.shape)} {step.dtype}")
    values: Tensor = ops.sampled_topk(
        _floats(scores),
        None if noise is None else tensor("noise", noise),
        step,
        0 if seed is None else checked_seed(seed),
        integer("k", k),
        number("epsilon", epsilon),
        integer("num_draws", num_draws),
        sum,
        _wants_gradient(scores),
    )[0]
    return values


def _symmetric(values: Tensor, degree: int, *, in_logarithms: bool) -> Tensor:
    sums: Tensor = ops.elementary_symmetric(_floats(values, "values"), integer("degree", degree), in_logarithms)
    return sums


def _check_first_derivative() -> None:
    if torch.is_grad_enabled():
        raise RuntimeError("the gradient of this function has no gradient of its own (create_graph)")


def _save_row_gradient(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    gradient = output[1]
    ctx.mark_non_differentiable(gradient)
    ctx.save_for_backward(gradient)
    ctx.num_inputs = len(inputs)


def _row_backward(ctx: Any, outer: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    _check_first_derivative()
    (gradient,) = ctx.saved_tensors
    return gradient * outer.unsqueeze(1), *[None] * (ctx.num_inputs - 1)


def _save_between(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(output[1])


def _projection_backward(ctx: Any, outer: Tensor, _: Tensor) -> tuple[Tensor, None]:
    (m,) = ctx.saved_tensors
    mean = (m * outer).sum(1, keepdim=True) / m.sum(1, keepdim=True).clamp_min(1)
    return m * (outer - mean), None


def _save_polynomials(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    values, ctx.degree, ctx.in_logarithms = inputs
    ctx.save_for_backward(values)


def _polynomials_backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None, None]:
    _check_first_derivative()
    (values,) = ctx.saved_tensors
    return ops.elementary_symmetric_gradient(outer, values, ctx.degree, ctx.in_logarithms), None, None


torch.library.register_autograd("settrain::sampled_topk", _row_backward, setup_context=_save_row_gradient)
torch.library.register_autograd("settrain::exact_topk", _row_backward, setup_context=_save_row_gradient)
torch.library.register_autograd("settrain::sparse_top_projection", _projection_backward, setup_context=_save_between)
torch.library.register_autograd("settrain::elementary_symmetric", _polynomials_backward, setup_context=_save_polynomials)
