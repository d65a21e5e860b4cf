"""The hot path: one run of one node.

The host's inputs arrive as one flat array of numbers (type, address, memory, shape; see bridge.h). They
become arrays that authors have for the time of the run (`_lend`), over the host's memory or over memory of
their own that the elements are copied into.

Both are kept from run to run. If nothing but the elements has changed, the C side calls the node's `again`,
which uses the arrays of the last run, and no array is made. After `again` the C side looks whether all arrays
are as they were; after any other run `_settle` does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ort_abi import dtypes
from ort_abi._lib import CData, ffi, lib
from ort_abi._tensor import array_at, fill_strings, read_strings
from ort_abi.ep._call import objects
from ort_abi.ep._call.errors import failed_call, forget_frames, record
from ort_abi.ep._device.device import DeviceTensor, SyncStream, device_tensor
from ort_abi.ep._lend.loans import (
    AS_IT_WAS,
    KEPT,
    Lent,
    Loan,
    Trust,
    array_loan,
    kept,
    kept_after_all,
    refusal,
    worst_of,
)

__all__ = ["KernelContext", "Node", "NodeInfo", "array_node", "context_node", "run_stream"]

Array = NDArray[Any]

_HEADER: int = lib.BRIDGE_INPUT_HEADER
_NOT_A_TENSOR = -1
_ADDRESS_MASK = 2**64 - 1
_from_buffer = ffi.from_buffer
_put = lib.bridge_put
_find_output = lib.bridge_output
_KNOWN: int = lib.BRIDGE_OUTPUT_KNOWN
_RUN: int = lib.BRIDGE_RUN
_ALONE: int = lib.BRIDGE_RUN_ALONE
_LOOK: int = lib.BRIDGE_LOOK
_FAILED: int = lib.BRIDGE_FAILED
_DONE: int = lib.BRIDGE_DONE
_WATCHED: int = lib.BRIDGE_WATCHED
_ndarray = np.ndarray
_memmove, _cast, _Elements = ffi.memmove, ffi.cast, ffi.typeof("char*")
_new, _Loans = ffi.new, ffi.typeof("BridgeLoan*[]")
_dtypes: dict[int, np.dtype[Any] | None] = {0: None, _NOT_A_TENSOR: None, dtypes.STRING: None}
"""What `_flat_dtype` has found."""


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

    __slots__ = ("input_labels", "input_names", "label", "order", "output_names", "output_types")

    def __init__(
        self,
        label: str,
        input_names: Sequence[str],
        output_names: Sequence[str],
        output_types: Sequence[int] | None = None,
        order: Sequence[int] | None = None,
    ) -> None:
        self.label = label
        """What stock hosts do not say of a node that fails: the operators of a fused one; else ""."""
        self.input_names = list(input_names)
        self.input_labels = [f"input {_named(self.input_names, i)}" for i in range(len(self.input_names))]
        self.output_names = list(output_names)
        self.output_types = list(output_types) if output_types is not None else [0] * len(self.output_names)
        self.order = list(order) if order is not None else None
        """Which input of the host is the callable's n-th argument; None: the same order."""


class _Inputs:
    """What an author gets in a run."""

    __slots__ = ("_tensors", "arrays", "loans", "pointers", "reusable")

    def __init__(
        self, arrays: Sequence[Any], loans: list[Loan], tensors: list[DeviceTensor], reusable: bool
    ) -> None:
        self.arrays = tuple(arrays)
        self.loans = loans
        self.reusable = reusable
        """False: the next run needs others, whatever its inputs are."""
        self._tensors = tensors
        self.pointers: CData = None  # kept alive for the C side
        if loans:
            loans.append(Loan.of_tuple(self.arrays, "the tuple of inputs"))

    def begin(self) -> None:
        """Called when no local variable has an array."""
        for loan in self.loans:
            loan.begin()

    def close(self) -> list[Lent]:
        """Ends the tensors on devices: what authors have of their memory."""
        return [loan for tensor in self._tensors for loan in tensor._close()]


