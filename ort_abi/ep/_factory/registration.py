"""Which provider class a host gets under which registration name, and registering in a host."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Protocol, cast

import ort_abi._native
from ort_abi._locks import registration_lock
from ort_abi.ep._ep.provider import ExecutionProvider
from ort_abi.ep._factory.library import path_of
from ort_abi.ep._factory.misspelt import warn_of_misspelt_names

__all__ = ["find", "library_path", "prepare", "register_with", "unregister_from"]


class Host(Protocol):
    """What a Python host offers: the module `onnxruntime` (1.24 or later), or `ort_abi`."""

    def register_execution_provider_library(self, registration_name: str, library_path: str, /) -> Any:
        """Registers a library."""

    def unregister_execution_provider_library(self, registration_name: str, /) -> Any:
        """Unregisters what was registered under a name."""


_classes: dict[str, type[ExecutionProvider]] = {}


def library_path(cls: type[ExecutionProvider] | None = None) -> str:
    """The plugin library of a provider class: a host of this process can register it under any name.

    What packages of providers give out in `get_library_path()`. It is the same path each time, good in this
    process and its forked children, and *keeps alive* the class. Without a class: the library of those that
    were `prepare`d, each under the name that it has there. Raises what `prepare` raises, and OSError.
    """
    if cls is None:
        return str(ort_abi._native.__file__)
    _check(cls)
    return path_of(cls)


def prepare(cls: type[ExecutionProvider], registration_name: str | None = None) -> str:
    """Makes a class available under a registration name, by default the provider's own, and returns the name.

    A host that then registers `library_path()` under that name gets the class; until then another `prepare`
    can take the name. Warns of names that look misspelt. Raises TypeError for a class that is no provider,
    ValueError for one without a name.
    """
    _check(cls)
    name = registration_name or cls.name
    with registration_lock:
        _classes[name] = cls
    return name


def _check(cls: type[ExecutionProvider]) -> None:
    if not (isinstance(cls, type) and issubclass(cls, ExecutionProvider)):
        raise TypeError(f"not a class derived from ort_abi.ep.ExecutionProvider: {cls!r}")
    warn_of_misspelt_names(cls)
    for attribute in ("name", "vendor", "version"):
        text = getattr(cls, attribute)
        if not isinstance(text, str) or not text or "\0" in text:
            raise ValueError(f"{cls.__qualname__}.{attribute} must be a text that is not empty, not {text!r}")


def find(name: str) -> type[ExecutionProvider]:
    """The class of a registration name. Raises LookupError."""
    with registration_lock:
        if name not in _classes:
            raise LookupError(
                f"no Python provider was prepared under the name {name!r}: this path is that of all of them. "
                "Register ort_abi.ep.library_path(TheClass), or use ort_abi.ep.register_with()"
            )
        return _classes[name]


def register_with(
    host: ModuleType | Host, cls: type[ExecutionProvider], registration_name: str | None = None
) -> str:
    """Registers a provider class in a host of this process, such as the module `onnxruntime`.

    Returns the registration name, for `unregister_from`. Sessions then choose the provider by its devices
    (`get_ep_devices`). Raises what the host raises; nothing is registered then.
    """
    with registration_lock:
        name = prepare(cls, registration_name)
        try:
            cast(Host, host).register_execution_provider_library(name, library_path())
        finally:
            _classes.pop(name, None)
        return name


def unregister_from(host: ModuleType | Host, registration: str | type[ExecutionProvider]) -> None:
    """Undoes `register_with`; `registration` is what it returned, or the class if that used the default
    name."""
    name = registration if isinstance(registration, str) else registration.name
    with registration_lock:
        cast(Host, host).unregister_execution_provider_library(name)
