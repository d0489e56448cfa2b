"""Options of a command that reads official files."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import click

from gradewire.cli.input.official import inspect_logs, lm_eval, lmms_eval, vlmevalkit, vqa
from gradewire.cli.input.official.files import OfficialFiles
from gradewire.cli.options.group import option_group

_VQA: Final = "vqa"
_LOGS: Final = {
    files.name: files
    for files in (
        OfficialFiles("lm-eval", lm_eval.lm_eval_records, lm_eval.TYPE_COLUMNS, lm_eval.PATTERNS),
        OfficialFiles("lmms-eval", lmms_eval.lmms_eval_records, lmms_eval.TYPE_COLUMNS, lmms_eval.PATTERNS),
        OfficialFiles("vlmevalkit", vlmevalkit.vlmevalkit_records, vlmevalkit.TYPE_COLUMNS),
        OfficialFiles("inspect", inspect_logs.inspect_records, inspect_logs.TYPE_COLUMNS, inspect_logs.PATTERNS),
    )
}
_FILTERED: Final = {"lm-eval": lm_eval.lm_eval_records, "lmms-eval": lmms_eval.lmms_eval_records}
"""Those whose logs have the answers once for each filter."""

official_options = option_group(
    click.option(
        "--from",
        "official",
        type=click.Choice((_VQA, *_LOGS)),
        help="FILE is what another program wrote; vqa: results for VQA v2, OK-VQA, TextVQA, GQA; the others: logs of "
        "this harness, files or the folder of a run.",
    ),
    click.option("--questions", metavar="FILE", help="With --from vqa: the data set's questions."),
    click.option(
        "--annotations", metavar="FILE", help="With --from vqa: its annotations, where the questions have no answers."
    ),
    click.option(
        "--filter",
        "sample_filter",
        metavar="NAME",
        help="With --from lm-eval and lmms-eval (by its number there): only answers as this filter of the task let "
        "them pass. Default: of all.",
    ),
)


def official_files(options: Mapping[str, Any]) -> OfficialFiles | None:
    """Reads `official_options`; None where FILE is rows by itself, and for commands without these options.

    Raises:
        click.UsageError: Options do not go together.
    """
    name, questions, annotations = options.get("official"), options.get("questions"), options.get("annotations")
    filter_ = options.get("sample_filter") or ""
    if filter_ and name not in _FILTERED:
        raise click.UsageError(f"--filter is for --from {' and '.join(_FILTERED)}: leave it out")
    for each in ("input_format", "encoding", "delimiter"):
        if name and options.get(each):
            raise click.UsageError(f"--from {name} knows how its files are read: leave out --{each.replace('_', '-')}")
    if name != _VQA:
        if questions or annotations:
            raise click.UsageError(f"--questions and --annotations are for --from {_VQA}: give it too")
        return _logs(name, filter_) if name else None
    if not questions:
        raise click.UsageError(f"--from {_VQA} needs --questions FILE: the data set's questions")
    return OfficialFiles(
        _VQA,
        partial(vqa.vqa_records, files=vqa.VqaFiles(questions, annotations or "")),
        vqa.TYPE_COLUMNS,
        several=False,
        beside={"--questions": questions, "--annotations": annotations or ""},
    )


def _logs(name: str, filter_: str) -> OfficialFiles:
    files = _LOGS[name]
    if not filter_:
        return files
    return replace(files, records=partial(_FILTERED[name], filter_=filter_), options={"--filter": filter_})
