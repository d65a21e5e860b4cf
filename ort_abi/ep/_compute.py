"""The hot path: one run of one node.

The host's inputs arrive as one flat array of numbers (type, address, memory, shape; see bridge.h). They
become arrays over the host's memory, kept from run to run: if nothing has changed, the C side calls the
node's `again`, which uses the arrays of the last run, and no array is made.

Inputs are valid during the run only. Nobody can take back a NumPy array, so after each run reference counts
are compared with what they were: an array that somebody kept gets a private copy of its elements in its
place; a kept *view* of it (a slice, a reshape) cannot be saved and makes the run fail with an error that says
so. After a run with new arrays Python looks; after `again` the C side, which knows by then where the counts
are (`bridge_watch`). Arrays with weak references are not used again. See
docs/decisions/0006-views-of-host-memory.md.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any, NamedTuple
from weakref import getweakrefcount, ref

import numpy as np
from numpy.typing import NDArray

from ort_abi import dtypes
from ort_abi._lib import CData, ffi, lib
from ort_abi._tensor import array_at, fill_strings, read_strings
from ort_abi.ep import _objects
from ort_abi.ep._device import DeviceTensor, SyncStream, device_tensor
from ort_abi.ep._errors import failed_call, forget_frames, record

__all__ = ["KernelContext", "Node", "NodeInfo", "array_node", "context_node", "run_stream"]

Array = NDArray[Any]

_HEADER: int = lib.BRIDGE_INPUT_HEADER
_NOT_A_TENSOR = -1
_ADDRESS_MASK = 2**64 - 1
_from_buffer = ffi.from_buffer
_Buffer = ffi.buffer
_put = lib.bridge_put
_watch: CData = lib.bridge_watch
_find_output = lib.bridge_output
_KNOWN: int = lib.BRIDGE_OUTPUT_KNOWN
_RUN: int = lib.BRIDGE_RUN
_ALONE: int = lib.BRIDGE_RUN_ALONE
_LOOK: int = lib.BRIDGE_LOOK
_FAILED: int = lib.BRIDGE_FAILED
_DONE: int = lib.BRIDGE_DONE
_WATCHED: int = lib.BRIDGE_WATCHED
_ndarray = np.ndarray


_WEAK: int = np.ndarray.__weakrefoffset__  # where an array has its list of weak references


def _can_watch() -> bool:
    """True if C finds reference counts and lists of weak references where CPython has them."""
    probe = np.empty(1)
    before = lib.bridge_word(id(probe))
    more = [probe, probe]
    counts = lib.bridge_word(id(probe)) - before == len(more)
    if not counts or _WEAK <= 0 or lib.bridge_word(id(probe) + _WEAK):
        return False
    weak = ref(probe)
    return bool(lib.bridge_word(id(probe) + _WEAK)) and weak() is probe


_CAN_WATCH = _can_watch()


class Node(NamedTuple):
    """What C calls, under the node's id."""

    compute: Callable[[int, CData], int]
    """`bridge_py_compute`: what to do (`BridgeCompute`), and the `BridgeRun`."""
    again: Callable[[], int]
    """`bridge_py_again`: the run before ended as BRIDGE_WATCHED, and this one has its inputs."""
    fail: Callable[[BaseException], int]
    """Notes what escaped from `again`."""


class NodeInfo:
    """Names for messages, and the element types of the outputs (0: ask the host)."""

    __slots__ = ("input_names", "label", "order", "output_names", "output_types")

    def __init__(
        self,
        label: str,
        input_names: Sequence[str],
        output_names: Sequence[str],
        output_types: Sequence[int] | None = None,
        order: Sequence[int] | None = None,
    ) -> None:
        self.label = label
        self.input_names = list(input_names)
        self.output_names = list(output_names)
        self.output_types = list(output_types) if output_types is not None else [0] * len(self.output_names)
        self.order = list(order) if order is not None else None
        """Which input of the host is the callable's n-th argument; None: the same order."""


