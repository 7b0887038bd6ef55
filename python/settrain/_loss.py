"""The common parts of the losses: settings, the call, and noise."""

from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor

from settrain._ops import counts, ops, tensor
from settrain._ops import seed as checked_seed
from settrain._settings import Integers, Reals, Settable

Reduction = Literal["mean", "sum", "none"]

SHARED = ("reduction", "ignore_index", "class_weights", "class_counts", "seed", "generator")  # which are no keys of a loss' config


class Loss(Settable):
    """Base of the losses: a name in settrain's registry, and settings, which are its keys.

    reduction: "mean" is over the samples that are not ignored, NaN where there are none; "sum"; "none" is [batch], 0 for an ignored
    sample. ignore_index: a label whose sample takes no part.
    """

    name: ClassVar[str]

    reduction: Reduction = "mean"
    ignore_index: int = field(default=-100, repr=False)

    if TYPE_CHECKING:

        def __call__(self, *tensors: Tensor, **others: Tensor) -> Tensor: ...

    def forward(self, scores: Tensor, labels: Tensor) -> Tensor:
        """The loss [], or [batch] with reduction "none", float64 where `scores` are and else float32. The class says what the arguments are."""
        return self._loss(scores, labels)

    def _loss(
        self,
        scores: Tensor,
        labels: Tensor,
        *,
        scores_multi: Tensor | None = None,
        estimates: Tensor | None = None,
        noise: Tensor | None = None,
        step: Tensor | None = None,
        seed: int = 0,
    ) -> Tensor:
        given = {"scores": scores, "labels": labels}
        given |= {name: value for name, value in (("scores_multi", scores_multi), ("estimates", estimates), ("noise", noise)) if value is not None}
        for name, value in given.items():
            if not isinstance(value, Tensor):
                raise TypeError(f"{name}: expected a tensor, got {type(value).__name__}")
        loss: Tensor = ops.loss(
            scores, scores_multi, estimates, labels, noise, step, seed, self._text, self.ignore_index, self.reduction
        )
        return loss

    def _keys(self, values: dict[str, Any]) -> dict[str, Any]:
        """The settings among `values` that are keys of the loss' config."""
        return {name: value for name, value in values.items() if name not in SHARED}

    def _accept(self, values: dict[str, Any]) -> None:
        lines = [f"loss.name={self.name}", *(f"loss.{_key(name)}={_yaml(value)}" for name, value in self._keys(values).items())]
        lines += [f"{name}={','.join(map(repr, values[name]))}" for name in ("class_counts", "class_weights") if values.get(name) is not None]
        text = "\n".join(lines)
        ops.check_loss(text)
        object.__setattr__(self, "_text", text)


class WeightedLoss(Loss):
    """A loss whose samples may be weighted by their labels.

    class_weights: [classes] numbers that multiply the losses of samples with these labels. The mean divides by the number of samples.
    """

    class_weights: Reals | None = field(default=None, repr=False)

    def _checked(self, name: str, value: Any) -> Any:
        if name != "class_weights":
            return super()._checked(name, value)
        return None if value is None else tuple(_weights(value))  # a change in place would have no effect


class CountingLoss(WeightedLoss):
    """A loss that knows how frequent the classes are. class_counts: [classes] training images."""

    class_counts: Integers = field(kw_only=False, repr=False)

    def _checked(self, name: str, value: Any) -> Any:
        if name != "class_counts":
            return super()._checked(name, value)
        images = counts(name, value)
        if not any(images):
            raise ValueError("class_counts: expected some images, got none of any class")
        return tuple(images)


class Noised(Loss):
    """A loss with noise, which is a function of (seed, step, row, class, draw): counter-based, so that the CPU and CUDA draw the
    same numbers and a step can be repeated alone.

    seed: 0 to 2^63 - 1; None draws one, from `generator` where there is one, else from torch's, so that torch.manual_seed() decides
    it. `step` is a buffer that grows by 1 with every call in training mode. The state_dict has both, as `noise_seed` and `step`, [] int64:
    training that goes on from one draws what it would have drawn. With a `generator` the step of every call is drawn from it instead.
    Processes that train one model need different seeds.
    """

    seed: int | None = field(default=None, repr=False)
    generator: torch.Generator | None = field(default=None, repr=False)

    step: ClassVar[Tensor]
    noise_seed: ClassVar[Tensor]

    def __post_init__(self) -> None:
        self.register_buffer("noise_seed", torch.zeros((), dtype=torch.int64))
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))
        super().__post_init__()

    def forward(self, scores: Tensor, labels: Tensor, noise: Tensor | None = None) -> Tensor:
        """`noise`, [batch, num_draws, classes] standard normals unless the loss says otherwise, takes the place of drawn ones."""
        step = self.step
        if self.generator is not None:
            step = torch.randint(2**32, (), generator=self.generator, device=self.generator.device)
        value = self._loss(scores, labels, noise=noise, step=step, seed=self.seed or 0)
        if self.training and self.generator is None:
            self.step.add_(1)
        return value

    def _checked(self, name: str, value: Any) -> Any:
        if name == "seed":
            return None if value is None else checked_seed(value)
        if name != "generator":
            return super()._checked(name, value)
        if value is not None and not isinstance(value, torch.Generator):
            raise TypeError(f"generator: expected a torch.Generator, got {value!r}")
        return value

    def _draws(self, values: dict[str, Any]) -> bool:
        """Whether the loss of these settings draws noise."""
        return True

    def _accept(self, values: dict[str, Any]) -> None:
        super()._accept(values)
        if values["seed"] is None and self._draws(values):
            generator = values["generator"]
            device = "cpu" if generator is None else generator.device
            values["seed"] = int(torch.randint(2**62, (), generator=generator, device=device))
        self.noise_seed.fill_(values["seed"] or 0)

    def _load_from_state_dict(self, *args: Any) -> None:
        super()._load_from_state_dict(*args)
        if self._draws(self.settings()):
            object.__setattr__(self, "seed", int(self.noise_seed))


def _weights(class_weights: object) -> list[float]:
    weights = tensor("class_weights", class_weights, torch.float64)
    if weights.dim() != 1:
        raise ValueError(f"class_weights: expected [classes], one number a class, got the shape {list(weights.shape)}")
    if not (weights.isfinite().all() and (weights >= 0).all() and (weights > 0).any()):
        raise ValueError("class_weights: expected finite numbers of at least 0, some above, got others")
    numbers: list[float] = weights.tolist()
    return numbers


def _key(name: str) -> str:
    """The config's key for a setting: lambda for lambda_, smoothing.epsilon for smoothing_epsilon."""
    return name.rstrip("_").replace("smoothing_", "smoothing.")


def _yaml(value: bool | int | float | str) -> str:
    """A value as settrain's configs have it, every bit of a float included."""
    return str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, float) else str(value)
