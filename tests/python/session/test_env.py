"""The environment: registration, devices, lifetimes, the end of the process."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ep_support import mul_model, registered

import ort_abi
from ort_abi import OrtHardwareDeviceType, ep

Compile = Callable[..., Path]
FEED = {name: np.ones(3, np.float32) for name in "ab"}


class EnvEp(ep.ExecutionProvider):
    """Multiplies; remembers the devices that it was offered."""

    name, vendor = "EnvExecutionProvider", "The vendor"
    offered: list[ep.Device] = []  # noqa: RUF012

    @classmethod
    def get_supported_devices(cls, devices: Sequence[ep.Device]) -> Any:
        """Takes all, with metadata."""
        cls.offered = list(devices)
        return [(device, {"number": str(i)}) for i, device in enumerate(devices)]

    @staticmethod
    @ep.kernel("Mul", (7, None))
    def mul(a: Any, b: Any) -> Any:
        """Multiplies."""
        return a * b


def test_versions() -> None:
    assert ort_abi.get_version_string().startswith("1.30.")
    root = Path(__file__).resolve().parents[3]
    assert f'version = "{ort_abi.__version__}"' in (root / "pyproject.toml").read_text()
    assert ort_abi.get_build_info()
    assert ort_abi.get_device() == "CPU"


def test_the_header_is_where_get_include_says(compile_c: Compile) -> None:
    assert (Path(ort_abi.get_include()) / "ort_abi.h").exists()
    source = '#include "ort_abi.h"\nint version(void);\nint version(void) { return ORT_API_VERSION; }\n'
    compile_c("header.so", source, f"-I{ort_abi.get_include()}")


def test_the_cpu_is_always_a_device() -> None:
    device = next(d for d in ort_abi.get_ep_devices() if d.ep_name == "CPUExecutionProvider")
    assert device.device.type is OrtHardwareDeviceType.CPU
    assert device.device.vendor_id >= 0
    assert isinstance(device.ep_metadata, dict)
    assert device.memory_info() is None
    assert ort_abi.get_available_providers()[-1] == "CPUExecutionProvider"
    assert any(d.type is OrtHardwareDeviceType.CPU for d in ort_abi.get_hardware_devices())


def test_devices_come_and_go_with_the_library() -> None:
    with registered(ort_abi, EnvEp):
        device = next(d for d in ort_abi.get_ep_devices() if d.ep_name == EnvEp.name)
        assert (device.ep_vendor, device.ep_metadata["number"]) == ("The vendor", "0")
        assert ort_abi.get_available_providers()[-2:] == [EnvEp.name, "CPUExecutionProvider"]
    assert EnvEp.name not in ort_abi.get_available_providers()
    # A snapshot: still readable, no longer usable.
    assert "EnvExecutionProvider" in repr(device)
    assert device.device.type is OrtHardwareDeviceType.CPU
    with pytest.raises(ort_abi.errors.InvalidArgument, match="EnvExecutionProvider is gone"):
        ort_abi.SessionOptions().add_provider_for_devices([device], {})


def test_a_missing_library_is_named() -> None:
    with pytest.raises(ort_abi.errors.OrtError, match=r"/no/such/library\.so"):
        ort_abi.register_execution_provider_library("missing", "/no/such/library.so")


def test_what_is_no_library_is_named(tmp_path: Path) -> None:
    path = tmp_path / "text.so"
    path.write_text("not a library")
    with pytest.raises(ort_abi.errors.OrtError, match=r"text\.so"):
        ort_abi.register_execution_provider_library("text", path)


def test_a_library_without_the_entry_points_is_named_with_them(compile_c: Compile) -> None:
    path = compile_c("empty.so", "int nothing(void);\nint nothing(void) { return 0; }\n")
    with pytest.raises(ort_abi.errors.OrtError, match=r"CreateEpFactories") as caught:
        ort_abi.register_execution_provider_library("empty", path)
    assert "empty.so" in str(caught.value)
    assert "empty.so" not in Path("/proc/self/maps").read_text()


def test_after_a_failure_the_name_is_free() -> None:
    with pytest.raises(ort_abi.errors.OrtError):
        ort_abi.register_execution_provider_library(EnvEp.name, "/no/such/library.so")
    with registered(ort_abi, EnvEp):
        assert EnvEp.name in ort_abi.get_available_providers()


def test_a_name_can_be_used_once_at_a_time() -> None:
    with registered(ort_abi, EnvEp):
        with pytest.raises(ort_abi.errors.OrtError, match="EnvExecutionProvider"):
            ort_abi.register(EnvEp)
        assert EnvEp.name in ort_abi.get_available_providers()


def test_unregistering_what_is_not_registered_names_it() -> None:
    with pytest.raises(ort_abi.errors.OrtError, match="nobody"):
        ort_abi.unregister_execution_provider_library("nobody")


def test_names_with_nul_are_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        ort_abi.register_execution_provider_library("a\0b", "/tmp/x.so")
    with pytest.raises(ValueError, match="NUL"):
        ort_abi.register_execution_provider_library("a", "/tmp/x\0.so")


def test_unregister_is_refused_while_a_session_or_its_binding_lives() -> None:
    ort_abi.register(EnvEp)
    try:
        session = ort_abi.InferenceSession(mul_model(), providers=[EnvEp.name])
        with pytest.raises(ort_abi.errors.OrtError, match="EnvExecutionProvider"):
            ort_abi.unregister_execution_provider_library(EnvEp.name)
        output = session.run(None, FEED)[0]
        binding = session.io_binding()
        session.close()
        with pytest.raises(ort_abi.errors.OrtError, match="EnvExecutionProvider"):
            ort_abi.unregister_execution_provider_library(EnvEp.name)
        del binding
        gc.collect()
    finally:
        ort_abi.unregister_execution_provider_library(EnvEp.name)
    assert EnvEp.name not in ort_abi.get_available_providers()
    assert output.tolist() == [1.0] * 3


def test_logger_severity() -> None:
    for severity in (0, 4, 2):
        ort_abi.set_default_logger_severity(severity)
    with pytest.raises(ValueError, match="not 5"):
        ort_abi.set_default_logger_severity(5)


SCRIPT = """
import gc, sys
import numpy as np
import onnx
from onnx import helper as h
import ort_abi
from ort_abi import ep