class _Views:
    """Arrays over the host's memory: `outer` is what users get, `roots` what only we and NumPy refer to.

    An array without a root owns its elements: nothing to watch. Tensors on a device have none either; they
    are closed after the run.
    """

    __slots__ = ("_indices", "cacheable", "expected", "num_arrays", "outer", "watched")

    def __init__(self, outer: list[Any], roots: list[Array | None], cacheable: bool = True) -> None:
        self.outer = tuple(outer)
        self.cacheable = cacheable
        self._indices = [index for index, root in enumerate(roots) if root is not None]
        if len(self._indices) == len(outer):
            self.watched: list[Any] = [*outer, *roots]
        else:
            self.watched = [of[index] for of in (outer, roots) for index in self._indices]
        self.num_arrays = len(self.watched)
        if self._indices:
            self.watched.append(self.outer)
        self.expected: list[int] = []

    def close(self) -> None:
        """Ends the tensors on devices."""
        for item in self.outer:
            if type(item) is DeviceTensor:
                item._close()

    def start(self) -> None:
        """Takes the reference counts that mean: nobody else has it. Called when no local variable has it.
        Later counts (taken the same way) that differ mean that somebody has an array or a view of one."""
        self.expected = [*map(getrefcount, self.watched)]

    def kept(self) -> bool:
        """True if somebody seems to have one of the arrays, a view of one, or the tuple of all."""
        return [*map(getrefcount, self.watched)] != self.expected

    def remembered(self) -> bool:
        """True if there are weak references, which would give arrays of a later run."""
        return any(map(getweakrefcount, self.watched))

    def revoke(self) -> list[int]:
        """Gives kept arrays their own memory; the indices of those that views were kept of."""
        gc.collect()  # a cycle is no intention to keep
        half = len(self._indices)
        counts = [*map(getrefcount, self.watched)]
        tuple_is_kept = counts[-1] > self.expected[-1]
        detached = [tuple_is_kept or counts[i] > self.expected[i] for i in range(half)]
        for index, yes in zip(self._indices, detached, strict=True):
            if yes:
                _detach(self.outer[index])
        counts = [*map(getrefcount, self.watched)]
        # a detached array does not refer to its root any more
        return [
            self._indices[i] for i in range(half) if counts[half + i] > self.expected[half + i] - detached[i]
        ]


def _detach(array: Any) -> None:
    """Gives an array a private copy of its elements, in place."""
    array.__setstate__(array.__reduce__()[2])


def _view(
    address: int, element_type: int, shape: tuple[int, ...], writeable: bool
) -> tuple[Array, Array | None]:
    """An array over the host's memory and its root; a private array has no root."""
    root = array_at(address, element_type, shape)
    if type(root.base) is not _Buffer:
        return root, None
    if not writeable:
        root.setflags(write=False)
    return root.view(), root


def _read_inputs(run: CData, info: NodeInfo) -> _Views:
    flat: list[int] = ffi.unpack(run.flat, run.flat_len) if run.flat_len else []
    outer: list[Any] = []
    roots: list[Array | None] = []
    cacheable = True
    position = 0
    for index in range(run.num_inputs):
        start = position + _HEADER
        element_type, address, elsewhere, rank = flat[position:start]
        position = start + rank
        shape = tuple(flat[start:position])
        array: Any = None
        root: Array | None = None
        if element_type == _NOT_A_TENSOR:
            raise TypeError(
                f"input {_named(info.input_names, index)} is no tensor: only tensors can be inputs"
            )
        if elsewhere:
            array, cacheable = _on_device(run, run.values[index], address, element_type, shape), False
        elif element_type == dtypes.STRING:
            array = read_strings(run.call.host.api, run.values[index], shape)
        elif element_type:
            array, root = _view(address, element_type, shape, writeable=False)
            cacheable &= not dtypes.is_packed(element_type)
        outer.append(array)
        roots.append(root)
    if info.order is not None:
        outer, roots = [outer[i] for i in info.order], [roots[i] for i in info.order]
    return _Views(outer, roots, cacheable)


def _on_device(
    run: CData, value: CData, address: int, element_type: int, shape: tuple[int, ...], writeable: bool = False
) -> DeviceTensor:
    ep_api = run.call.host.ep_api
    return device_tensor(ep_api, value, address & _ADDRESS_MASK, element_type, shape, writeable)


