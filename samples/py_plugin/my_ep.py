"""An execution provider in Python: runs what it knows with NumPy, as many nodes at once as can be fused."""

import numpy as np

from ort_abi import ep


def gemm(a, b, c=0, alpha=1, beta=1, transA=0, transB=0):
    return alpha * ((a.T if transA else a) @ (b.T if transB else b)) + beta * c


OPERATORS = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "MatMul": np.matmul,
    "Gemm": gemm,
    "Relu": lambda x: np.maximum(x, 0),
}


class MyEp(ep.ExecutionProvider):
    name, vendor, version = "MyExecutionProvider", "Me", "1.0.0"

    def get_capability(self, graph):
        return ep.partition(graph, lambda node: not node.domain and node.op_type in OPERATORS)

    def compile(self, graph):
        constants = {name: value.initializer for name, value in graph.initializers.items()}
        arguments, results = graph.argument_names, [value.name for value in graph.outputs]
        steps = [
            (OPERATORS[n.op_type], [value.name for value in n.inputs], n.attributes, n.outputs[0].name)
            for n in graph.nodes
        ]

        def run(*arrays):
            values = constants | dict(zip(arguments, arrays, strict=True))
            for function, inputs, attributes, output in steps:
                values[output] = function(*(values[name] for name in inputs), **attributes)
            return tuple(values[name] for name in results)

        return run
