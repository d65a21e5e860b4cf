"""The plugin zoo: what the host makes of libraries that do one thing wrong, and of odd but good ones.

Every registration that fails must leave nothing behind: no device, no mapping, no object of the plugin; and
the same name works right after. All of it runs under AddressSanitizer, which also looks for leaks.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import onnx
import pytest

from .conftest import Build, Drive

FAIL, INVALID_ARGUMENT, EP_FAIL = 1, 2, 11
EP = "FaultyExecutionProvider"

# fault -> (error code, what the message says)
FAILURES = {
    "CREATE_FAILS": (EP_FAIL, r"CreateEpFactories: no licence$"),
    "CREATE_FAILS_LATE": (EP_FAIL, r"CreateEpFactories: licence expired$"),
    "NEEDS_NEWER_API": (FAIL, r"CreateEpFactories: needs API 31$"),
    "NULL_FACTORY": (FAIL, r"CreateEpFactories said 1 factories and gave 0"),
    "TOO_MANY_FACTORIES": (FAIL, r"CreateEpFactories said 9 factories and gave 4; up to 4"),
    "FACTORY_BEYOND_COUNT": (FAIL, r"CreateEpFactories said 0 factories and gave 1"),
    "NO_GET_NAME": (INVALID_ARGUMENT, r"required slot OrtEpFactory::GetName is NULL"),
    "NO_GET_VENDOR": (INVALID_ARGUMENT, r"required slot OrtEpFactory::GetVendor is NULL"),
    "NO_GET_SUPPORTED_DEVICES": (
        INVALID_ARGUMENT,
        r"required slot OrtEpFactory::GetSupportedDevices is NULL",
    ),
    "NO_CREATE_EP": (INVALID_ARGUMENT, r"required slot OrtEpFactory::CreateEp is NULL"),
    "NO_RELEASE_EP": (INVALID_ARGUMENT, r"required slot OrtEpFactory::ReleaseEp is NULL"),
    "NO_GET_VERSION": (INVALID_ARGUMENT, r"required slot OrtEpFactory::GetVersion is NULL"),
    "NAME_IS_NULL": (INVALID_ARGUMENT, r"OrtEpFactory::GetName gave no name"),
    "NAME_IS_EMPTY": (INVALID_ARGUMENT, r"OrtEpFactory::GetName gave no name"),
    "VENDOR_IS_NULL": (INVALID_ARGUMENT, rf"{EP}: OrtEpFactory::GetVendor gave NULL"),
    "VERSION_IS_NULL": (
        FAIL,
        rf"{EP}: OrtEpFactory::GetVersion gave NULL, not a semantic version",
    ),
    "VERSION_NOT_SEMANTIC": (FAIL, rf"{EP}: OrtEpFactory::GetVersion gave '1.2', not a semantic"),
    "VERSION_IN_METADATA": (INVALID_ARGUMENT, rf"{EP}: 'version' in the metadata is the host's to set"),
    "FACTORY_TOO_OLD": (
        INVALID_ARGUMENT,
        r"OrtEpFactory carries version 21; the oldest that can be used is 22",
    ),
    "DEVICES_FAIL": (EP_FAIL, r"OrtEpFactory::GetSupportedDevices: driver not found$"),
    "DEVICES_FAIL_LATE": (EP_FAIL, r"OrtEpFactory::GetSupportedDevices: driver went away$"),
    "DEVICES_TOO_MANY": (INVALID_ARGUMENT, r"GetSupportedDevices said 9 devices; up to 8"),
    "DEVICES_NULL_ENTRY": (INVALID_ARGUMENT, r"GetSupportedDevices: device 1 of 2 is NULL"),
    "DEVICES_FOREIGN": (INVALID_ARGUMENT, rf"device 0 of 1 \({EP}\) was made for another factory"),
    "DEVICES_GARBAGE": (INVALID_ARGUMENT, r"device 1 of 2 was not made by CreateEpDevice"),
    "DEVICES_TWICE": (INVALID_ARGUMENT, r"device 1 of 2 .*handed over before"),
    "DEVICES_RELEASED": (INVALID_ARGUMENT, r"device 0 of 1 .*was released"),
    "MEMORY_OF_LEGACY_TYPE": (
        INVALID_ARGUMENT,
        rf"EpDevice_AddAllocatorInfo: {EP}: 'Cuda' has .*OrtMemType -2",
    ),
    "MEMORY_OF_ARENA": (INVALID_ARGUMENT, rf"EpDevice_AddAllocatorInfo: {EP}: 'Cpu' has .*allocator type 1"),
    "ALLOCATOR_FAILS": (
        EP_FAIL,
        rf"{EP}: OrtEpFactory::CreateAllocator for 'FaultyDevice': no device memory$",
    ),
    "ALLOCATOR_FAILS_SECOND": (EP_FAIL, rf"{EP}: OrtEpFactory::CreateAllocator for 'FaultyHost': no second"),
    "NO_CREATE_ALLOCATOR": (
        INVALID_ARGUMENT,
        rf"{EP}: .*CreateAllocator or .* is NULL, .* memory 'FaultyDevice'",
    ),
    "NO_ALLOCATOR_FREE": (INVALID_ARGUMENT, rf"{EP}: required slot OrtAllocator::Free is NULL"),
    "ALLOCATOR_INFO_IS_NULL": (FAIL, rf"{EP}: OrtAllocator::Info gave NULL"),
    "ALLOCATOR_OF_ARENA": (FAIL, rf"{EP}: the OrtAllocator for 'Cpu' says OrtArenaAllocator"),
    "ALLOCATOR_TWICE": (INVALID_ARGUMENT, r"for 'FaultyHost' gave an allocator that is registered already"),
    "TRANSFER_FAILS": (EP_FAIL, r"OrtEpFactory::CreateDataTransfer: no copy engine$"),
    "NO_TRANSFER_COPY": (INVALID_ARGUMENT, r"required slot OrtDataTransferImpl::CopyTensors is NULL"),
}


@pytest.mark.parametrize("fault", FAILURES)
def test_failed_registration_names_the_fault_and_leaves_nothing(
    fault: str, plugin: Build, drive: Drive
) -> None:
    code, pattern = FAILURES[fault]
    faulty, good = plugin(fault), plugin()
    answer = drive(
        "create",
        f"register\tzoo\t{faulty}",
        "devices",
        f"mapped\t{faulty}",
        "unregister\tzoo",
        f"cycles\t25\tzoo\t{faulty}",
        f"register\tzoo\t{good}",
        "devices",
        "unregister\tzoo",
        f"mapped\t{good}",
        "release",
    )
    failed, again = answer.results("register")
    assert failed.startswith(f"{code} EP library 'zoo' ({faulty}): ")
    assert re.search(pattern, failed), failed
    assert again == "ok"
    assert answer.results("mapped") == ["0", "0"]
    assert answer.results("unregister") == [
        f"{FAIL} UnregisterExecutionProviderLibrary: no library is registered under 'zoo'",
        "ok",
    ]
    assert answer.devices() == [EP]  # the second listing's; the first shows none
    assert answer.results("cycles") == ["0 0 0"]
    assert not [line for line in answer.lines if line.endswith(" alive")]


# fault -> (devices, what a warning says or None)
ODDITIES = {
    "NONE": (1, None),
    "ZERO_FACTORIES": (0, r"CreateEpFactories gave no factory"),
    "FOUR_FACTORIES": (4, None),
    "DEVICES_NONE": (0, r"no factory supports a device of this machine"),
    "DEVICES_EIGHT": (8, None),
    "DEVICES_LEAKED": (1, r"2 OrtEpDevices were neither handed over nor released"),
    "ALLOCATOR_IS_NULL": (1, None),
    "TRANSFER_IS_NULL": (1, None),
    "NO_CREATE_TRANSFER": (1, r"OrtEpFactory::CreateDataTransfer is NULL: stock onnxruntime .* crashes"),
    "NO_IS_STREAM_AWARE": (1, r"OrtEpFactory::IsStreamAware is NULL: stock onnxruntime .* crashes"),
    "TRANSFER_CUT": (1, None),
    "REENTERS": (1, None),
}


@pytest.mark.parametrize("fault", ODDITIES)
def test_odd_but_good_library_is_registered_and_goes(fault: str, plugin: Build, drive: Drive) -> None:
    count, warning = ODDITIES[fault]
    library = plugin(fault)
    answer = drive(
        "create",
        f"register\tzoo\t{library}",
        "devices",
        "unregister\tzoo",
        f"mapped\t{library}",
        f"cycles\t25\tzoo\t{library}",
        "release",
    )
    assert answer.results("register") == ["ok"]
    assert answer.devices() == [EP] * count
    assert answer.results("unregister") == ["ok"]
    assert answer.results("mapped") == ["0"]
    assert answer.results("cycles") == ["25 25 0"]
    assert not [line for line in answer.lines if line.endswith(" alive")]
    if warning:
        assert any(re.search(warning, text) for text in answer.logs(2)), answer.lines
    else:
        assert answer.logs(2) == []


@pytest.mark.parametrize("version", [0, 22, 23, 24, 25, 27, 28, 30, 99])
def test_factory_is_never_read_past_its_version(version: int, plugin: Build, drive: Drive) -> None:
    """The struct ends where its version ends, directly before an unmapped page."""
    library = plugin("FACTORY_CUT", f"FACTORY_VERSION={version}")
    answer = drive(
        "create",
        f"register\tzoo\t{library}",
        "devices",
        f"incompatibility\t{EP}\t0",
        "unregister\tzoo",
        "release",
    )
    has_memory = version >= 23  # version 22 has no CreateAllocator: its device cannot have memory
    if has_memory:
        assert answer.results("register") == ["ok"]
        (words,) = [words for words in answer.records("device") if words[0] == EP]
        assert "version=1.2.3-rc.1+build.05" in words[2]
        assert "memory=FaultyDevice:shared" in words
        assert answer.results("incompatibility") == ["ok"]
    else:
        assert "CreateAllocator or ReleaseAllocator is NULL" in answer.results("register")[0]
    warnings = [text for text in answer.logs(2) if "OrtEpFactory carries version 0" in text]
    assert len(warnings) == (1 if version == 0 else 0)


@pytest.mark.parametrize("version", [0, 1, 17, 18, 22, 23, 25, 30])
def test_allocator_is_never_read_past_its_version(version: int, plugin: Build, drive: Drive) -> None:
    library = plugin("ALLOCATOR_CUT", f"ALLOCATOR_VERSION={version}")
    answer = drive("create", f"register\tzoo\t{library}", "devices", "unregister\tzoo", "release")
    assert answer.results("register") == answer.results("unregister") == ["ok"]
    (words,) = [words for words in answer.records("device") if words[0] == EP]
    assert words[5:] == ["memory=FaultyDevice:shared", "memory=FaultyHost:shared"]


def test_failing_release_is_logged_and_the_library_goes(plugin: Build, drive: Drive) -> None:
    library = plugin("RELEASE_FAILS")
    answer = drive("create", f"register\tzoo\t{library}", "unregister\tzoo", f"mapped\t{library}", "release")
    assert answer.results("unregister") == ["ok"]
    assert answer.results("mapped") == ["0"]
    assert answer.logs(3) == ["EP library 'zoo': ReleaseEpFactory failed, unloading goes on: device is busy"]


@pytest.mark.parametrize("end", ["unregister\tzoo", "release"])
def test_logger_outlives_release_callbacks(end: str, plugin: Build, drive: Drive) -> None:
    """Also when the environment's end unregisters the library."""
    answer = drive("create", f"register\tzoo\t{plugin('LOG_ON_RELEASE')}", end)
    assert answer.logs(2) == [
        "from OrtDataTransferImpl::Release",
        "from ReleaseAllocator",
        "from ReleaseAllocator",
        "from ReleaseEpFactory",
    ]
    assert "plugin: all factories released" in answer.lines