def _named(names: Sequence[str], index: int) -> str:
    name = names[index] if index < len(names) else ""
    return f"{index} ({name!r})" if name else str(index)


class _Output:
    """One output: the C side's description of what is written, kept while shape and type stay the same."""

    __slots__ = (
        "_dims",
        "c",
        "dtype",
        "element_type",
        "flat",
        "label",
        "packed",
        "shape",
        "wanted",
        "written",
    )

    def __init__(self, info: NodeInfo, index: int) -> None:
        self.c = ffi.new("BridgeOutput*", {"index": index})
        self.wanted = bool(info.output_names[index])
        self.label = f"output {_named(info.output_names, index)}"
        self.shape: tuple[int, ...] | None = None
        self.element_type = info.output_types[index] if index < len(info.output_types) else 0
        self.dtype = dtypes.from_onnx(self.element_type) if self.element_type else None
        self.packed = self.flat = False
        self.written: _Written | None = None
        self._dims: CData = None

    def _describe_shape(self, shape: tuple[int, ...]) -> None:
        self._dims = ffi.new("int64_t[]", shape)
        self.c.dims, self.c.rank, self.c.checked = self._dims, len(shape), 0
        if self.written is not None:  # not about this shape any more
            self.written.shape = None

    def describe(self, shape: tuple[int, ...], element_type: int) -> None:
        """Sets what `c` says."""
        self._describe_shape(shape)
        self.shape = shape
        self.element_type = element_type
        self.dtype = dtypes.from_onnx(element_type)
        self.packed = dtypes.is_packed(element_type)
        self.flat = not self.packed and element_type != dtypes.STRING
        self.c.dtype = element_type
        self.c.bytes = dtypes.bytes_for(element_type, math.prod(shape))

    def put(self, value: Any) -> None:
        """Copies an array into the host's output."""
        array = value if type(value) is _ndarray else self._as_array(value)
        if array.dtype is not self.dtype or array.shape != self.shape:
            self._adapt(array)
        if self.flat:
            try:
                data = _from_buffer(array)
            except (BufferError, TypeError, ValueError):  # not contiguous, or a dtype without a buffer format
                data = _from_buffer(self._bytes(array))
        elif self.element_type == dtypes.STRING:
            self._put_strings(array)
            return
        else:
            data = _from_buffer(self._bytes(array))
        if not _put(self.c, data):
            raise self.failure()

    def _as_array(self, value: Any) -> Array:
        if isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array__"):
            return np.asarray(value)
        raise TypeError(f"{self.label} must be a NumPy array, not {type(value).__name__}")

    def _adapt(self, array: Array) -> None:
        element_type = dtypes.to_onnx(array.dtype)
        if self.element_type and element_type != self.element_type:
            wanted, got = dtypes.name_of(self.element_type), dtypes.name_of(element_type)
            raise TypeError(f"{self.label} must have elements of {wanted}, not {got}")
        self.describe(array.shape, element_type)

    def _bytes(self, array: Array) -> Array:
        if self.packed:
            return dtypes.pack(array, self.element_type)
        array = np.ascontiguousarray(array, dtypes.from_onnx(self.element_type))
        return array.reshape(-1).view(np.uint8)

    def _put_strings(self, array: Array) -> None:
        value = lib.bridge_output_value(self.c)
        if value != ffi.NULL:
            fill_strings(self.c.run.call.host.api, value, array.reshape(-1).tolist())
        elif not self.c.absent:
            raise self.failure()

    def failure(self) -> Exception:
        """The exception for a bridge function that failed for this output."""
        error = failed_call(self.c.run.call)
        return type(error)(f"{self.label}: {error.message}")

    def view(self, shape: tuple[int, ...]) -> tuple[int, Any, Array | None]:
        """The address of the host's memory for the output, an array over it, and the array's root. Private
        memory for strings, packed types and an absent output; `put` writes it after the kernel. For memory of
        a device a `DeviceTensor`, without a root."""
        if not self.element_type or shape != self.shape:
            self.shape = None  # what c says is not complete
            self._describe_shape(shape)
            if lib.bridge_output_value(self.c) == ffi.NULL and not self.c.absent:
                raise self.failure()
            self.describe(shape, self.c.dtype or 1)
        if self.element_type == dtypes.STRING or (self.packed and not self.c.elsewhere):
            return 0, np.empty(shape, self.dtype), None
        if _find_output(self.c) == lib.BRIDGE_OUTPUT_FAILED:
            raise self.failure()
        address = 0 if self.c.absent else self.c.address
        if self.c.elsewhere and not self.c.absent:
            value = lib.bridge_output_value(self.c)
            device = _on_device(self.c.run, value, address, self.element_type, shape, writeable=True)
            return address, device, None
        if not address:
            return 0, np.empty(shape, self.dtype), None
        return address, *_view(address, self.element_type, shape, writeable=True)


