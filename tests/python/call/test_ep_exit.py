"""Interpreter exit: native threads that still call into Python providers, and releases that come late."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from ep_support import HOSTS

import ort_abi

HERE = Path(__file__).resolve().parents[1]

PREAMBLE = f"""
import sys
sys.path[:0] = [{os.path.dirname(ort_abi.__path__[0])!r}, {str(HERE)!r}]
import numpy as np
from ep_support import HOSTS, FuseAll, mul_model, open_session
from ort_abi import ep
host = HOSTS[sys.argv[1]]
class Mul(FuseAll):
    name = "MulExecutionProvider"
    def compile(self, graph):
        return lambda a, b: a * b
    def close(self):
        print("closed", flush=True)
ep.register_with(host, Mul)
A = np.array([1, 2, 3], np.float32)
session = open_session(host, Mul, mul_model())
assert session.run(None, {{"a": A, "b": A}})[0].tolist() == [1, 4, 9]
"""


def run_script(host: ModuleType, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    name = next(name for name, module in HOSTS.items() if module is host)
    command = [sys.executable, "-c", PREAMBLE + code, name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_exit_with_everything_still_open(host: ModuleType) -> None:
    done = run_script(host, "")
    assert (done.returncode, done.stderr) == (0, "")


def test_exit_with_a_failing_interpreter(host: ModuleType) -> None:
    done = run_script(host, "raise SystemExit(7)")
    assert done.returncode == 7


def test_exit_while_a_python_thread_runs() -> None:
    """In our host. (Stock onnxruntime's own binding ends the process when such a thread comes back to it.)"""
    code = """
import threading
def work():
    while True: session.run(None, {"a": A, "b": A})
for _ in range(3): threading.Thread(target=work, daemon=True).start()
import time; time.sleep(0.2)
"""
    for _ in range(3):
        done = run_script(HOSTS["ours"], code)
        assert done.returncode == 0, done.stderr


NATIVE = """
/* A thread of the program's own that runs a session over and over, until the process ends or a run fails. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include "ort_abi.h"

static const OrtApi* api;
static OrtSession* session;
static OrtValue* input;
static volatile int runs;
static volatile int late;

static void* loop(void* unused) {
  const char* inputs[] = {"a", "b"};
  const char* outputs[] = {"y"};
  const OrtValue* values[2];
  values[0] = values[1] = input;
  (void)unused;
  for (;;) {
    OrtValue* result = NULL;
    OrtStatus* status = api->Run(session, NULL, inputs, values, 2, outputs, 1, &result);
    if (status) {
      if (!late++) {
        fprintf(stdout, "late call: %s\\n", api->GetErrorMessage(status));
        fflush(stdout);
      }
      api->ReleaseStatus(status);
    } else {
      runs++;
      api->ReleaseValue(result);
    }
  }
  return NULL;
}

__attribute__((destructor)) static void linger(void) {
  for (int i = 0; i < 2000 && !late; i++) usleep(1000);
}

ORT_ABI_EXPORT void start(const OrtApi* host_api, OrtSession* host_session, OrtValue* value);
void start(const OrtApi* host_api, OrtSession* host_session, OrtValue* value) {
  pthread_t thread;
  api = host_api;
  session = host_session;
  input = value;
  pthread_create(&thread, NULL, loop, NULL);
  pthread_detach(thread);
  while (runs < 10) usleep(1000);
}
"""

DRIVER = """
import ctypes, gc
del session
gc.collect()
ep.unregister_from(host, Mul)
from ort_abi._native import ffi, lib

base_function = ctypes.CDLL(sys.argv[2]).OrtGetApiBase
base_function.restype = ctypes.c_void_p
base = ffi.cast("OrtApiBase*", base_function())
api = base.GetApi(24)
def check(status):
    assert status == ffi.NULL, ffi.string(api.GetErrorMessage(status))
def out(kind, function, *arguments):
    made = ffi.new(kind + "*")
    check(function(*arguments, made))
    return made[0]
env = out("OrtEnv*", api.CreateEnv, 3, b"exit")
name = ep.prepare(Mul)
check(api.RegisterExecutionProviderLibrary(env, name.encode(), ep.library_path().encode()))
devices, count = ffi.new("const OrtEpDevice* const**"), ffi.new("size_t*")
check(api.GetEpDevices(env, devices, count))
found = [devices[0][i] for i in range(count[0])]
mine = [device for device in found if ffi.string(api.EpDevice_EpName(device)).decode() == Mul.name]
options = out("OrtSessionOptions*", api.CreateSessionOptions)
check(api.AddSessionConfigEntry(options, b"session.disable_cpu_ep_fallback", b"1"))
chosen = ffi.new("const OrtEpDevice*[]", mine[:1])
check(api.SessionOptionsAppendExecutionProvider_V2(options, env, chosen, 1, ffi.NULL, ffi.NULL, 0))
model = mul_model()
native = out("OrtSession*", api.CreateSessionFromArray, env, model, len(model), options)
allocator = out("OrtAllocator*", api.GetAllocatorWithDefaultOptions)
value = out("OrtValue*", api.CreateTensorAsOrtValue, allocator, ffi.new("int64_t[]", [3]), 1, 1)
ctypes_start = ctypes.CDLL(sys.argv[3]).start
ctypes_start.argtypes = [ctypes.c_void_p] * 3
address = lambda pointer: int(ffi.cast("uintptr_t", pointer))
ctypes_start(address(api), address(native), address(value))
print("leaving", flush=True)
"""


def c_library(host: ModuleType) -> Path:
    """The library with the C API of the host."""
    if host is HOSTS["stock"]:
        return next((Path(host.__file__ or "").parent / "capi").glob("libonnxruntime.so.*"))
    return Path(ort_abi.__path__[0]) / "libort_abi.so"


def test_exit_while_a_native_thread_calls_in(host: ModuleType, compile_c: Callable[..., Path]) -> None:
    """The late calls get a status that says why, and the process ends well."""
    helper = compile_c("native_thread.so", NATIVE, "-pthread")
    for _ in range(3):
        done = run_script(host, DRIVER, str(c_library(host)), str(helper))
        assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
        assert "leaving" in done.stdout
        assert "late call: " in done.stdout and "Python is shutting down" in done.stdout


def test_callback_in_flight_at_exit_is_waited_for(host: ModuleType, compile_c: Callable[..., Path]) -> None:
    """The exit waits for the callback that is inside."""
    code = (
        DRIVER.replace("base_function = ", "Mul.compile = lambda self, graph: slow\nbase_function = ")
        + "time.sleep(0.05)"
    )
    slow = """
import time
def slow(a, b):
    time.sleep(0.03)
    done.append(1)
    return a * b
done = []
import atexit
"""
    helper = compile_c("native_thread.so", NATIVE, "-pthread")
    finished = run_script(host, slow + code, str(c_library(host)), str(helper))
    assert finished.returncode == 0, (finished.stdout, finished.stderr)
    assert "Python is shutting down" in finished.stdout


@pytest.mark.parametrize("order", ["session first", "unregister while open"])
def test_session_released_after_unregister(order: str) -> None:
    """Stock onnxruntime lets a session outlive the registration: nothing of ours may be freed before."""
    code = "ep.unregister_from(host, Mul)\n" if order.startswith("unregister") else ""
    done = run_script(HOSTS["stock"], code + "del session\nimport gc; gc.collect()\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "closed"
