"""Kernels, and how a provider declares them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ort_abi import dtypes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ort_abi.ep._node.compute import KernelContext
    from ort_abi.ep._node.kernel_info import KernelInfo
    from ort_abi.ep._node.prepack import PrepackAllocator, SharedWeights

__all__ = ["Kernel", "KernelSpec", "attribute_parameters", "declared", "kernel"]

_T = TypeVar("_T")


@dataclass(frozen=True)
class KernelSpec:
    """What `@kernel` says of one implementation of an operator."""

    op_type: str
    since_version: tuple[int, int | None]
    domain: str
    types: Mapping[str, tuple[int, ...]]
    make: Callable[..., Any]
    cpu_inputs: tuple[int, ...] = ()
    cpu_outputs: tuple[int, ...] = ()

    def fits(self, domain: str, op_type: str, since_version: int) -> bool:
        """True for the operator whose form came with the opset `since_version`, of whatever types."""
        first, last = self.since_version
        is_version = first <= since_version and (last is None or since_version <= last)
        return is_version and (self.domain, self.op_type) == (domain, op_type)


class Kernel:
    """One operator of a session. Derive, decorate with `@kernel`, define `compute`.

    `__init__` may take one argument, a `KernelInfo` (attributes, constant inputs), valid during the call.
    """

    def __init__(self, info: KernelInfo) -> None:
        pass

    def compute(self, ctx: KernelContext) -> None:
        """Runs the node: reads `ctx.inputs`, writes every output with `ctx.output` or `ctx.set_output`."""
        raise NotImplementedError(f"{type(self).__qualname__} does not define compute(ctx)")

    def prepack(
        self,
        index: int,
        tensor: Any,
        allocator: PrepackAllocator,
        shared: SharedWeights | None,
    ) -> bool:
        """Called once for each constant input. True: the kernel keeps what it needs of `tensor` in a form of
        its own, and `ctx.inputs[index]` will be None. The default keeps nothing.

        `tensor` is the kernel's own array; in memory that NumPy cannot reach it is a `DeviceTensor`, valid
        during the call. With `shared`, `shared.store` copies the packed arrays to the host, which has kernels
        with equal ones use the same memory: `set_shared` brings them.
        (`OrtKernelImpl::PrePackWeight`, API 24; of the first 64 inputs.)
        """
        return False

    def set_shared(self, index: int, arrays: tuple[NDArray[Any], ...]) -> None:
        """Called after `prepack` stored arrays: read-only arrays of the same shapes, dtypes and elements, in
        memory that other kernels may use too; good until the kernel is released, copy what you keep longer
        (`OrtKernelImpl::SetSharedPrePackedWeight`, API 24)."""
        raise NotImplementedError(
            f"{type(self).__qualname__}.prepack stores weights, but set_shared is not defined"
        )

    def close(self) -> None:
        """Called when the session releases the kernel."""


def kernel(
    op_type: str,
    since_version: int | tuple[int, int | None],
    *,
    domain: str = "",
    types: Mapping[str, Iterable[Any]] | None = None,
    cpu_inputs: Iterable[int] = (),
    cpu_outputs: Iterable[int] = (),
) -> Callable[[_T], _T]:
    """Declares a class or function in the body of an `ExecutionProvider` as a kernel.

    `since_version` is the opset that the operator's form came with (`int`: this form only), or first and
    last, None for no end. `types` has the dtypes for each type parameter of the operator ("T"); parameters
    without an entry take any. A function gets the node's inputs as arrays and returns its output (a tuple for
    several); its keyword-only parameters are filled with attributes. `cpu_inputs` and `cpu_outputs` are the
    indices of those that a provider with memory of its own wants in the CPU's, such as shapes. Can be applied
    more than once.
    """
    first, last = since_version if isinstance(since_version, tuple) else (since_version, since_version)
    if first < 1 or (last is not None and last < first):
        raise ValueError(f"kernel {op_type}: since_version {since_version} is no range of opsets")
    numbers = {
        name: tuple(dtypes.to_onnx(dtype) for dtype in listed) for name, listed in (types or {}).items()
    }

    on_cpu = tuple(cpu_inputs), tuple(cpu_outputs)

    def declare(target: _T) -> _T:
        is_kernel = isinstance(target, type) and issubclass(target, Kernel)
        if not is_kernel and not isinstance(target, FunctionType):
            raise TypeError(f"@kernel({op_type!r}) needs a Kernel class or a function, not {target!r}")
        make = cast(Callable[..., Any], target)
        spec = KernelSpec(op_type, (first, last), domain, numbers, make, *on_cpu)
        earlier = vars(target).get("_ort_abi_kernels", ())
        target._ort_abi_kernels = (*earlier, spec)  # type: ignore[attr-defined]
        return target

    return declare


def declared(item: Any) -> Iterator[KernelSpec]:
    """What `@kernel` said of a member of a class."""
    item = item.__func__ if isinstance(item, staticmethod) else item
    yield from getattr(item, "__dict__", {}).get("_ort_abi_kernels", ())


def attribute_parameters(function: Callable[..., Any]) -> dict[str, Any]:
    """The keyword-only parameters of a kernel function with their defaults (`inspect.Parameter.empty`:
    none)."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}
