"""Free dimensions that get a size by their denotation, in both hosts."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

BATCH = "DATA_BATCH"


def denoted_model(dim: str | int | None, denotation: str = BATCH) -> bytes:
    """y = x + z; the first dimension of x has a denotation."""
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [dim, 3], shape_denotation=[denotation, ""]),
        helper.make_tensor_value_info("z", TensorProto.FLOAT, ["N", 3]),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 3])]
    graph = helper.make_graph([helper.make_node("Add", ["x", "z"], ["y"])], "test", inputs, outputs)
    opsets = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def session(host: ModuleType, model_bytes: bytes, *sizes: tuple[str, int], by_name: int | None = None) -> Any:
    options = host.SessionOptions()
    for denotation, size in sizes:
        options.add_free_dimension_override_by_denotation(denotation, size)
    if by_name is not None:
        options.add_free_dimension_override_by_name("N", by_name)
    options.log_severity_level = 4
    return host.InferenceSession(model_bytes, options)


@pytest.mark.parametrize("dim", ["N", None, 2])
@pytest.mark.parametrize("asked", [BATCH, "data_batch"])
def test_the_dimension_of_the_input_gets_a_size(host: ModuleType, dim: str | int | None, asked: str) -> None:
    made = session(host, denoted_model(dim), (asked, 2), ("OTHER", 7))
    x, z = made.get_inputs()
    assert list(x.shape) == [2, 3]
    assert list(z.shape) == ["N", 3]  # not the dimension that is called the same
    one, two = np.ones((1, 3), np.float32), np.ones((2, 3), np.float32)
    assert made.run(None, {"x": two, "z": one})[0].tolist() == [[2] * 3] * 2
    with pytest.raises(Exception, match="x"):
        made.run(None, {"x": np.ones((4, 3), np.float32), "z": one})


def test_other_denotations_stay(host: ModuleType) -> None:
    made = session(host, denoted_model("N", "DATA_CHANNEL"), (BATCH, 2))
    assert list(made.get_inputs()[0].shape) == ["N", 3]


def test_the_first_of_two_sizes_counts(host: ModuleType) -> None:
    made = session(host, denoted_model("N"), (BATCH, 2), (BATCH, 4))
    assert list(made.get_inputs()[0].shape) == [2, 3]


def test_a_fixed_dimension_of_another_size_is_an_error(host: ModuleType) -> None:
    with pytest.raises(Exception, match=r"(?i)free dimension override"):
        session(host, denoted_model(5), (BATCH, 2))


def test_two_sizes_for_one_dimension_are_an_error(host: ModuleType) -> None:
    with pytest.raises(Exception, match=r"(?i)free dimension override"):
        session(host, denoted_model("N"), (BATCH, 2), by_name=4)
