"""Arrays that authors get for the time of a call, and what became of them when it is over.

There is one rule for authors: inputs, and outputs to write into, are good during the call; copy what you
keep. It is looked after in one way for all doors. Whatever refers to an array's elements (a slice, a
memoryview, a DLPack capsule, an iterator) refers to one of the few objects that stand behind it, so their
reference counts tell, within nanoseconds. What is kept fails the run. What an array looks like (shape,
strides, dtype, flags) is compared too: a changed one is not used again.

So that what is kept does not read memory that is gone, arrays have memory of their own, which elements are
copied into and out of, where that costs little or is needed (`Trust`). Why so, and what cannot be seen:
docs/decisions/0013-lent-arrays.md.
"""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterable, Sequence
from pickle import PickleBuffer
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ort_abi._lib import CData, ffi, lib

__all__ = [
    "CAN_LEND",
    "HandedOut",
    "Lent",
    "Loan",
    "Trust",
    "array_loan",
    "kept",
    "kept_after_all",
    "refusal",
]

Array = NDArray[Any]

_buffer, _cast, _from_buffer = ffi.buffer, ffi.cast, ffi.from_buffer
_Elements, _Buffer = ffi.typeof("char*"), type(ffi.buffer(ffi.new("char[1]")))
_ndarray, _empty, _uint8 = np.ndarray, np.empty, np.dtype(np.uint8)
_begin: CData = lib.bridge_lend
_worst: CData = lib.bridge_worst_loan
_new, _Loan = ffi.new, ffi.typeof("BridgeLoan*")
KEPT: int = lib.BRIDGE_LOAN_KEPT
AS_IT_WAS: int = lib.BRIDGE_LOAN_AS_IT_WAS

_EVERYTHING = 2**63 - 1
_SMALL = 16 * 1024
"""Bytes whose copy costs less than what else a node does."""
_PAUSES = (0.0, 0.001, 0.01)


_Layout = tuple[CData, bool, tuple[int, ...]]


def _layout(*kinds: type) -> _Layout:
    """What C wants to know of objects of these types: where they have their lists of weak references (0:
    nowhere), whether the first is an array, and zeros for those that there are not."""
    weak = ffi.new("uintptr_t[]", [max(kind.__weakrefoffset__, 0) for kind in kinds])
    return weak, kinds[0] is _ndarray, (0,) * (lib.BRIDGE_LENT_OBJECTS - len(kinds))


_TUPLE = _layout(tuple)
_WRITABLE, _READ_ONLY = _layout(_ndarray, _ndarray), _layout(_ndarray, PickleBuffer, _ndarray)
_LENT_WRITABLE = _layout(_ndarray, _ndarray, _Buffer)
_LENT_READ_ONLY = _layout(_ndarray, PickleBuffer, _ndarray, _Buffer)


class Trust:
    """How the arrays of a node's next run are made.

    At first all have memory of their own: a kernel that keeps things shows it in its first run. Where nothing
    was kept, only small arrays have from then on, and large ones are the host's memory. A kernel that kept
    something starts anew. One whose arrays outlived a call, but not for long (garbage with cycles, threads
    that come to their end), gets arrays that are new and its own each time; nobody looks after those.
    """

    __slots__ = ("_at_first", "_later", "limit", "looks")

    def __init__(self, by_address: bool = False) -> None:
        """`by_address`: all arrays are the host's memory, for a provider that captures graphs: those have
        addresses."""
        self._at_first, self._later = (0, 0) if by_address and CAN_LEND else (_EVERYTHING, _SMALL)
        self.limit = self._at_first
        """Arrays of at most so many bytes get memory of their own."""
        self.looks = CAN_LEND
        """False: arrays belong to whoever has them."""

    def suits(self, loan: Loan) -> bool:
        """True if the next run's array would be made in the same way."""
        return (loan.size <= self.limit) is (loan.memory is not None) or loan.size < 0

    def earn(self) -> None:
        """Nothing was kept."""
        if self.looks:
            self.limit = self._later

    def lose(self) -> None:
        """Something was."""
        if self.looks:
            self.limit = self._at_first

    def give_up(self) -> None:
        """Something seemed to be."""
        self.limit, self.looks = _EVERYTHING, False