def test_device_released_after_it_was_handed_over_is_reported(plugin: Build, drive: Drive) -> None:
    answer = drive(
        "create", f"register\tzoo\t{plugin('DEVICES_RELEASED_LATE')}", "unregister\tzoo", "release"
    )
    assert answer.results("unregister") == ["ok"]
    assert answer.logs(3) == ["the device was released before or belongs to the environment"]


def test_missing_symbols(plugin: Build, drive: Drive) -> None:
    """Both functions are required; an EP of the older kind is recognised; dlerror's text is passed on."""
    no_create = plugin("NONE", "CreateEpFactories=Renamed")
    no_release = plugin("NONE", "ReleaseEpFactory=Renamed")
    legacy = plugin("NONE", "CreateEpFactories=Renamed", "WITH_GET_PROVIDER")
    misses = plugin("NONE", "WITH_UNDEFINED_SYMBOL")
    libraries = [no_create, no_release, legacy, misses]
    answer = drive(
        "create",
        *(f"register\tzoo\t{path}" for path in libraries),
        *(f"mapped\t{path}" for path in libraries),
        "devices",
        f"register\tzoo\t{plugin()}",
        "release",
    )
    results = answer.results("register")
    assert results[0] == (
        f"1 EP library 'zoo' ({no_create}): CreateEpFactories is not exported: "
        "undefined symbol: CreateEpFactories"
    )
    assert results[1] == (
        f"1 EP library 'zoo' ({no_release}): ReleaseEpFactory is not exported: "
        "undefined symbol: ReleaseEpFactory"
    )
    assert results[2].startswith(f"1 EP library 'zoo' ({legacy}): CreateEpFactories is not exported: ")
    assert "exports GetProvider: an EP of the older kind" in results[2]
    assert results[3] == (
        f"1 EP library 'zoo' ({misses}): cannot load: undefined symbol: faulty_plugin_misses_this"
    )
    assert results[4] == "ok"
    assert answer.results("mapped") == ["0"] * 4
    assert answer.devices() == []


