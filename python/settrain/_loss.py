"""What the losses have in common: their settings, their sum over a batch, and noise."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from settrain._ops import counts, ops, tensor
from settrain._ops import seed as checked_seed

Integers = Sequence[int] | Tensor
Reals = Sequence[float] | Tensor


class Loss(nn.Module):
    """Base of the losses: a name in settrain's registry, and its keys."""

    name: str

    def __init__(
        self,
        keys: dict[str, object],
        *,
        reduction: str = "mean",
        class_weights: Reals | None = None,
        class_counts: Integers | None = None,
    ) -> None:
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f"reduction: expected 'mean', 'sum' or 'none', got {reduction!r}")
        self.reduction = reduction
        weights = None if class_weights is None else _weights(class_weights)
        if weights is not None:
            keys = keys | {"class_weights": "list", "class_weight_list": weights}
            class_counts = [1] * len(weights) if class_counts is None else class_counts  # the operator wants some, and reads none
        self._num_weights = None if weights is None else len(weights)
        self._keys = keys
        self._class_counts = counts("class_counts", class_counts)
        if self._class_counts and not any(self._class_counts):
            raise ValueError("class_counts: expected some images, got none of any class")
        self._settings = "\n".join([f"loss.name={self.name}", *(f"loss.{key}={_yaml(value)}" for key, value in keys.items())])
        ops.check_loss(self._settings)

    def forward(self, scores: Tensor, labels: Tensor) -> Tensor:
        return self._loss(scores, labels)

    def _check_weights(self, scores: Tensor) -> None:
        """The operator would name the class counts, which may not have been given."""
        if self._num_weights is not None and scores.dim() == 2 and scores.shape[1] != self._num_weights:
            raise ValueError(f"class_weights: expected {scores.shape[1]}, one a class, got {self._num_weights}")

    def _loss(self, scores: Tensor, labels: Tensor, *, scores_multi: Tensor | None = None, estimates: Tensor | None = None) -> Tensor:
        self._check_weights(scores)
        return self._reduced(ops.loss(scores, scores_multi, estimates, labels, None, None, 0, self._settings, self._class_counts))

    def _reduced(self, per_sample: Tensor) -> Tensor:
        if self.reduction == "none":
            return per_sample
        return per_sample.mean() if self.reduction == "mean" else per_sample.sum()

    def extra_repr(self) -> str:
        shown = [f"{key}={value!r}" for key, value in self._keys.items() if key not in ("class_weights", "class_weight_list")]
        return ", ".join([*shown, f"reduction={self.reduction!r}"])


def _weights(class_weights: Reals) -> list[float]:
    """Checked here, since the operator knows them by the name of a config's key."""
    try:
        weights = tensor(class_weights, torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"class_weights: expected numbers, got {class_weights!r}") from None
    if weights.dim() != 1:
        raise ValueError(f"class_weights: expected [classes], one number a class, got the shape {list(weights.shape)}")
    if not (weights.isfinite().all() and (weights >= 0).all() and (weights > 0).any()):
        raise ValueError(f"class_weights: expected finite numbers of at least 0, some above, got {weights.tolist()}")
    return weights.tolist()


def _yaml(value: object) -> str:
    """A value as settrain's configs have it, every bit of a float included."""
    return str(value).lower() if isinstance(value, bool) else float.__repr__(value) if isinstance(value, float) else str(value)


class NoisedLoss(Loss):
    """A loss with noise, which is a function of (seed, step, row, class, draw): counter-based, so that the CPU and CUDA draw the
    same numbers and a step can be repeated alone.

    `step` is a buffer that grows by 1 with every call in training mode; `seed` is drawn from torch's generator where none is given, so
    that torch.manual_seed() decides it. Both are in the state_dict: training that goes on from one draws what it would have drawn.
    With a `generator` the step of every call is drawn from it instead. Processes that train one model need different seeds.
    """

    def __init__(self, keys: dict[str, object], *, seed: int | None = None, generator: torch.Generator | None = None, **others) -> None:
        super().__init__(keys, **others)
        self.seed = int(torch.randint(2**62, ()).item()) if seed is None else checked_seed(seed)
        self.generator = generator
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))

    def forward(self, scores: Tensor, labels: Tensor, noise: Tensor | None = None) -> Tensor:
        """`noise`, [batch, num_draws, classes] standard normals unless the loss says otherwise, takes the place of drawn ones."""
        self._check_weights(scores)
        step = self.step
        if self.generator is not None:
            step = torch.randint(2**31, (), generator=self.generator, device=self.generator.device)
        per_sample = ops.loss(scores, None, None, labels, noise, step, self.seed, self._settings, self._class_counts)
        if self.training and self.generator is None:
            self.step.add_(1)
        return self._reduced(per_sample)

    def get_extra_state(self) -> dict[str, int]:
        return {"seed": self.seed}

    def set_extra_state(self, state: dict[str, int]) -> None:
        self.seed = int(state["seed"])