class Loan:
    """An object that an author has during a call: an array, or the tuple of all inputs. *keeps alive* what C
    looks at."""

    __slots__ = ("_layout", "_objects", "c", "item", "memory", "name", "size")

    def __init__(
        self,
        objects: tuple[Any, ...],
        layout: _Layout,
        name: str,
        memory: CData | None = None,
        size: int = -1,
    ) -> None:
        self._objects = objects  # an array can be made to let go of what is behind it
        self._layout = layout
        self.item = objects[0]
        self.name = name
        self.memory = memory
        """Where an array's elements are, if in memory of its own."""
        self.size = size
        """Of an array, in bytes."""
        self.c = _new(_Loan)

    @classmethod
    def of_tuple(cls, item: tuple[Any, ...], name: str) -> Loan:
        """Of a tuple of things that are lent."""
        return cls((item,), _TUPLE, name)

    def begin(self) -> None:
        """From now on nobody but those who have the object at this moment may have it."""
        weak, is_array, none = self._layout
        _begin(self.c, weak, is_array, *map(id, self._objects), *none)

    def is_kept(self) -> bool:
        """True if somebody seems to have the object, or one that its elements depend on."""
        return worst_of([self.c]) == KEPT


def worst_of(loans: Any) -> int:
    """The worst that became of loans (their `c`s, as C's array or a sequence): `AS_IT_WAS` to `KEPT`."""
    return int(_worst(loans, len(loans)))


class HandedOut:
    """Memory that another library has, until it lets go of `token` (`dlpack.capsule`)."""

    __slots__ = ("_token", "name")

    class _Token:
        __slots__ = ("__weakref__",)

    def __init__(self, name: str) -> None:
        self.name = name
        self._token: weakref.ref[Any] | None = None

    def token(self) -> object:
        """What the library is to keep alive."""
        token = HandedOut._Token()
        self._token = weakref.ref(token)
        return token

    def is_kept(self) -> bool:
        """True if the library has it."""
        return self._token is not None and self._token() is not None


def array_loan(
    dtype: np.dtype[Any], shape: tuple[int, ...], size: int, address: int, *, writeable: bool, name: str = ""
) -> Loan:
    """An array of `size` bytes at `address`, for 0 in memory of its own. `begin` is still to be called.

    A read-only one stays so: NumPy makes no array writable whose base will not be written.
    """
    if address:
        base = _buffer(_cast(_Elements, address), size)
        root: Array = _ndarray((size,), _uint8, base)
        if writeable:
            objects: tuple[Any, ...] = (_ndarray(shape, dtype, root), root, base)
            return Loan(objects, _LENT_WRITABLE, name, None, size)
        root.setflags(write=False)
        lent: Any = PickleBuffer(root)  # type: ignore[arg-type]  # __buffer__ is of Python 3.12
        return Loan((_ndarray(shape, dtype, lent), lent, root, base), _LENT_READ_ONLY, name, None, size)
    root = _empty(size, _uint8)
    memory = _from_buffer(root)
    if writeable:
        return Loan((_ndarray(shape, dtype, root), root), _WRITABLE, name, memory, size)
    root.setflags(write=False)
    lent = PickleBuffer(root)  # type: ignore[arg-type]
    return Loan((_ndarray(shape, dtype, lent), lent, root), _READ_ONLY, name, memory, size)


Lent = Loan | HandedOut


def kept(loans: Iterable[Lent]) -> list[Lent]:
    """Those that somebody seems to have."""
    return [loan for loan in loans if loan.is_kept()]


def kept_after_all(loans: Sequence[Lent]) -> list[Lent]:
    """The same, of what is kept on purpose: not by garbage, or a thread that is about to end."""
    gc.collect()
    for pause in _PAUSES:
        if not (found := kept(loans)):
            break
        time.sleep(pause)
    return kept(loans) if found else []


def refusal(loans: Iterable[Lent]) -> RuntimeError:
    """The error for what was kept."""
    names = ", ".join(loan.name for loan in loans)
    return RuntimeError(
        f"{names} was kept after the call, or something that refers to it was (a view, a memoryview, an "
        "iterator): it is good during the call only, keep a copy instead"
    )


def _can_lend() -> bool:
    """True if C finds reference counts, lists of weak references and an array's fields where they are."""
    probe = _empty((2, 3), np.float32)[:, 1:]
    fields = ffi.new("intptr_t[]", lib.BRIDGE_LENT_FIELDS)
    count = lib.bridge_array_fields(id(probe), fields)
    address = probe.__array_interface__["data"][0]
    looks = [2, address, id(probe.base), id(probe.dtype), probe.flags.num, *probe.shape, *probe.strides]
    if ffi.unpack(fields, count) != looks:
        return False
    loan = Loan((probe, probe.base), _WRITABLE, "a probe")
    loan.begin()
    again = [probe]
    if not loan.is_kept():
        return False
    again.clear()
    if worst_of([loan.c]) != AS_IT_WAS:
        return False
    reference = weakref.ref(probe)
    return worst_of([loan.c]) not in (AS_IT_WAS, KEPT) and reference() is probe


CAN_LEND = _can_lend()
"""False on a Python whose reference counts C cannot read: then all that authors get is their own."""
