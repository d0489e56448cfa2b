#!/usr/bin/env bash
# Measure gradewire on an NVIDIA GPU in less than nine minutes, without a network (docs/operate/triton-and-gpu.md).
#
#   benchmarks/gpu.sh pack [--max-mb N]   with a network: gather what the GPU machine needs into .gpu-pack
#   benchmarks/gpu.sh [run] [OPTIONS]     on the GPU machine: write .gpu-pack/report/report.md and .json, and print the report
#     --judge-url URL --judge-model NAME  use a judge that is running on an OpenAI-compatible server, or
#     --judge-weights DIR                 serve this model as judge with the machine's vLLM
#
# A step that cannot run says why, and all other steps still run. PYTHON names the interpreter (3.11 for the pack).
set -euo pipefail
cd "$(dirname "$0")/.."
step=run
case "${1:-}" in pack | run) step=$1; shift ;; esac
if [ "$step" = pack ]; then exec .venv/bin/python -m benchmarks.gpu.pack "$@"; fi
if [ -z "${PYTHON:-}" ] && [ -x .venv/bin/python ]; then exec timeout 540 .venv/bin/python -m benchmarks.gpu.run "$@"; fi
if [ ! -e .gpu-pack/unpacked ]; then
  for archive in .gpu-pack/*.tar.xz; do tar -xJf "$archive" -C .gpu-pack; done
  touch .gpu-pack/unpacked
fi
# If the pack contains ONNX Runtime for CUDA, Python must find it before ONNX Runtime for CPUs.
export PYTHONPATH=$PWD/.gpu-pack/gpu-site:$PWD/.gpu-pack/site:$PWD/server/src:$PWD/client/src:$PWD/model_repo/src:$PWD/proto/src:$PWD
exec timeout 540 "${PYTHON:-python3.11}" -m benchmarks.gpu.run "$@"
