#!/usr/bin/env bash
# Measure gradewire on an NVIDIA GPU in less than nine minutes, without a network, once its pack is unpacked (docs/operate/triton-and-gpu.md).
#
#   benchmarks/gpu.sh pack [--max-mb N]   with a network: gather what the GPU machine needs into .gpu-pack
#   benchmarks/gpu.sh pack --pieces N     the same with CUDA, real encoders and vLLM, in parts of at most N MB
#     --python 3.12 --machine FILE        for the Python of the GPU machine, and the output of `pip freeze` there
#   benchmarks/gpu.sh [run] [OPTIONS]     on the GPU machine: join the parts, write .gpu-pack/report/report.md and .json,
#                                         and print the report
#     --judge-url URL --judge-model NAME  also measure a judge that is running on an OpenAI-compatible server, or
#     --judge-weights DIR                 this model, which the machine's vLLM serves
#     --device cpu                        rehearse the GPU's steps on the CPU, in tiny shapes
#
# A step that cannot run says why, and all other steps still run. PYTHON names the interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."
pack=.gpu-pack

# Join the parts into $pack, unless the same ones were joined before. Name every part that is missing or broken.
join_parts() {
  local digest name bad='' parts=()
  if [ ! -e "$pack/parts.sha256" ]; then
    echo "$pack/parts.sha256 is missing: copy $pack from the machine where 'benchmarks/gpu.sh pack' ran" >&2
    exit 3
  fi
  if cmp -s "$pack/parts.sha256" "$pack/joined"; then return; fi
  while read -r digest name; do
    parts+=("$pack/$name")
    if [ ! -e "$pack/$name" ]; then
      echo "$pack/$name is missing: copy it" >&2
      bad=1
    elif [ "$(sha256sum <"$pack/$name")" != "$digest  -" ]; then
      echo "$pack/$name is broken: copy it again" >&2
      bad=1
    fi
  done <"$pack/parts.sha256"
  if [ -n "$bad" ]; then exit 3; fi
  rm -rf "$pack"/{joined,site,gpu-site,vllm-site,models,checkpoint,rows}
  cat "${parts[@]}" | decompress | tar -x --ignore-zeros -C "$pack"
  cp "$pack/parts.sha256" "$pack/joined"
}

decompress() {
  if command -v xz >/dev/null; then
    xz --decompress --stdout
  else
    "${PYTHON:-python3}" -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.stdin.buffer), sys.stdout.buffer)'
  fi
}

# The first `python3` may be the one with torch, so prefer it to the system's `python3.12`.
find_python() {
  local wanted
  wanted=$(cat "$pack/site/python-version")
  if [ "$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = "$wanted" ]; then
    echo python3
  else
    echo "python$wanted"
  fi
}

# ONNX Runtime looks for NVIDIA's libraries beside its own folder, and a pack for a machine with torch has none.
link_cuda() {
  local found
  if [ ! -d "$pack/gpu-site" ] || [ -e "$pack/gpu-site/nvidia" ]; then return; fi
  found=$("$python" -c 'import importlib.util as u; s = u.find_spec("nvidia"); print([*s.submodule_search_locations][0] if s else "")')
  if [ -n "$found" ]; then ln -s "$found" "$pack/gpu-site/nvidia"; fi
}

step=run
case "${1:-}" in pack | run) step=$1; shift ;; esac
if [ "$step" = pack ]; then exec "${PYTHON:-.venv/bin/python}" -m benchmarks.gpu.pack "$@"; fi
if [ -z "${PYTHON:-}" ] && [ -x .venv/bin/python ]; then
  python=.venv/bin/python
else
  join_parts
  python=${PYTHON:-$(find_python)}
  link_cuda
  # If the pack contains ONNX Runtime for CUDA, Python must find it before ONNX Runtime for CPUs.
  export PYTHONPATH=$PWD/$pack/gpu-site:$PWD/$pack/site:$PWD/server/src:$PWD/client/src:$PWD/model_repo/src:$PWD/proto/src:$PWD
fi
# Without --foreground, Ctrl-C would not reach the run.
exec timeout --foreground --kill-after 30 540 "$python" -m benchmarks.gpu.run "$@"
