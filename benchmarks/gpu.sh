#!/usr/bin/env bash
# What gradewire does on an NVIDIA GPU, in one run of under nine minutes, without a network (docs/operate/gpu.md).
#
#   benchmarks/gpu.sh pack [--max-mb N]   where there is a network: gathers what the machine needs into .gpu-pack
#   benchmarks/gpu.sh [run] [OPTIONS]     on the machine: .gpu-pack/report/report.md and .json, and the report on stdout
#     --judge-url URL --judge-model NAME  a judge that is up there, an OpenAI-compatible server; or
#     --judge-weights DIR                 a model that the machine's vLLM serves meanwhile
#
# A step that cannot run says why and spoils no other. PYTHON names the interpreter (3.11, for the pack's packages).
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
# Where the pack has ONNX Runtime for CUDA, it goes before the one for CPUs.
export PYTHONPATH=$PWD/.gpu-pack/gpu-site:$PWD/.gpu-pack/site:$PWD/server/src:$PWD/client/src:$PWD/model_repo/src:$PWD/proto/src:$PWD
exec timeout 540 "${PYTHON:-python3.11}" -m benchmarks.gpu.run "$@"