def test_files_that_are_no_libraries(plugin: Build, drive: Drive, tmp_path: Path) -> None:
    text, missing = tmp_path / "text.so", tmp_path / "missing.so"
    text.write_text("this is not a library, however it is called\n" * 100)
    answer = drive(
        "create",
        f"register\tzoo\t{text}",
        f"register\tzoo\t{missing}",
        f"register\tzoo\t{tmp_path}",
        "register\tzoo\t",
        f"register\t\t{plugin()}",
        f"register\tzoo\t{plugin()}",
        "release",
    )
    assert answer.results("register") == [
        f"1 EP library 'zoo' ({text}): cannot load: invalid ELF header",
        f"1 EP library 'zoo' ({missing}): cannot load: cannot open shared object file: "
        "No such file or directory",
        f"1 EP library 'zoo' ({tmp_path}): cannot load: cannot read file data: Is a directory",
        "2 RegisterExecutionProviderLibrary: the path for 'zoo' is empty",
        "2 RegisterExecutionProviderLibrary: the registration name is empty",
        "ok",
    ]


def test_path_that_is_not_utf8(plugin: Build, drive: Drive, tmp_path: Path) -> None:
    name = b"zo\xff\xfe.so"
    path = bytes(tmp_path) + b"/" + name
    shutil.copy(plugin(), path)
    answer = drive(
        "create",
        b"register\tzoo\t" + path + b"\n",
        "devices",
        b"register\tno\t/no/" + name + b"\n",
        "unregister\tzoo",
        b"mapped\t" + name + b"\n",
        "release",
    )
    good, bad = answer.results("register")
    assert good == "ok"
    assert bad.encode(errors="surrogateescape").startswith(b"1 EP library 'no' (/no/" + name)
    (words,) = [words for words in answer.records("device") if words[0] == EP]
    assert b"library_path=" + path in words[2].encode(errors="surrogateescape")
    assert answer.results("mapped") == ["0"]


