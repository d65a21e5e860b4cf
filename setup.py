"""Builds the native artefacts: libort_abi.so (plain C), its guard (C++), and the cffi module on top of it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))  # build frontends run this file with another folder as sys.path[0]

import build_ffi  # noqa: E402
from abigen import native_build  # noqa: E402


class BuildNative(build_ext):
    """Builds the library into the package, the cffi module against it, and the generated Python files."""

    def run(self) -> None:
        """Builds everything; a compiler error is printed as the compiler said it."""
        work = ROOT / self.get_finalized_command("build").build_base / "native"
        package = Path(self.get_ext_fullpath(build_ffi.MODULE)).parent
        package.mkdir(parents=True, exist_ok=True)
        compilers = {"cc": os.environ.get("CC", "cc"), "cxx": os.environ.get("CXX", "c++")}
        library = native_build.build(work, native_build.Options(**compilers))
        shutil.copy2(library, package / native_build.LIBRARY_NAME)
        guard = work / native_build.GUARD_NAME
        if guard.exists():
            shutil.copy2(guard, package)
        else:
            (package / guard.name).unlink(missing_ok=True)
        shutil.copy2(work / native_build.STANDIN_NAME, package)
        shutil.copy2(build_ffi.build_entry(work, os.environ.get("CC", "cc")), package)
        (package / "include").mkdir(exist_ok=True)
        shutil.copy2(native_build.HEADERS[0], package / "include")
        build_ffi.write_python(package)

        module = self.extensions[0]
        source = work / "generated" / "_native.c"
        build_ffi.write_c_source(source)
        module.sources = [os.path.relpath(path, ROOT) for path in (source, *build_ffi.bridge_sources())]
        module.depends = [str(path) for path in (*build_ffi.BRIDGE.glob("*"), *native_build.HEADERS, library)]
        module.include_dirs = [
            str(native_build.CSRC / "include"),
            str(native_build.CSRC),
            str(work / "generated"),
        ]
        module.library_dirs = [str(work)]
        super().run()

    def get_source_files(self) -> list[str]:
        """No source is known before the build; MANIFEST.in lists what an sdist takes."""
        return []


setup(
    ext_modules=[
        Extension(
            build_ffi.MODULE,
            sources=[],
            libraries=["ort_abi"],
            runtime_library_dirs=["$ORIGIN"],
            define_macros=[("Py_LIMITED_API", "0x030A0000"), ("_GNU_SOURCE", None)],
            extra_compile_args=[
                *("-std=c11", "-fvisibility=hidden", "-pthread", "-Wall", "-Wextra"),
                *("-Werror=incompatible-pointer-types", "-Werror=implicit-function-declaration"),
            ],
            extra_link_args=["-pthread"],
            py_limited_api=True,
        )
    ],
    cmdclass={"build_ext": BuildNative},
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
