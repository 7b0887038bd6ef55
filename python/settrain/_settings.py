"""Modules whose settings are fields that can be read and set, and are checked each time."""

import dataclasses
import numbers
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Union, get_args, get_origin

from torch import Tensor, nn
from typing_extensions import dataclass_transform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = Sequence[int] | Tensor | NDArray[Any]
    Reals = Sequence[float] | Tensor | NDArray[Any]
else:
    Integers = Sequence[int] | Tensor
    Reals = Sequence[float] | Tensor


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(dataclasses.field,))
class Settable(nn.Module):
    """A module whose annotated class attributes are its settings, the keywords of its constructor as in a dataclass.

    Setting one checks it as the constructor does, and changes nothing where it is wrong.
    """

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclasses.dataclass(cls, kw_only=True, eq=False, repr=False)

    def __new__(cls, *_: object, **__: object) -> "Settable":
        module = super().__new__(cls)
        nn.Module.__init__(module)  # the dataclass' own constructor does not call it
        return module

    def __post_init__(self) -> None:
        self._take(self.settings())
        object.__setattr__(self, "_is_made", True)

    if not TYPE_CHECKING:  # so that mypy finds names that are no settings

        def __setattr__(self, name: str, value: Any) -> None:
            is_made = "_is_made" in self.__dict__
            if is_made and name in self.settings():
                self._take(self.settings() | {name: value})
                return
            if is_made and not (name.startswith("_") or hasattr(self, name) or isinstance(value, (Tensor, nn.Module))):
                raise AttributeError(f"{type(self).__name__} has no setting {name!r}; it has {', '.join(self.settings())}")
            super().__setattr__(name, value)

    def settings(self) -> dict[str, Any]:
        """The settings with their values."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def _take(self, values: dict[str, Any]) -> None:
        """Checks all values and keeps them, or raises ValueError or TypeError."""
        checked = {name: self._checked(name, value) for name, value in values.items()}
        self._accept(checked)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def _checked(self, name: str, value: Any) -> Any:
        """The value of one setting in the type that its annotation says."""
        return scalar(name, value, self.__dataclass_fields__[name].type)

    def _accept(self, values: dict[str, Any]) -> None:
        """Called with all checked values, before they are kept. Raises where they do not go together."""

    def extra_repr(self) -> str:
        return ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)


def scalar(name: str, value: Any, wanted: Any) -> bool | int | float | str:
    """`value` as the annotation `wanted` has it: bool, int, float, words (Literal), or a float or words."""
    kinds = get_args(wanted) if get_origin(wanted) is Union or isinstance(wanted, type(int | str)) else (wanted,)
    words = [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
    of_types = [{bool: "a bool", int: "an integer", float: "a number"}[kind] for kind in kinds if isinstance(kind, type)]
    shown = " or ".join([*(repr(word) for word in words), *of_types])
    if isinstance(value, str) and words:
        if value in words:
            return value
        raise ValueError(f"{name}: expected {shown}, got {value!r}")
    if bool in kinds and isinstance(value, bool):
        return value
    if int in kinds and not isinstance(value, bool) and hasattr(value, "__index__"):
        return operator.index(value)
    if float in kinds and isinstance(value, numbers.Real) and not isinstance(value, bool):
        return float(value)
    raise TypeError(f"{name}: expected {shown}, got {value!r}")