def test_relative_path_is_made_absolute(plugin: Build, drive: Drive, tmp_path: Path) -> None:
    shutil.copy(plugin(), tmp_path / "here.so")
    answer = drive("create", "register\tzoo\there.so", "devices", "register\tno\tnothere.so", "release")
    assert answer.results("register")[0] == "ok"
    assert f"({tmp_path}/nothere.so): cannot load: " in answer.results("register")[1]
    (words,) = [words for words in answer.records("device") if words[0] == EP]
    assert f"library_path={tmp_path}/here.so" in words[2]


def test_name_twice_is_refused_and_path_twice_is_not(plugin: Build, drive: Drive) -> None:
    """One library under two names is mapped until both are gone.

    The second name has no allocator of its own, but gets one when the first leaves.
    """
    path = plugin()
    answer = drive(
        "create",
        f"register\tzoo\t{path}",
        f"register\tzoo\t{path}",
        f"register\ttwo\t{path}",
        "devices",
        "unregister\tzoo",
        "devices",
        "unregister\ttwo",
        f"mapped\t{path}",
        "unregister\ttwo",
        "release",
    )
    assert answer.results("register") == [
        "ok",
        "1 RegisterExecutionProviderLibrary: a library is already registered under 'zoo'",
        "ok",
    ]
    assert answer.devices() == [EP, EP, EP]
    for words in answer.records("device"):
        assert words[0] != EP or words[5:] == ["memory=FaultyDevice:shared", "memory=FaultyHost:shared"]
    assert answer.results("unregister")[:2] == ["ok", "ok"]
    assert answer.results("mapped") == ["0"]
    assert answer.results("unregister")[2].startswith("1 ")