def array_node(function: Callable[..., Any], info: NodeInfo, watching: bool = True) -> Node:
    """A node that calls `function(*inputs)` and copies what it returns: an array for one output, else a
    sequence."""
    outputs = [_Output(info, index) for index in range(len(info.output_names))]
    first: CData = outputs[0].c if outputs else ffi.NULL
    run: CData = ffi.NULL
    views: Any = None  # of the inputs of this run, and from BRIDGE_WATCHED on those of the next
    is_new = False  # the views are
    # An only output that comes as it came before takes a short way.
    shape: tuple[int, ...] | None = None
    dtype: np.dtype[Any] | None = None

    def again() -> int:
        nonlocal shape, dtype
        ok = _WATCHED
        result: Any = None
        data: Any = None
        try:
            result = function(*views.outer)
            if type(result) is _ndarray and result.dtype is dtype and result.shape == shape:
                try:
                    data = _from_buffer(result)
                except (BufferError, TypeError, ValueError):  # not contiguous
                    outputs[0].put(result)
                else:
                    if not _put(first, data):
                        raise outputs[0].failure()
            else:
                shape = None
                _put_all(outputs, result)
                if len(outputs) == 1 and outputs[0].flat:
                    shape, dtype = outputs[0].shape, outputs[0].dtype
        except BaseException as error:
            ok = fail(error)
        if is_new or not ok:
            data = result = None
            return end(_DONE if ok else _FAILED, watching)
        return ok

    def end(ok: int, watch: bool) -> int:
        nonlocal views, is_new
        is_new = False
        ok = _end(run, views, info, ok, watch, ())
        if ok != _WATCHED:
            views = None
        return ok

    def fail(error: BaseException) -> int:
        return _failed(run, error, info)

    def compute(what: int, now: CData) -> int:
        nonlocal run, views, is_new
        if what == _ALONE:  # nothing can be shared with the other thread
            return array_node(function, info, watching=False).compute(_RUN, now)
        if what == _LOOK:
            return end(_DONE, watch=False)
        run = _bound(run, now, outputs)
        views = None
        try:
            views = _read_inputs(now, info)
            views.start()
        except BaseException as error:
            return fail(error)
        is_new = True
        return again()

    return Node(compute, again, fail)


def _bound(before: CData, now: CData, outputs: Sequence[_Output]) -> CData:
    """`now`, which the outputs are then those of."""
    if before != now:
        for output in outputs:
            output.c.run = now
    return now


def _failed(run: CData, error: BaseException, info: NodeInfo) -> int:
    record(ffi.addressof(run, "call"), error)
    forget_frames(error)
    return _FAILED


def _end(run: CData, views: _Views, info: NodeInfo, ok: int, watch: bool, written: Sequence[_Views]) -> int:
    """After a run with new arrays, or one that failed: deals with inputs that somebody kept. The result is
    BRIDGE_WATCHED if C is to watch all arrays from now on."""
    if not views.cacheable:
        views.close()
    if views.kept():
        return _revoke(run, views, info, ok)
    if not (ok and watch and views.cacheable and _CAN_WATCH) or views.remembered():
        return ok
    groups = (views, *written)
    objects = [id(array) for group in groups for array in group.watched[: group.num_arrays]]
    arrays = len(objects)
    objects += [id(group.outer) for group in groups if group.num_arrays]
    return _WATCHED if _watch(run, objects, len(objects), arrays, _WEAK) else ok


