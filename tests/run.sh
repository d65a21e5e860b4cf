#!/usr/bin/env bash
# Sets up everything the tests need under build/ and runs them all: the C tests under AddressSanitizer and UBSan,
# then the Python ones. Needs gcc, python3 (3.10 or newer, with venv) and PyPI.
#   bash tests/run.sh [--lint] [pytest arguments]
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
python=${PYTHON:-python3}
lint=false
if [ "${1:-}" = --lint ]; then lint=true; shift; fi

# The environment of the tests: the package in editable form, built with warnings as errors. CuPy is there to hold the
# sample for CUDA against it: that needs no GPU, nor the toolkit that the extra "cupy" brings.
venv=$root/build/venv
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
"$venv/bin/pip" install -q -U pip 'setuptools>=77' wheel cffi pycparser onnx numpy build
"$venv/bin/pip" install -q --no-build-isolation -e '.[test,dev]' cupy-cuda12x==14.2.0

# A second one: our wheel as a user installs it, beside an older stock onnxruntime.
old=$root/build/venv-ort-1.24
[ -x "$old/bin/python" ] || "$python" -m venv "$old"
rm -rf build/dist && mkdir -p build/dist
"$venv/bin/python" -m build -q --wheel --no-isolation --outdir build/dist . >build/wheel.log 2>&1 ||
  { cat build/wheel.log; exit 1; }
"$old/bin/pip" install -q -U pip
"$old/bin/pip" install -q --force-reinstall --no-deps build/dist/*.whl
"$old/bin/pip" install -q numpy cffi onnx ml_dtypes pytest onnxruntime==1.24.4
export ORT_ABI_STOCK_1_24_PYTHON=$old/bin/python

# Real models, taken out of the wheels that ship them (the packages themselves are not installed).
models=$root/build/models
if [ ! -d "$models" ]; then
  rm -rf build/model-wheels && mkdir -p build/model-wheels
  "$venv/bin/pip" download -q --no-deps -d build/model-wheels rapidocr-onnxruntime==1.4.4 silero-vad==6.2.3 \
    magika==1.0.3
  "$venv/bin/python" tests/support/extract_models.py build/model-wheels "$models.part"
  mv "$models.part" "$models"
fi
export ORT_ABI_TEST_MODELS=$models

if $lint; then
  "$venv/bin/ruff" format --check .
  "$venv/bin/ruff" check .
  "$venv/bin/mypy"
  if command -v clang-format >/dev/null; then
    git ls-files '*.c' '*.h' | xargs clang-format --dry-run -Werror
  fi
fi
if [ $# -gt 0 ]; then exec "$venv/bin/python" -m pytest "$@"; fi

# All tests: those of the Python package beside the others, as each half takes one core most of the time.
"$venv/bin/python" -m pytest tests/python >build/tests-python.log 2>&1 &
half=$!
status=0
"$venv/bin/python" -m pytest tests --ignore=tests/python || status=$?
wait $half || status=$?
cat build/tests-python.log
exit $status
