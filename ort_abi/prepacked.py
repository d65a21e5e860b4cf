"""Packed weights that sessions share."""

from __future__ import annotations

from ort_abi._lib import CData, Handle, api, create

__all__ = ["PrepackedWeightsContainer"]


class PrepackedWeightsContainer:
    """Where sessions share the weights that their kernels have packed: equal ones are kept once.

    Give it to `InferenceSession(prepacked_weights_container=...)`, from any thread. Sessions *keep alive*
    what they share, so the container can go at any time (`CreatePrepackedWeightsContainer`, API 8).
    """

    def __init__(self) -> None:
        make, release = api.CreatePrepackedWeightsContainer, api.ReleasePrepackedWeightsContainer
        self._handle: Handle = create("OrtPrepackedWeightsContainer", release, make)

    @property
    def pointer(self) -> CData:
        """The `OrtPrepackedWeightsContainer*`. *borrows*: valid as long as this object."""
        return self._handle.pointer
