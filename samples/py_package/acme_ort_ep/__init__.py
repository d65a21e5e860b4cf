"""An execution provider in Python as a package, with what ONNX Runtime's packages of plugins offer."""

import numpy as np

from ort_abi import ep

__all__ = ["AcmeEp", "get_ep_name", "get_ep_names", "get_library_path"]


class AcmeEp(ep.ExecutionProvider):
    """Runs Mul and Relu with NumPy."""

    name, vendor, version = "AcmePluginExecutionProvider", "Acme", "1.0.0"

    @staticmethod
    @ep.kernel("Mul", (7, None), types={"T": [np.float32]})
    def mul(a, b):
        return a * b

    @staticmethod
    @ep.kernel("Relu", (6, None), types={"T": [np.float32]})
    def relu(x):
        return np.maximum(x, 0)


def get_library_path():
    """The path for `register_execution_provider_library`, in this process, under any name."""
    return ep.library_path(AcmeEp)


def get_ep_names():
    """The names by which the package's providers are found among a host's devices."""
    return [AcmeEp.name]


def get_ep_name():
    """The same for a package with one provider."""
    return AcmeEp.name