def _read_inputs(run: CData, info: NodeInfo, trust: Trust) -> _Inputs:
    flat: list[int] = ffi.unpack(run.flat, run.flat_len) if run.flat_len else []
    arrays: list[Any] = []
    loans: list[Loan] = []
    tensors: list[DeviceTensor] = []
    reusable = trust.looks
    position = 0
    for index in range(run.num_inputs):
        start = position + _HEADER
        element_type, address, elsewhere, rank = flat[position:start]
        position = start + rank
        shape = tuple(flat[start:position])
        array: Any = None
        dtype = _flat_dtype(element_type)
        if dtype is not None and not elsewhere:
            loan = _lent_input(run, info, trust, index, dtype, address, shape)
            array = loan.item
            if trust.looks:
                loans.append(loan)
        elif element_type == _NOT_A_TENSOR:
            raise TypeError(
                f"input {_named(info.input_names, index)} is no tensor: only tensors can be inputs"
            )
        elif elsewhere:
            array = _on_device(run, run.values[index], address, element_type, shape)
            tensors.append(array)
            reusable = False
        elif element_type == dtypes.STRING:
            array = read_strings(run.call.host.api, run.values[index], shape)
            reusable = False
        elif element_type:
            array = array_at(address, element_type, shape)
            reusable = False
        arrays.append(array)
    if info.order is not None:
        arrays = [arrays[i] for i in info.order]
    return _Inputs(arrays, loans, tensors, reusable)


def _flat_dtype(element_type: int) -> np.dtype[Any] | None:
    """The dtype of a type whose elements an array has in the same form as the host; None for others."""
    if element_type not in _dtypes:
        packed = dtypes.is_packed(element_type)
        _dtypes[element_type] = None if packed else dtypes.from_onnx(element_type)
    return _dtypes[element_type]


def _lent_input(
    run: CData,
    info: NodeInfo,
    trust: Trust,
    index: int,
    dtype: np.dtype[Any],
    address: int,
    shape: tuple[int, ...],
) -> Loan:
    size = dtype.itemsize * math.prod(shape)
    label = info.input_labels[index] if index < len(info.input_labels) else f"input {index}"
    if size and not address:  # stock hosts go on after an allocation that failed
        raise MemoryError(f"the host has no memory for the {size} bytes of {label}")
    own = size <= trust.limit
    loan = array_loan(dtype, shape, size, 0 if own else address, writeable=False, name=label)
    if own:
        copy = run.copies + index
        copy.to, copy.bytes = loan.memory, size
        if size:
            _memmove(loan.memory, _cast(_Elements, address), size)
    return loan


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
    )

    def __init__(self, info: NodeInfo, index: int) -> None:
        self.c = ffi.new("BridgeOutput*", {"index": index})
        self.wanted = bool(info.output_names[index])
        self.label = f"output {_named(info.output_names, index)}"
        self.shape: tuple[int, ...] | None = None
        self.element_type = info.output_types[index] if index < len(info.output_types) else 0
        self.dtype = dtypes.from_onnx(self.element_type) if self.element_type else None
        self.packed = self.flat = False
        self._dims: CData = None

    def _describe_shape(self, shape: tuple[int, ...]) -> None:
        self._dims = ffi.new("int64_t[]", shape)
        self.c.dims, self.c.rank, self.c.checked = self._dims, len(shape), 0

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
            array = self._adapt(array)
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
        if np.ma.is_masked(value):
            raise TypeError(
                f"{self.label} is a masked array with elements that have no value: fill it (`.filled(…)`)"
            )
        if isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array__"):
            return np.asarray(value)
        raise TypeError(f"{self.label} must be a NumPy array, not {type(value).__name__}")

    def _adapt(self, array: Array) -> Array:
        """The array as the host wants it, described."""
        element_type = dtypes.to_onnx(array.dtype)
        if self.element_type and element_type != self.element_type:
            wanted, got = dtypes.name_of(self.element_type), dtypes.name_of(element_type)
            raise TypeError(f"{self.label} must have elements of {wanted}, not {got}")
        if self.dtype is None or array.shape != self.shape:
            self.describe(array.shape, element_type)
        if self.flat and not array.dtype.isnative:
            return array.astype(self.dtype)
        return array

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

    def find(self, shape: tuple[int, ...]) -> None:
        """Asks the host for the output in this shape, as `c` says then. Raises what the host says to it."""
        if not self.element_type or shape != self.shape:
            self.shape = None  # what c says is not complete
            self._describe_shape(shape)
            if lib.bridge_output_value(self.c) == ffi.NULL and not self.c.absent:
                raise self.failure()
            self.describe(shape, self.c.dtype or 1)
        if self.element_type == dtypes.STRING or (self.packed and not self.c.elsewhere):
            return
        if _find_output(self.c) == lib.BRIDGE_OUTPUT_FAILED:
            raise self.failure()