def _put_all(outputs: list[_Output], result: Any) -> None:
    count = len(outputs)
    if count == 1 and not isinstance(result, (tuple, list)):
        result = (result,)
    if not isinstance(result, (tuple, list)):
        raise TypeError(f"{count} outputs must come as a tuple of arrays, not as {type(result).__name__}")
    if len(result) != count:
        raise TypeError(f"there must be {count} outputs, not {len(result)}")
    for output, value in zip(outputs, result, strict=True):
        if value is not None or output.wanted:
            output.put(value)


def _revoke(run: CData, views: _Views, info: NodeInfo, ok: int, output: int | None = None) -> int:
    """Deals with kept arrays. Returns 0 if memory of the host is still referred to (the reason is noted,
    unless the run has failed already), else `ok`."""
    lost = views.revoke()
    if not lost or not ok:
        return ok
    if output is not None:
        which = f"output {_named(info.output_names, output)}"
    else:
        which = "input " + ", ".join(
            _named(info.input_names, info.order[i] if info.order else i) for i in lost
        )
    error = RuntimeError(
        f"a view of {which} was kept after the run; its memory belongs to the host: keep a copy instead"
    )
    return record(ffi.addressof(run, "call"), error)


def run_stream(run: CData) -> SyncStream | None:
    """The provider's stream that a run's work belongs on."""
    number = lib.bridge_run_stream_id(run)
    found: SyncStream | None = _objects.get(number, "stream") if number else None
    return found


class _Written:
    """An output of the last run: an array over the host's memory, good for as long as that is the same."""

    __slots__ = ("array", "c", "others", "output", "shape", "views")

    def __init__(self, index: int, output: _Output, address: int, array: Array, root: Array | None) -> None:
        self.output = output
        self.c = output.c
        self.c.known = address
        self.shape = output.shape
        self.others = ~(1 << index)
        self.views = _Views([array], [root])
        self.array = array


