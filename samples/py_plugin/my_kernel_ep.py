"""The same as kernels: one class or function an operator, called by the host node by node."""

import numpy as np

from ort_abi import ep

FLOATS = {"T": [np.float32, np.float64]}


class MyKernelEp(ep.ExecutionProvider):
    name, vendor, version = "MyKernelExecutionProvider", "Me", "1.0.0"

    @ep.kernel("MatMul", since_version=(1, None), types=FLOATS)
    class MatMul(ep.Kernel):
        def compute(self, ctx):  # writes into the host's memory
            a, b = ctx.inputs
            if a.ndim == b.ndim == 2:
                np.matmul(a, b, out=ctx.output(0, (a.shape[0], b.shape[1])))
            else:
                ctx.set_output(0, np.matmul(a, b))

    @ep.kernel("Add", since_version=(7, None), types=FLOATS)
    def add(a, b):  # what it returns is copied
        return a + b

    @ep.kernel("Relu", since_version=(6, None), types=FLOATS)
    def relu(x):
        return np.maximum(x, 0)

    @ep.kernel("Gemm", since_version=(7, None), types=FLOATS)
    def gemm(a, b, c=0, *, alpha=1.0, beta=1.0, transA=0, transB=0):  # attributes are keyword-only parameters
        return alpha * ((a.T if transA else a) @ (b.T if transB else b)) + beta * c
