"""An attribute that is computed when it is first read, without a lock."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")
V = TypeVar("V")


class lazy(Generic[T, V]):  # noqa: N801 - a decorator
    """A read-only attribute whose method is called at the first access, in place of `functools.cached_property`.

    `cached_property` locks in Python 3.11, for all objects of a class, and takes twice as long. Here, threads that read
    the attribute at the same time may each call the method, which must be pure; later, all get one of the equal values.
    The class needs a `__dict__`.
    """

    def __init__(self, method: Callable[[T], V]) -> None:
        self._method = method
        self._name = method.__name__
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> Self: ...
    @overload
    def __get__(self, instance: T, owner: type[Any]) -> V: ...
    def __get__(self, instance: T | None, owner: type[Any]) -> Self | V:
        """Return the value, and store it in the object, where the next access finds it first."""
        if instance is None:
            return self
        value: V = instance.__dict__.setdefault(self._name, self._method(instance))
        return value