class KernelContext:
    """What `Kernel.compute` gets: the inputs of this run and the way to its outputs. Valid during
    `compute`."""

    __slots__ = (
        "_is_new",
        "_outputs",
        "_private",
        "_run",
        "_tensors",
        "_unwritten",
        "_views",
        "_wanted",
        "inputs",
    )

    inputs: tuple[Any, ...]
    """Read-only arrays over the host's memory, None for an optional input that is missing; `DeviceTensor`s
    for inputs in memory of the provider's device."""

    def __init__(self, info: NodeInfo) -> None:
        self._outputs = [_Output(info, index) for index in range(len(info.output_names))]
        self._run: CData | None = None
        self._views: dict[int, _Written] = {}  # of the last run, by output
        self._is_new = False  # the inputs are, or something in `_views`
        self._private: dict[int, Array] = {}  # what is copied into the host's outputs after compute()
        self._tensors: list[DeviceTensor] = []  # outputs on a device
        self._wanted = sum(1 << index for index, output in enumerate(self._outputs) if output.wanted)
        self._unwritten = 0  # one bit an output
        self.inputs = ()

    @property
    def num_outputs(self) -> int:
        """Number of outputs, missing optional ones included."""
        return len(self._outputs)

    def wants_output(self, index: int) -> bool:
        """False for an optional output that the model does not use."""
        return self._outputs[index].wanted

    @property
    def stream(self) -> SyncStream | None:
        """The provider's stream that this run's work belongs on; None if there is none, or only another
        provider's: work is done when `compute` returns (`KernelContext_GetSyncStream`, API 28).

        Raises RuntimeError after `compute`.
        """
        if self._run is None:
            raise self._refusal(0)
        return run_stream(self._run)

    def output(self, index: int, shape: Sequence[int]) -> Any:
        """A writable array over the host's memory for an output, of the model's element type; write every
        element. A `DeviceTensor` for an output in memory of the provider's device.

        Raises RuntimeError after `compute`, `ort_abi.errors.OrtError` where the host refuses the shape.
        """
        if self._run is not None and (written := self._views.get(index)) is not None:
            if type(shape) is not tuple:
                shape = tuple(map(int, shape))
            if shape == written.shape and _find_output(written.c) == _KNOWN:
                self._unwritten &= written.others
                return written.array
        if self._run is None or not 0 <= index < len(self._outputs):
            raise self._refusal(index)
        return self._new_output(index, shape if type(shape) is tuple else tuple(map(int, shape)))

    def _new_output(self, index: int, shape: tuple[int, ...]) -> Any:
        output = self._outputs[index]
        address, array, root = output.view(shape)
        self._unwritten &= ~(1 << index)
        if type(array) is DeviceTensor:
            self._tensors.append(array)
            return array
        if not address:
            if not output.c.absent:
                self._private[index] = array
            return array
        self._is_new = True
        written = self._views[index] = output.written = _Written(index, output, address, array, root)
        del array, root
        written.views.start()
        return written.array

    def set_output(self, index: int, value: Any) -> None:
        """Copies an array into an output."""
        if self._run is None or not 0 <= index < len(self._outputs):
            raise self._refusal(index)
        self._outputs[index].put(value)
        self._unwritten &= ~(1 << index)
        self._private.pop(index, None)

    def _refusal(self, index: int) -> Exception:
        if self._run is None:
            return RuntimeError("a kernel's context is valid only during compute()")
        return IndexError(f"output {index} of a node with {len(self._outputs)} outputs")

    def _finish(self) -> None:
        """What is left to do after compute() has done well."""
        for index, array in self._private.items():
            self._outputs[index].put(array)
        if self._unwritten:
            index = self._unwritten.bit_length() - 1
            raise RuntimeError(f"{self._outputs[index].label} was not written")

    def _close_tensors(self) -> None:
        for tensor in self._tensors:
            tensor._close()
        self._tensors.clear()

    def _kept_outputs(self) -> list[tuple[int, _Written]]:
        """The outputs that somebody still has. They are not used again, nor those with weak references."""
        kept: list[tuple[int, _Written]] = []
        for index, written in [*self._views.items()]:
            if written.views.kept():
                kept.append((index, written))
            elif not written.views.remembered():
                continue
            del self._views[index]
            written.output.written = None
        return kept


def context_node(function: Callable[[KernelContext], Any], info: NodeInfo, watching: bool = True) -> Node:
    """A node that calls `function(context)`."""
    context = KernelContext(info)
    wanted, private, tensors = context._wanted, context._private, context._tensors
    run: CData = ffi.NULL
    views: Any = None  # of the inputs of this run, and from BRIDGE_WATCHED on those of the next

    def again() -> int:
        context._run, context.inputs, context._unwritten = run, views.outer, wanted
        ok = _WATCHED
        try:
            if (returned := function(context)) is not None:
                raise TypeError(
                    f"compute() must return None and write its outputs, not return {type(returned)}"
                )
            if context._unwritten or private:
                context._finish()
        except BaseException as error:
            ok = fail(error)
            context._is_new = True
        context._run, context.inputs = None, ()
        if private:
            private.clear()
        if tensors:
            context._close_tensors()
        if context._is_new:
            return end(_DONE if ok else _FAILED, watching)
        return ok

    def end(ok: int, watch: bool) -> int:
        nonlocal views
        context._is_new = False
        for index, written in context._kept_outputs():
            ok = _revoke(run, written.views, info, ok, index)
        ok = _end(run, views, info, ok, watch, [written.views for written in context._views.values()])
        if ok != _WATCHED:
            views = None
        return ok

    def fail(error: BaseException) -> int:
        return _failed(run, error, info)

    def compute(what: int, now: CData) -> int:
        nonlocal run, views
        if what == _ALONE:  # nothing can be shared with the other thread
            return context_node(function, info, watching=False).compute(_RUN, now)
        if what == _LOOK:
            return end(_DONE, watch=False)
        run = _bound(run, now, context._outputs)
        views = None
        try:
            views = _read_inputs(now, info)
            views.start()
        except BaseException as error:
            return fail(error)
        context._is_new = True
        return again()

    return Node(compute, again, fail)