value = lambda name: h.make_tensor_value_info(name, 1, [3])
node = h.make_node("Mul", ["a", "b"], ["y"])
graph = h.make_graph([node], "g", [value("a"), value("b")], [value("y")])
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=10).SerializeToString()
feed = {name: np.full(3, 2, np.float32) for name in "ab"}

class MyEp(ep.ExecutionProvider):
    name = "MyExecutionProvider"
    @staticmethod
    @ep.kernel("Mul", (7, None))
    def mul(a, b):
        return a * b

def session(provider="MyExecutionProvider"):
    return ort_abi.InferenceSession(model, providers=[provider])
"""

ENDINGS = {
    "session_alive": "ort_abi.register(MyEp); s = session(); print(s.run(None, feed)[0].sum())",
    "output_alive": "ort_abi.register(MyEp); y = session().run(None, feed)[0]; print(y.sum())",
    "value_alive": "ort_abi.register(MyEp); v = session().run_with_ort_values(None, {n: "
    "ort_abi.OrtValue.ortvalue_from_numpy(x) for n, x in feed.items()})[0]; print(v.numpy().sum())",
    "binding_alive": "ort_abi.register(MyEp); s = session(); b = s.io_binding(); "
    "[b.bind_cpu_input(n, x) for n, x in feed.items()]; b.bind_output('y'); s.run_with_iobinding(b); "
    "print(b.copy_outputs_to_cpu()[0].sum())",
    "cycle": "ort_abi.register(MyEp)\ncell = [session()]\ncell.append(cell)\n"
    "print(cell[0].run(None, feed)[0].sum())\ndel cell",
    "closed": "ort_abi.register(MyEp)\nwith session() as s:\n    print(s.run(None, feed)[0].sum())",
    "shut_down": "ort_abi.register(MyEp); s = session(); print(s.run(None, feed)[0].sum()); s.close(); "
    "del s; gc.collect(); ort_abi.shutdown()",
    "shut_down_twice": "ort_abi.shutdown(); print(session('CPUExecutionProvider').run(None, feed)[0].sum()); "
    "gc.collect(); ort_abi.shutdown(); ort_abi.shutdown()",
    "in_sys_modules": "ort_abi.register(MyEp); sys.modules['kept'] = session(); "
    "print(sys.modules['kept'].run(None, feed)[0].sum())",
    "system_exit": "ort_abi.register(MyEp); s = session(); print(s.run(None, feed)[0].sum()); sys.exit(0)",
    "thread": "import threading\nort_abi.register(MyEp)\ns = session()\n"
    "def work():\n    try:\n        while True: s.run(None, feed)\n"
    "    except RuntimeError: pass  # while Python ends: the session is closed, or the gate\n"
    "threading.Thread(target=work, daemon=True).start()\nprint(s.run(None, feed)[0].sum())",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_process_ends_well(ending: str) -> None:
    script = SCRIPT + textwrap.dedent(ENDINGS[ending])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "12.0\n", "")


def test_sessions_are_released_before_the_process_ends() -> None:
    lines = run_script("""
        class Closing(MyEp):
            name = "ClosingExecutionProvider"
            def close(self):
                print("closed")
        ort_abi.register(Closing)
        s = session(Closing.name)
        y = s.run(None, feed)[0]
        print(y.sum())
    """)
    assert lines == ["12.0", "closed"]


GROWTH = """
    import os
    def kilobytes():
        gc.collect()
        return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    ort_abi.register(MyEp)
    s = session()
    def fail():
        try: s.run(["no such output"], feed)
        except ort_abi.errors.InvalidArgument: pass
    def binding():
        b = s.io_binding()
        for name, array in feed.items(): b.bind_cpu_input(name, array)
        b.bind_output("y")
        s.run_with_iobinding(b)
        return b.copy_outputs_to_cpu()
    strings = np.array(["text"] * 100)
    def value(): return ort_abi.OrtValue.ortvalue_from_numpy(strings).numpy()
    for work, count in ((fail, 100000), (lambda: s.run(None, feed), 20000), (binding, 5000), (value, 3000),
                        (session, 500), (s.get_modelmeta, 5000), (ort_abi.get_ep_devices, 3000)):
        for _ in range(count // 10): work()
        before = kilobytes()
        for _ in range(count): work()
        print(kilobytes() - before)
"""


def test_nothing_leaks() -> None:
    growths = [int(line) for line in run_script(GROWTH)]
    assert len(growths) == 7
    assert max(growths) < 600, growths


def run_script(script: str) -> list[str]:
    """The lines that a script prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT + textwrap.dedent(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_shutdown_is_refused_while_a_session_or_its_binding_lives() -> None:
    lines = run_script("""
        s = session("CPUExecutionProvider")
        def attempt():
            try: ort_abi.shutdown()
            except ort_abi.errors.Fail as error: print("refused", error)
            else: print("done")
        attempt()
        y, binding = s.run(None, feed)[0], s.io_binding()
        s.close(); del s
        attempt()
        del binding
        attempt()
        print(y.sum())
        print(session("CPUExecutionProvider").run(None, feed)[0].sum())
    """)
    assert [line.split(":")[0] for line in lines] == ["refused FAIL", "refused FAIL", "done", "12.0", "12.0"]
    assert "1 session(s)" in lines[0]


def test_injected_hardware_is_offered_to_libraries_until_shutdown() -> None:
    lines = run_script("""
        class GpuEp(MyEp):
            name = "GpuExecutionProvider"
            @classmethod
            def get_supported_devices(cls, devices):
                return [device for device in devices if device.type == "GPU"]
        kind = ort_abi.OrtHardwareDeviceType.GPU
        ort_abi.inject_hardware_device(kind, 0x10DE, 0x1234, "ACME", {"key": "value"})
        print([d for d in ort_abi.get_hardware_devices() if d.vendor == "ACME"])
        ort_abi.register(GpuEp)
        found = [d for d in ort_abi.get_ep_devices() if d.ep_name == GpuEp.name and d.device.vendor == "ACME"]
        print(found[0].device.type.name, hex(found[0].device.vendor_id), found[0].device.metadata)
        print(session("GpuExecutionProvider").run(None, feed)[0].sum())
        gc.collect()
        ort_abi.shutdown()
        print([d for d in ort_abi.get_hardware_devices() if d.vendor == "ACME"])
    """)
    assert "device_id=0x1234" in lines[0]
    assert lines[1:] == ["GPU 0x10de {'key': 'value'}", "12.0", "[]"]


def test_unknown_hardware_is_refused() -> None:
    with pytest.raises(ort_abi.errors.InvalidArgument, match="17"):
        ort_abi.inject_hardware_device(17, 0, 0, "x")