def array_node(function: Callable[..., Any], info: NodeInfo, trust: Trust | None = None) -> Node:
    """A node that calls `function(*inputs)` and copies what it returns: an array for one output, else a
    sequence."""
    trust = trust or Trust()
    outputs = [_Output(info, index) for index in range(len(info.output_names))]
    first: CData = outputs[0].c if outputs else ffi.NULL
    run: CData = ffi.NULL
    inputs: Any = None  # of this run, and from BRIDGE_WATCHED on those of the next
    # An only output that comes as it came before takes a short way.
    shape: tuple[int, ...] | None = None
    dtype: np.dtype[Any] | None = None

    def again() -> int:
        nonlocal shape, dtype
        result: Any = None
        data: Any = None
        try:
            result = function(*inputs.arrays)
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
            return fail(error)
        return _WATCHED

    def fail(error: BaseException) -> int:
        return _failed(run, error, info)

    def settle(end: int) -> int:
        nonlocal inputs
        end = _settle(run, inputs, info, trust, end)
        if end != _WATCHED:
            inputs = None
        return end

    def compute(what: int, now: CData) -> int:
        nonlocal run, inputs
        if what == _ALONE:  # nothing can be shared with the other thread
            return array_node(function, info, trust).compute(_RUN, now)
        if what == _LOOK:
            return settle(_end_so_far(now))
        run = _bound(run, now, outputs)
        inputs = None
        try:
            inputs = _read_inputs(now, info, trust)
            inputs.begin()
        except BaseException as error:
            return fail(error)
        return settle(again())

    return Node(compute, again, fail)


def _bound(before: CData, now: CData, outputs: Sequence[_Output]) -> CData:
    """`now`, which the outputs are then those of."""
    if before != now:
        for output in outputs:
            output.c.run = now
    return now


def _failed(run: CData, error: BaseException, info: NodeInfo) -> int:
    record(ffi.addressof(run, "call"), error, info.label)
    forget_frames(error)
    return _FAILED


def _end_so_far(run: CData) -> int:
    return _WATCHED if run.call.text == ffi.NULL else _FAILED


def _settle(
    run: CData,
    inputs: _Inputs,
    info: NodeInfo,
    trust: Trust,
    end: int,
    outputs: Sequence[Loan] = (),
    ended: Iterable[Lent] = (),
) -> int:
    """After a run with new arrays, one that failed, or one after which something was not as before: refuses
    what is kept. The result is BRIDGE_WATCHED if all arrays can be used again."""
    loans = [*inputs.loans, *outputs]
    pointers = _new(_Loans, [loan.c for loan in loans])
    state = worst_of(pointers)
    on_devices = [*inputs.close(), *ended]
    if on_devices and lib.bridge_run_stream_id(run):  # its work may go on
        on_devices = []
    if state == KEPT or (on_devices and kept(on_devices)):
        lent: list[Lent] = [*loans, *on_devices]
        if end == _FAILED:  # the reason is not to be hidden
            trust.lose()
        elif found := kept_after_all(lent):
            trust.lose()
            end = record(ffi.addressof(run, "call"), refusal(found), info.label)
        else:
            trust.give_up()
            end = _DONE
    elif end != _FAILED:
        trust.earn()
    if end != _WATCHED or not inputs.reusable or state != AS_IT_WAS:
        return min(end, _DONE)
    for loan in loans:
        if not trust.suits(loan):
            return _DONE
    inputs.pointers = run.loans = pointers
    run.num_loans = len(loans)
    return _WATCHED


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


