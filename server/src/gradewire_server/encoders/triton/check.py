"""Whether Triton serves the model that is described here: the one place that decides to trust it."""

from gradewire_models.bf16 import BF16_CLASS
from gradewire_models.catalog.loading import load_catalog
from gradewire_models.repository.built import BuiltModel
from gradewire_models.repository.config import CONFIG_FILE
from gradewire_models.repository.served import ServedModel, served_from_file
from gradewire_server.domain.result import Failure, Status
from gradewire_server.encoders.source import NotNowError, UnusableError

_REMEDY = "give both the same model repository, and load the model again in Triton"


def check_arithmetic(model: BuiltModel) -> None:
    """Refuses a model whose vectors Triton does not make.

    Raises:
        UnusableError: It computes in bf16 on OpenVINO; ONNX Runtime, which Triton runs it with, would in fp32.
    """
    if model.numeric_class == BF16_CLASS:
        raise UnusableError(
            f"model {model.name!r} computes in bf16 in the server's own process and not in Triton: serve it with "
            f"--backend embedded, or use {model.base} here"
        )


def check_catalog(model: BuiltModel) -> None:
    """Compares a description with the catalog, where that lists the model.

    Raises:
        NotNowError: Its digest differs; the message names both.
    """
    known = load_catalog().get(model.name)
    if known is not None and known.digest and known.digest != model.digest:
        raise _wrong(
            model,
            f"model {model.name!r} has the digest {model.digest} in the model repository, the catalog says "
            f"{known.digest}; {known.build_hint} builds the latter",
        )


def check_served(model: BuiltModel, served: ServedModel) -> None:
    """Compares what Triton says of a model with its description here.

    Raises:
        NotNowError: Digest, fingerprint, tensors, batch size or accelerators differ, or it runs on another device than
            its numeric class says; the message names both.
    """
    what = f"model {model.name!r}"
    digest = served.facts.get("digest", "none")
    if digest != model.digest:
        raise _wrong(
            model, f"{what} has the digest {digest} in Triton, {model.digest} in the model repository; {_REMEDY}"
        )
    fingerprint = served.facts.get("fingerprint", "none")
    if fingerprint != str(model.fingerprint):
        raise _wrong(
            model,
            f"{what} has the fingerprint {fingerprint} in Triton, {model.fingerprint} in the model repository; "
            f"{_REMEDY}",
        )
    here = served_from_file(model.directory / CONFIG_FILE)
    for name in dict.fromkeys([*here.tensors, *served.tensors]):
        there, expected = served.tensors.get(name, "nothing"), here.tensors.get(name, "nothing")
        if there != expected:
            raise _wrong(
                model, f"{what} has as {name} {there} in Triton, {expected} in the model repository; {_REMEDY}"
            )
    if served.max_batch_size != here.max_batch_size:
        raise _wrong(
            model,
            f"{what} takes batches of {served.max_batch_size} in Triton, of {here.max_batch_size} in the model "
            f"repository; {_REMEDY}",
        )
    _check_device(model, served, here)


def _check_device(model: BuiltModel, served: ServedModel, here: ServedModel) -> None:
    # The digest covers the class, not what somebody made of it: a graph for CPUs runs on a GPU as well, with other
    # vectors. A server that runs a model has chosen where it left the choice to it: it never says KIND_AUTO.
    kind = "KIND_CPU" if model.on_cpu else "KIND_GPU"
    if served.kinds != {kind}:
        found = " and ".join(sorted(served.kinds)) or "no device"
        raise _wrong(
            model,
            f"model {model.name!r} runs on {found} in Triton, its numeric class {model.numeric_class} means {kind}: "
            f"gradewire models build {model.name} writes that into its config.pbtxt; load it again in Triton then",
        )
    if served.accelerators != here.accelerators:
        raise _wrong(
            model,
            f"model {model.name!r} has the accelerators {served.accelerators or 'none'} in Triton, "
            f"{here.accelerators or 'none'} in the model repository; {_REMEDY}",
        )


def wrong_graph(model: BuiltModel, found: Exception) -> NotNowError:
    """Triton's description equals ours, and yet its answers come from another graph, as `found` says."""
    return _wrong(model, f"model {model.name!r} in Triton is not what its description says: {found}; {_REMEDY}")


def _wrong(model: BuiltModel, message: str) -> NotNowError:
    return NotNowError(model, Failure(Status.MODEL_UNAVAILABLE, message))
