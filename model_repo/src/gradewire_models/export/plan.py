"""Plan an export from the folder's settings, the caller's choices, and the defaults."""

import shlex
from dataclasses import dataclass

from gradewire_models.catalog.entries import EncoderMetadata
from gradewire_models.catalog.loading import require_free_name
from gradewire_models.errors import ExportError
from gradewire_models.export.folder import POOLINGS, EncoderFolder, Pooling, SourceFolder

CPU_CLASS = "fp32-cpu"
DEFAULT_MAX_TOKENS = 512
"""The largest default for max_tokens, because memory grows with the square of the number of tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """A caller's choices, with the field names of `EncoderMetadata`; None or "" means the folder's value.

    However, an empty `prefix` or `suffix` switches the folder's text off. If `numeric_class` is for GPUs, the model's
    name ends with the class.
    """

    name: str = ""
    pooling: Pooling | None = None
    prefix: str | None = None
    suffix: str | None = None
    max_tokens: int | None = None
    token_layers: tuple[int, ...] = ()
    licence: str = ""
    numeric_class: str = CPU_CLASS


def check_options(options: ExportOptions) -> None:
    """Check the options before anything is downloaded.

    Raises:
        ExportError: A value is out of range.
    """
    if options.name:
        require_free_name(options.name, ExportError)
    if options.max_tokens is not None and options.max_tokens < 1:
        raise ExportError("--max-tokens must be at least 1")
    if any(layer < 1 for layer in options.token_layers):
        raise ExportError("--token-layer must be at least 1, the first layer")


def make_plan(folder: EncoderFolder, options: ExportOptions, source: SourceFolder) -> EncoderMetadata:
    """Describe the model to export; `dims` and `layers` are 0 until the weights are read.

    Raises:
        ExportError: The name is invalid, the folder has no pooling setting and the caller gives none, or a graph cannot
            exclude the prompt's tokens from the mean.
    """
    origin, commit = source.origin, source.commit
    name = options.name or origin.rpartition("/")[2]
    if options.numeric_class != CPU_CLASS and not name.endswith(f"-{options.numeric_class}"):
        # The Helm chart and users recognise a model's target by its name.
        name = f"{name}-{options.numeric_class}"
    require_free_name(name, ExportError)
    if folder.pooling is None:
        raise ExportError(f"{origin} has no pooling setting. Add --pooling {'|'.join(POOLINGS)}")
    prefix = folder.default_prompt if options.prefix is None else options.prefix
    if prefix and not folder.counts_prompt and folder.pooling == "mean":
        raise ExportError(
            f"{origin} excludes a prompt's tokens from the mean, and a graph cannot do this. Use --prefix ''"
        )
    pinned = commit or " ".join(f"{file} sha256:{digest}" for file, digest in folder.weight_sha256.items())
    return EncoderMetadata(
        name=name,
        architecture=folder.model_type,
        dims=0,
        layers=0,
        earlier_layers=tuple(sorted(set(options.token_layers))),
        max_tokens=options.max_tokens or min(folder.max_tokens or DEFAULT_MAX_TOKENS, DEFAULT_MAX_TOKENS),
        pooling=folder.pooling,
        prefix=prefix,
        suffix=folder.suffix if options.suffix is None else options.suffix,
        numeric_class=options.numeric_class,
        licence=options.licence or folder.licence,
        origin=origin,
        source=f"{origin}@{pinned}" if commit else f"{origin}: {pinned}",
        catalog_version=0,
        build_command=_command(options, source),
    )


def notes_on(folder: EncoderFolder, options: ExportOptions) -> list[str]:
    """Return one-line notes on defaults that the caller may want to change."""
    notes = []
    if options.max_tokens is None and (folder.max_tokens or 0) > DEFAULT_MAX_TOKENS:
        notes.append(f"texts are cut at {DEFAULT_MAX_TOKENS} tokens. Allow up to {folder.max_tokens} with --max-tokens")
    offered = [name for name, text in folder.prompts.items() if text]
    if options.prefix is None and offered and not folder.default_prompt:
        notes.append(f"inputs get no prompt; the model has prompts for {', '.join(offered)}. Choose one with --prefix")
    if not options.licence and not folder.licence:
        notes.append("the licence is unknown. Set it with --licence")
    return notes


def _command(options: ExportOptions, source: SourceFolder) -> str:
    words = ["gradewire", "models", "export", source.origin if source.commit else str(source.directory)]
    if source.commit:
        words += ["--revision", source.commit]
    for option, value in (("--name", options.name), ("--pooling", options.pooling), ("--licence", options.licence)):
        words += [option, value] if value else []
    for option, text in (("--prefix", options.prefix), ("--suffix", options.suffix)):
        words += [] if text is None else [option, text]
    words += [] if options.max_tokens is None else ["--max-tokens", str(options.max_tokens)]
    for layer in options.token_layers:
        words += ["--token-layer", str(layer)]
    if options.numeric_class != CPU_CLASS:
        precision, accelerator = options.numeric_class.split("-")
        words += ["--target", "gpu", "--precision", precision, "--accelerator", accelerator]
    return shlex.join(words)