def run_stream(run: CData) -> SyncStream | None:
    """The provider's stream that a run's work belongs on."""
    number = lib.bridge_run_stream_id(run)
    found: SyncStream | None = objects.get(number, "stream") if number else None
    return found


class _Written:
    """An output that an author wrote into: an array over the host's memory, good for as long as that is the
    same, or over memory of its own."""

    __slots__ = ("array", "bit", "c", "is_copied", "loan", "others", "shape")

    def __init__(self, index: int, output: _Output, loan: Loan) -> None:
        self.is_copied = loan.memory is not None
        self.c = output.c
        self.c.known = 0 if self.is_copied else self.c.address
        self.c.source = loan.memory if self.is_copied else ffi.NULL
        self.shape = output.shape
        self.bit = 1 << index
        self.others = ~self.bit
        self.loan = loan
        self.array = loan.item

    def copy(self) -> bool:
        """Copies what was written into the host's output. False after a failure."""
        return not self.is_copied or bool(_put(self.c, self.c.source))


class KernelContext:
    """What `Kernel.compute` gets: the inputs of this run and the way to its outputs. Valid during
    `compute`."""

    __slots__ = (
        "_copied",
        "_is_new",
        "_outputs",
        "_private",
        "_run",
        "_tensors",
        "_trust",
        "_unwritten",
        "_wanted",
        "_written",
        "inputs",
    )

    inputs: tuple[Any, ...]
    """Read-only arrays, None for an optional input that is missing; `DeviceTensor`s for inputs in memory of
    the provider's device. Good during `compute`: copy what you keep."""

    def __init__(self, info: NodeInfo, trust: Trust) -> None:
        self._outputs = [_Output(info, index) for index in range(len(info.output_names))]
        self._run: CData | None = None
        self._trust = trust
        self._written: dict[int, _Written] = {}  # by output; kept for the next run
        self._is_new = False  # what the C side knows of outputs is not all
        self._private: dict[int, Array] = {}  # to be converted into the host's outputs after compute()
        self._tensors: list[DeviceTensor] = []  # outputs on a device
        self._copied: CData = None  # kept alive for the C side
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
        """A writable array for an output, of the model's element type; write every element. A `DeviceTensor`
        for an output in memory of the provider's device. Good during `compute`, as inputs are.

        Raises RuntimeError after `compute`, `ort_abi.errors.OrtError` where the host refuses the shape.
        """
        if self._run is not None and (written := self._written.get(index)) is not None:
            if type(shape) is not tuple:
                shape = tuple(map(int, shape))
            if shape == written.shape and (written.is_copied or _find_output(written.c) == _KNOWN):
                self._unwritten &= written.others
                return written.array
        if self._run is None or not 0 <= index < len(self._outputs):
            raise self._refusal(index)
        return self._new_output(index, shape if type(shape) is tuple else tuple(map(int, shape)))

    def _new_output(self, index: int, shape: tuple[int, ...]) -> Any:
        output, trust = self._outputs[index], self._trust
        self._forget(index)
        output.find(shape)
        self._unwritten &= ~(1 << index)
        if output.c.elsewhere and not output.c.absent:
            value = lib.bridge_output_value(output.c)
            tensor = _on_device(
                self._run, value, output.c.address, output.element_type, shape, writeable=True
            )
            self._tensors.append(tensor)
            self._is_new = True
            return tensor
        assert output.dtype is not None
        if output.c.absent or not output.flat or not trust.looks:
            array = np.empty(shape, output.dtype)
            if not output.c.absent:
                self._private[index] = array
                self._is_new = True
            return array
        size = output.c.bytes
        address = 0 if size <= trust.limit else output.c.address
        loan = array_loan(output.dtype, shape, size, address, writeable=True, name=output.label)
        written = self._written[index] = _Written(index, output, loan)
        self._is_new = True
        loan.begin()
        return written.array

    def _forget(self, index: int) -> None:
        """What was written before into an output does not count. The C side does not know that."""
        self._private.pop(index, None)
        if self._written.pop(index, None) is not None:
            self._is_new = True

    def set_output(self, index: int, value: Any) -> None:
        """Copies an array into an output."""
        if self._run is None or not 0 <= index < len(self._outputs):
            raise self._refusal(index)
        self._forget(index)
        self._outputs[index].put(value)
        self._unwritten &= ~(1 << index)

    def _settle(self, run: CData, inputs: _Inputs, info: NodeInfo, end: int) -> int:
        """As `_settle`, of the outputs too."""
        self._is_new = False
        self._private.clear()
        ended = [loan for tensor in self._tensors for loan in tensor._close()]
        self._tensors.clear()
        loans = [written.loan for written in self._written.values()]
        end = _settle(run, inputs, info, self._trust, end, loans, ended)
        if end != _WATCHED:
            self._written.clear()
            return end
        copied = [written.c for written in self._written.values() if written.is_copied]
        self._copied = ffi.new("BridgeOutput*[]", copied)
        run.copied_outputs, run.num_copied_outputs = self._copied, len(copied)
        return end

    def _refusal(self, index: int) -> Exception:
        if self._run is None:
            return RuntimeError("a kernel's context is valid only during compute()")
        return IndexError(f"output {index} of a node with {len(self._outputs)} outputs")

    def _finish(self) -> None:
        """What is left to do after compute() has done well, where the C side does not do it."""
        for index, written in self._written.items():
            if not self._unwritten & written.bit and not written.copy():
                raise self._outputs[index].failure()
        for index, array in self._private.items():
            self._outputs[index].put(array)
        if self._unwritten:
            index = self._unwritten.bit_length() - 1
            raise RuntimeError(f"{self._outputs[index].label} was not written")


