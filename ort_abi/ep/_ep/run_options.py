"""What a provider is told about a run."""

from __future__ import annotations

from typing import Any

from ort_abi._lib import CData, check, ffi

__all__ = ["RunOptions"]


class RunOptions:
    """The options of one `Run`, as the session's user set them; valid during `on_run_start` or `on_run_end`.
    A run without options has the defaults."""

    def __init__(self, api: CData, pointer: CData) -> None:
        self._api = api
        self._pointer: CData | None = pointer

    def _close(self) -> None:
        self._pointer = None

    def _open(self) -> CData:
        if self._pointer is None:
            raise RuntimeError("RunOptions are valid only during on_run_start and on_run_end")
        return self._pointer

    def _get(self, slot: str, kind: str, default: Any) -> Any:
        pointer = self._open()
        if pointer == ffi.NULL:
            return default
        out = ffi.new(kind)
        check(getattr(self._api, slot)(pointer, out), self._api)
        return out[0]

    def config(self, key: str, default: str | None = None) -> str | None:
        """A config entry of the run, such as "gpu_graph_id" (`GetRunConfigEntry`, API 23)."""
        pointer = self._open()
        found = ffi.NULL if pointer == ffi.NULL else self._api.GetRunConfigEntry(pointer, key.encode())
        return default if found == ffi.NULL else ffi.string(found).decode("utf-8", "surrogateescape")

    @property
    def tag(self) -> str:
        """The run's tag, "" for none (`RunOptionsGetRunTag`, API 1)."""
        found = self._get("RunOptionsGetRunTag", "const char**", ffi.NULL)
        return "" if found == ffi.NULL else ffi.string(found).decode("utf-8", "surrogateescape")

    @property
    def log_severity_level(self) -> int:
        """The least severity that the run logs; -1: the session's (`RunOptionsGetRunLogSeverityLevel`,
        API 1)."""
        return int(self._get("RunOptionsGetRunLogSeverityLevel", "int*", -1))

    @property
    def log_verbosity_level(self) -> int:
        """How much the run logs of the least severity (`RunOptionsGetRunLogVerbosityLevel`, API 1)."""
        return int(self._get("RunOptionsGetRunLogVerbosityLevel", "int*", 0))
