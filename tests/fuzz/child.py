"""Reads damaged models in a process of its own: `python -m tests.fuzz.child LIBRARY FROM TO MODEL...`.

Prints each number before its model is read, so that whoever started this knows where it stopped, and at the
end how many were read and refused. Everything that can be asked about a model that was read is asked.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.fuzz.mutate import Mutator
from tests.support.native_model import NativeHost, NativeModel, OrtError


def look_at(model: NativeModel) -> None:
    """Asks for everything, and for a view of every other node."""
    model.properties()
    model.graph()
    model.value_types()
    host = model.host
    handle = model.graph_handle()
    nodes = model.node_handles(handle)[::2]
    array = host.ffi.new("const OrtNode*[]", nodes or [host.ffi.NULL])
    view = host.get("Graph_GetGraphView", "OrtGraph*", handle, array, len(nodes))
    model.graph(view)
    model.value_types(view)
    host.api.ReleaseGraph(view)


def main(library: Path, start: int, stop: int, models: list[Path]) -> None:
    """Reads the mutations `start` to `stop`."""
    host = NativeHost(library)
    mutator = Mutator([path.read_bytes() for path in models])
    accepted = refused = 0
    for n in range(start, stop):
        print(n, flush=True)
        try:
            with NativeModel(host, mutator.make(n)) as model:
                accepted += 1
                look_at(model)
        except OrtError as error:
            refused += 1
            assert str(error), f"{n}: a status without a message"
            assert error.code != 0, f"{n}: a status that says OK"
    print(f"accepted {accepted} refused {refused}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), [Path(text) for text in sys.argv[4:]])