def context_node(
    function: Callable[[KernelContext], Any], info: NodeInfo, trust: Trust | None = None
) -> Node:
    """A node that calls `function(context)`."""
    trust = trust or Trust()
    context = KernelContext(info, trust)
    wanted = context._wanted
    run: CData = ffi.NULL
    inputs: Any = None  # of this run, and from BRIDGE_WATCHED on those of the next

    def again() -> int:
        context._run, context.inputs, context._unwritten = run, inputs.arrays, wanted
        end = _WATCHED
        try:
            if (returned := function(context)) is not None:
                raise TypeError(
                    f"compute() must return None and write its outputs, not return {type(returned)}"
                )
            if context._is_new or context._unwritten:
                context._finish()
                end = _DONE
        except BaseException as error:
            end = fail(error)
        context._run, context.inputs = None, ()
        return end

    def fail(error: BaseException) -> int:
        return _failed(run, error, info)

    def settle(end: int) -> int:
        nonlocal inputs
        end = context._settle(run, inputs, info, end)
        if end != _WATCHED:
            inputs = None
        return end

    def compute(what: int, now: CData) -> int:
        nonlocal run, inputs
        if what == _ALONE:  # nothing can be shared with the other thread
            return context_node(function, info, trust).compute(_RUN, now)
        if what == _LOOK:
            return settle(_end_so_far(now))
        run = _bound(run, now, context._outputs)
        inputs = None
        try:
            inputs = _read_inputs(now, info, trust)
            inputs.begin()
        except BaseException as error:
            return fail(error)
        context._is_new = True
        return settle(again() and _WATCHED)

    return Node(compute, again, fail)