def test_environment_unregisters_what_is_left_and_can_be_made_again(plugin: Build, drive: Drive) -> None:
    one, two = plugin(), plugin("NONE", 'EP_NAME="Second"')
    answer = drive(
        "create",
        f"register\tone\t{one}",
        f"register\ttwo\t{two}",
        "devices",
        "release",
        f"mapped\t{one}",
        f"mapped\t{two}",
        "create",
        "devices",
        f"register\tone\t{one}",
        "devices",
        "release",
    )
    assert answer.results("mapped") == ["0", "0"]
    assert answer.devices() == [EP, "Second", EP]
    assert answer.results("create") == ["ok", "ok"]


def test_built_in_provider_cannot_be_unregistered(drive: Drive) -> None:
    answer = drive("create", "unregister\tCPUExecutionProvider", "devices", "release")
    assert answer.results("unregister") == [
        "2 UnregisterExecutionProviderLibrary: 'CPUExecutionProvider' is built in"
    ]
    assert [words[0] for words in answer.records("device")] == ["CPUExecutionProvider"]


def test_out_of_memory_at_any_allocation_leaves_nothing(plugin: Build, drive: Drive) -> None:
    library = plugin()
    answer = drive(
        "create", f"oom\tzoo\t{library}", "devices", "unregister\tzoo", f"mapped\t{library}", "release"
    )
    match = re.fullmatch(r"(\d+) failed, 0 left something behind, then it worked", answer.results("oom")[0])
    assert match and int(match[1]) > 20, answer.results("oom")
    assert answer.devices() == [EP]
    assert answer.results("mapped") == ["0"]


def test_virtual_devices_are_made_where_they_are_allowed(plugin: Build, drive: Drive) -> None:
    """By the environment's configuration, or by a registration name in ".virtual", for that one only."""
    library = plugin("DEVICES_VIRTUAL")
    asked = [f"register\tzoo\t{library}", "devices", "unregister\tzoo"]
    named = [f"register\tzoo.virtual\t{library}", "devices", "unregister\tzoo.virtual"]
    assert drive("create", *asked, "release").devices() == []
    assert drive("create\t0", *named, "release").devices() == []
    answer = drive("create", *named, *asked, "create\t1", "release", "release")
    assert answer.devices() == [EP]
    assert drive("create\t1", *asked, "release").devices() == [EP]
    assert [words[4] for words in answer.records("device") if words[0] == EP] == ["hardware=1:fa17:3"]


def test_injected_hardware_is_shown_to_factories_registered_afterwards(plugin: Build, drive: Drive) -> None:
    answer = drive(
        "create",
        "inject\t2\t17cb\t99\tQualcomm",
        "inject\t1\t10de\t1234\tNVIDIA",
        "inject\t7\t1\t1\tX",
        "hardware",
        f"register\tzoo\t{plugin()}",
        f"incompatibility\t{EP}\t2",
        f"incompatibility\t{EP}\t0",
        "incompatibility\tNobody\t0",
        "release",
        "create",
        "hardware",
        "release",
    )
    assert answer.results("inject")[:2] == ["ok", "ok"]
    assert answer.results("inject")[2] == "2 ortabi_inject_hardware_device: unknown hardware device type 7"
    types = [words[0] for words in answer.records("hardware")]
    assert types.index("0") > types.index("1") > types.index("2")  # NPUs, GPUs, CPUs
    assert ["2", "17cb", "99", "Qualcomm", ""] in answer.records("hardware")
    assert answer.results("incompatibility")[:2] == ["ok", "ok"]
    assert answer.results("incompatibility")[2].startswith("2 ")
    assert "reasons 2 code 7 notes only the CPU" in answer.lines
    assert "reasons 0 code 0 notes none" in answer.lines
    assert (
        len([words for words in answer.records("hardware") if words[3] == "Qualcomm"]) == 1
    )  # gone with the first


def test_devices_are_appended_to_session_options(plugin: Build, drive: Drive) -> None:
    """Options are configuration entries under the EP's name in lower case; the caller's win."""
    answer = drive(
        "create",
        f"register\tone\t{plugin()}",
        f"register\ttwo\t{plugin('NONE', 'EP_NAME=' + chr(34) + 'Second' + chr(34))}",
        f"append\t{EP}",
        f"append\t{EP}\tthreads\t8",
        f"append\t{EP}\tSecond",
        "append\tNobody",
        "release",
    )
    results = answer.results("append")
    assert results[:2] == ["ok", "ok"]
    assert answer.records("config")[:2] == [
        ["ep.faultyexecutionprovider.threads=2"],
        ["ep.faultyexecutionprovider.threads=8"],
    ]
    assert results[2].startswith("2 ") and f"{EP} and Second" in results[2]
    assert results[3] == "2 SessionOptionsAppendExecutionProvider_V2: the EP device is NULL"
    assert answer.records("config")[2:] == [[""], [""]]


def test_shared_allocator_is_replaced_and_released(plugin: Build, drive: Drive) -> None:
    answer = drive(
        "create",
        f"register\tzoo\t{plugin()}",
        f"share\tcreate\t{EP}",
        "devices",
        f"share\trelease\t{EP}",
        "devices",
        f"share\trelease\t{EP}",
        "share\tcreate\tCPUExecutionProvider",
        "unregister\tzoo",
        "release",
    )
    results = answer.results("share")
    assert results[:2] == ["ok", "ok"]
    assert results[2] == f"2 ReleaseSharedAllocator: there is none for 'FaultyDevice' of {EP}"
    assert results[3].startswith("2 CreateSharedAllocator: the device of CPUExecutionProvider has no memory")
    memories = [words[5:] for words in answer.records("device") if words[0] == EP]
    assert memories == [
        ["memory=FaultyDevice:shared", "memory=FaultyHost:shared"],
        ["memory=FaultyDevice:none", "memory=FaultyHost:shared"],
    ]
    assert not [line for line in answer.lines if line.endswith(" alive")]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model of one Relu."""
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    opsets = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9), tmp_path / "relu.onnx")
    return tmp_path / "relu.onnx"


def test_library_of_a_living_session_cannot_be_unregistered(plugin: Build, drive: Drive, model: Path) -> None:
    library = plugin()
    answer = drive(
        "create",
        f"register\tzoo\t{library}",
        f"session\t{model}\t{EP}",
        "unregister\tzoo",
        "devices",
        "close",
        "unregister\tzoo",
        f"mapped\t{library}",
        "release",
    )
    assert answer.results("session") == ["ok"]
    refused, done = answer.results("unregister")
    assert refused.startswith(f"1 UnregisterExecutionProviderLibrary: 'zoo' ({library}) is in use: ")
    assert "session" in refused and "release them first" in refused
    assert answer.devices() == [EP]
    assert done == "ok"
    assert answer.results("mapped") == ["0"]


def test_session_keeps_the_environment_alive(plugin: Build, drive: Drive, model: Path) -> None:
    """Released by its last other holder, the environment goes with the session, and its libraries with it."""
    library = plugin()
    answer = drive(
        "create",
        f"register\tzoo\t{library}",
        f"session\t{model}\t{EP}",
        "release",
        "close",
        f"mapped\t{library}",
    )
    assert answer.lines.index("close: ok") > answer.lines.index("plugin: all factories released")
    assert answer.lines.index("release: ok") < answer.lines.index("plugin: all factories released")
    assert answer.results("mapped") == ["0"]
    assert not [line for line in answer.lines if line.endswith(" alive")]


@pytest.mark.parametrize(
    ("fault", "code", "pattern"),
    [
        ("EP_FAILS", EP_FAIL, rf"{EP}.*CreateEp.*device is lost$"),
        ("EP_IS_NULL", EP_FAIL, rf"{EP}.*CreateEp said OK and gave no OrtEp$"),
        ("EP_HAS_NO_NAME", INVALID_ARGUMENT, rf"{EP}.*OrtEp::GetName is NULL"),
        ("CAPABILITY_FAILS", EP_FAIL, rf"{EP}.*GetCapability.*graph is too beautiful$"),
    ],
)
def test_session_that_fails_does_not_hold_the_library(
    fault: str, code: int, pattern: str, plugin: Build, drive: Drive, model: Path
) -> None:
    library = plugin(fault)
    answer = drive(
        "create",
        f"register\tzoo\t{library}",
        f"session\t{model}\t{EP}",
        "unregister\tzoo",
        f"mapped\t{library}",
        "release",
    )
    (failed,) = answer.results("session")
    assert re.search(pattern, failed), failed
    assert failed.startswith(f"{code} ")
    assert answer.results("unregister") == ["ok"]
    assert answer.results("mapped") == ["0"]
    assert not [line for line in answer.lines if line.endswith(" alive")]
