"""Run `gradewire leaderboard`: read judged pairs, and judge the remaining pairs round by round."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from gradewire_cli.leaderboard.reading import NAME_CHARACTERS, PAIR_COLUMNS, JudgedPair, holds_pairs, judged_pair
from gradewire_cli.leaderboard.verdicts import Verdicts
from gradewire_cli.problems import InputError, tell
from gradewire_cli.results.journal import Journal, refuse_existing
from gradewire_cli.results.progress import ShowProgress, progress
from gradewire_cli.results.resumable_output import lines_of
from gradewire_cli.rows.cells import LeftOut
from gradewire_cli.rows.files import STDIN
from gradewire_cli.rows.formats import Record, printable, read_file
from gradewire_cli.rows.row import Row, with_picture_digests
from gradewire_cli.scoring.choosers import (
    JudgeChooser,
    MetricChooser,
    is_comparison,
    pair_comparison_of,
    text_of_question,
)
from gradewire_cli.scoring.labelled_rows import label_named, with_stored_scores
from gradewire_cli.scoring.pair_engine import Answer, AnswerPair, Chooser, PairEngine, Result, results_of
from gradewire_cli.scoring.plan import judge_name, judge_notes, resolve_plan
from gradewire_cli.scoring.row_scorer import RowScorer
from gradewire_stats.ratings import ChosenPair, ModelRating, PairPool, next_pairs, pair_counts, rate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gradewire import AsyncClient
    from gradewire.transport import Transport
    from gradewire_cli.leaderboard.output import RatingOptions
    from gradewire_cli.options.connection import ConnectionOptions
    from gradewire_cli.options.metrics import MetricOptions
    from gradewire_cli.rows.input_file import InputFile
    from gradewire_cli.scoring.choosers import DrawsOver
    from gradewire_cli.scoring.labelled_run import Draws


PAIR = 2
# Fields that are not part of an answer's digest, because "id" names a row and "images" have a separate digest.
_NOT_COMPARED = frozenset({"id", "images"})


@dataclass(slots=True)
class Answers:
    """Answers to compare.

    Attributes:
        rows: Rows by instruction (in file order) and by model.
        results: Results of earlier runs by row index. Empty without --scores.
        lines: Metric identifiers of these results by label.
    """

    rows: dict[str, dict[str, Row]] = field(default_factory=dict)
    results: dict[int, Mapping[str, Result]] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)
    left_out: LeftOut = field(default_factory=LeftOut)
    has_synthetic: bool = False

    @classmethod
    def read(cls, source: InputFile, scores: Sequence[Path] = ()) -> Self:
        """Read files with answers. If a row names no model, the file's name is the model's name.

        Args:
            source: The files.
            scores: Outputs of `gradewire score` on these files, or () if a chooser reads the answers.

        Raises:
            InputError: A file cannot be read, no two answers have the same question, or the scores are of other rows.
        """
        opened = source.open()
        tell(opened.notes)
        found = cls(has_synthetic=opened.has_synthetic)
        name = source.display_paths[0]
        for row in found.scored(opened.rows, scores) if scores else opened.rows:
            instruction = row.question_id or row.question_key
            model = printable(row.model.strip() or Path(row.file or name).name.split(".")[0])
            there = found.rows.get(instruction, {})
            if row.item is None:
                found.left_out.add("the row cannot be read", row.problem)
            elif not instruction:
                found.left_out.add("the row's question is unknown", row.position)
            elif len(model) > NAME_CHARACTERS:
                found.left_out.add(f"the model's name has more than {NAME_CHARACTERS} characters", row.position)
            elif model in there:
                found.left_out.add("the model already has an answer to the question", row.position)
            else:
                found.rows.setdefault(instruction, {})[model] = row
        tell(opened.late_notes)
        if all(len(rows) < PAIR for rows in found.rows.values()):
            why = found.left_out.sentences("rows") or [f"models: {', '.join(found.models) or 'none'}"]
            raise InputError(
                f"{source.name}: no two answers have the same question, so there is nothing to compare "
                f"({'; '.join(why)}). Use --map model=COLUMN and --map question_id=COLUMN"
            )
        return found

    def scored(self, rows: Iterator[Row], scores: Sequence[Path]) -> Iterator[Row]:
        """Yield rows, and keep their results; raise InputError like `with_stored_scores`."""
        for row, output in with_stored_scores(rows, scores):
            self.lines = self.lines or lines_of(output)
            self.results[row.index] = results_of(output)
            yield row

    def add_references(self, name: str) -> None:
        """Add each instruction's first reference as the answer of a model.

        Raises:
            InputError: A model has this name, or no instruction has a reference.
        """
        if name in self.models:
            raise InputError(f"--reference-as {name}: there are answers of a model with this name. Use another name")
        index = 1 + max(row.index for rows in self.rows.values() for row in rows.values())
        for rows in self.rows.values():
            first = next((row for row in rows.values() if row.item and row.item.get("references")), None)
            if first is None or first.item is None:
                continue
            answer = {"prediction": first.item["references"][0]}
            rows[name] = replace(
                first, index=index, model=name, item={**first.item, **answer}, values={**first.values, **answer}
            )
            index += 1
        if name not in self.models:
            raise InputError(f"--reference-as {name}: no row has references")

    @property
    def models(self) -> list[str]:
        """The models' names, sorted."""
        return sorted({model for rows in self.rows.values() for model in rows})

    def units_of(self, model: str, unit: DrawsOver) -> int:
        """Return the number of units of draws on which a model and another model have an answer."""
        keys = [key for key, rows in self.rows.items() if model in rows and len(rows) > 1]
        if unit == "instructions":
            return len(keys)
        return len({text_of_question(self.rows[key][model]) or key for key in keys})

    def has(self, pair: JudgedPair) -> bool:
        """Return True if both answers of a pair are present."""
        return self.rows.get(pair.instruction, {}).keys() >= set(pair.models)

    def show_pictures(self, folder: Path) -> None:
        """Add the digests of the rows' pictures in `folder`, so that a changed picture counts as a changed answer."""
        for rows in self.rows.values():
            rows.update(zip(rows, with_picture_digests(list(rows.values()), folder), strict=True))

    def pool(self, models: Sequence[str]) -> PairPool:
        """Return all pairs of answers, with models as indices into `models`."""
        numbers = {model: number for number, model in enumerate(models)}
        return PairPool(len(models), {key: [numbers[model] for model in rows] for key, rows in self.rows.items()})

    def pair(self, chosen: ChosenPair, models: Sequence[str], index: int) -> AnswerPair:
        """Return the chosen pair with its answers."""
        rows = self.rows[chosen.instruction]
        a, b = models[chosen.first], models[chosen.second]
        sides = [Answer(rows[model], self.results.get(rows[model].index, {})) for model in (a, b)]
        return AnswerPair(index=index, model_a=a, model_b=b, a=sides[0], b=sides[1])


def texts_digest(pair: AnswerPair) -> str:
    """Return 32 hex digits, a hash of a pair's models, texts and pictures.

    The hash excludes ids and positions, so adding or removing files does not change the hash.
    """
    content = [
        [
            model,
            {name: value for name, value in (answer.row.item or {}).items() if name not in _NOT_COMPARED},
            answer.row.picture_digest,
        ]
        for model, answer in ((pair.model_a, pair.a), (pair.model_b, pair.b))
    ]
    encoded = json.dumps(content, sort_keys=True, ensure_ascii=True, default=repr).encode()
    return hashlib.blake2b(encoded, digest_size=16).hexdigest()


# Minimum number of instructions. With fewer instructions, draws hardly differ, so intervals are too narrow.
LEAST_INSTRUCTIONS = 30
LEAST_ROUND, ROUNDS = 32, 50
"""Minimum number of pairs in a round, and the number of rounds that a full round robin would need."""


@dataclass(slots=True, kw_only=True)
class PairJudging:
    """The judging of the pairs that have no verdict yet.

    Attributes:
        recorded: Pairs from other files, which are not judged again.
        engine: The engine that judges pairs, created with `texts_digest` and not yet opened.
        pairs: Pairs that this run and earlier runs judged, in order of their first verdict. A pair's key is its
            instruction and models.
        outdated: Number of earlier pairs that are judged again, because their answers have changed.
    """

    answers: Answers
    recorded: Verdicts
    engine: PairEngine
    options: RatingOptions
    pairs: dict[tuple[str, frozenset[str]], JudgedPair] = field(default_factory=dict)
    models: list[str] = field(init=False)
    before: int = field(init=False)
    outdated: int = field(init=False)

    def open(self, *, resume: bool) -> None:
        """Read the pairs of earlier runs; raise InputError like `PairEngine.open`."""
        self.engine.take = self._take
        self.engine.open(resume=resume)
        self.before = len(self.pairs)
        for key, pair in list(self.pairs.items()):
            if self.answers.has(pair):
                now = self.answers.pair(ChosenPair(pair.instruction, 0, 1), pair.models, 0)
                if texts_digest(now) != pair.digest:
                    del self.pairs[key]
        self.outdated = self.before - len(self.pairs)
        judged = self.verdicts().pairs
        self.models = sorted({*self.answers.models, *(model for pair in judged for model in pair.models)})

    def _take(self, number: int, line: Mapping[str, Any]) -> None:
        try:
            pair = judged_pair(Record(number - 1, f"line {number}", line), PAIR_COLUMNS)
        except ValueError as error:
            path = self.engine.journal and self.engine.journal.path
            raise InputError(f"{path}: line {number}: {error}. Use another --out") from error
        # `judged_pair` decodes an id that looks like a list of turns. Here the id must equal the answers' id.
        if isinstance(instruction := line.get("instruction_id"), str):
            pair = replace(pair, instruction=instruction)
        self.pairs[pair.key] = pair

    def verdicts(self) -> Verdicts:
        """Return the recorded pairs, then the pairs judged by this run and earlier runs."""
        return Verdicts([*self.recorded.pairs, *self.pairs.values()], self.recorded.left_out)

    async def all_pairs(self, progress: ShowProgress) -> None:
        """Judge every pair; raise GradewireError like `Chooser.choose`."""
        await self._judge(list(self.answers.pool(self.models).all_pairs()), None, progress)

    async def until(self, width: float, most: int | None, progress: ShowProgress) -> None:
        """Judge round by round until every model's rating is certain enough, or no pair is left.

        A resumed run ends with the same pairs as an uninterrupted run, because each pair stores its round.

        Args:
            width: Maximum width of every model's interval (Bradley-Terry, 95 %), in points.
            most: Maximum number of judged pairs over all runs. None means no limit.
            progress: Function to call with the number of judged pairs.
        """
        number = max((pair.round for pair in self.pairs.values() if pair.round is not None), default=-1)
        last = {key for key, pair in self.pairs.items() if pair.round == number}
        before = [pair for key, pair in self.pairs.items() if key not in last]
        batch = self._next_round(width, most, before)
        # If models or options have changed, the last round would contain different pairs, so do not complete it.
        if last and last <= {self._key(chosen) for chosen in batch}:
            await self._judge(batch, number, progress)
        while batch := self._next_round(width, most, list(self.pairs.values())):
            number += 1
            await self._judge(batch, number, progress)

    def _next_round(self, width: float, most: int | None, judged: list[JudgedPair]) -> list[ChosenPair]:
        pool = self.answers.pool(self.models)
        numbers = {model: number for number, model in enumerate(self.models)}
        verdicts = Verdicts([*self.recorded.pairs, *judged])
        room = pool.pairs if most is None else most - len(judged)
        uncertain = [numbers[model] for model in self._uncertain_models(verdicts, width)]
        if room <= 0 or not uncertain:
            return []
        known = {
            ChosenPair(pair.instruction, *sorted(numbers[model] for model in pair.models)) for pair in verdicts.pairs
        }
        return next_pairs(
            pool,
            known,
            pair_counts(verdicts.matches(self.models)),
            uncertain=uncertain,
            at_most=min(room, max(LEAST_ROUND, pool.pairs // ROUNDS)),
            seed=self.options.seed,
        )

    def _uncertain_models(self, verdicts: Verdicts, width: float) -> Iterator[str]:
        options, lines = self.options, {}
        if verdicts.rated:
            anchor = options.anchor if options.anchor in verdicts.models else None
            draws: Draws = {"resamples": options.resamples, "seed": options.seed}
            matches = verdicts.drawn_over(options.draws_over).matches()
            table = rate(matches, anchor=anchor, scale=options.scale, with_elo=False, **draws)
            lines = {line.model: line for line in table.models}
        for model in self.answers.models:
            there = self.answers.units_of(model, options.draws_over)
            if model not in lines or _is_uncertain(lines[model], there, width):
                yield model

    async def _judge(self, chosen: Sequence[ChosenPair], number: int | None, progress: ShowProgress) -> None:
        elsewhere = {pair.key for pair in self.recorded.pairs}
        left = [each for each in chosen if (key := self._key(each)) not in elsewhere and key not in self.pairs]
        asked = [self.answers.pair(each, self.models, place) for place, each in enumerate(left)]
        told = {} if number is None else {"round": number}
        await self.engine.judge(asked, again=True, extra=told, done=lambda: progress(len(self.pairs), ""))

    def _key(self, chosen: ChosenPair) -> tuple[str, frozenset[str]]:
        return chosen.instruction, frozenset((self.models[chosen.first], self.models[chosen.second]))


def _is_uncertain(line: ModelRating, instructions: int, width: float) -> bool:
    found = line.bradley_terry
    if line.matches and not line.bounded:
        # If a model wins or loses all matches, further matches tell little. One match on each instruction is enough.
        return found.questions < instructions
    few = found.questions < min(LEAST_INSTRUCTIONS, instructions)
    return few or math.isnan(found.low) or found.high - found.low > width


@dataclass(slots=True, kw_only=True)
class LeaderboardRun:
    """A run of the command.

    Attributes:
        source: All files. Its options apply only to files with answers.
        by: The judge or metric that chose the winners, or "" if this run judged no pair.
    """

    options: Mapping[str, Any]
    source: InputFile
    names: Mapping[str, Sequence[str]]
    metrics: MetricOptions
    connection: ConnectionOptions
    rating: RatingOptions
    notes: list[str] = field(default_factory=list)
    by: str = ""

    def split(self) -> tuple[InputFile | None, InputFile | None]:
        """Return the files with pairs and the files with answers. None means that there are no such files.

        Standard input always counts as pairs. A file counts as pairs if its first readable row has columns for two
        models, or if it is another program's file with judged pairs.
        """
        judged = self.source.judged_pairs or self.source
        pairs = [path for path in self.source.paths if path == STDIN or self._holds_pairs(path, judged)]
        answers = [path for path in self.source.paths if path not in pairs]
        parts = [
            replace(source, paths=tuple(paths)) if paths else None
            for source, paths in ((judged, pairs), (self.source, answers))
        ]
        return parts[0], parts[1]

    def _holds_pairs(self, path: str, judged: InputFile) -> bool:
        if judged.official is not None:
            return next(judged.official_pairs(path), None) is not None
        records = read_file(path, self.source.reading)
        return holds_pairs(next((each.fields for each in records if each.fields is not None), {}), self.names)

    def resume_hint(self) -> str:
        """Return the message after an interrupt."""
        out = self.options["out"]
        there = out is not None and out.is_file()
        return f"interrupted. Judged pairs are in {out}. Continue with --resume" if there else "interrupted"

    async def verdicts(self, transport: Transport | None) -> Verdicts:
        """Judge the missing pairs, and return all judged pairs."""
        out, (pairs, answers) = self.options["out"], self.split()
        recorded = Verdicts.read(pairs.records(), self.names) if pairs else Verdicts()
        if answers is None:
            given = (out, self.options["target_width"], self.options["reference_as"], self.options["scores"] or None)
            if any(each is not None for each in given):
                needing = "--out, --scores, --target-width and --reference-as"
                raise click.UsageError(f"{needing} need answers, but FILE contains only judged pairs")
            return recorded
        found = Answers.read(answers, self.options["scores"])
        if self.options["reference_as"]:
            found.add_references(printable(self.options["reference_as"]))
        recorded.left_out.counts.update(found.left_out.counts)
        recorded.left_out.first |= found.left_out.first
        with Journal(out) if out else contextlib.nullcontext() as journal:
            if not (self.options["resume"] or self.options["overwrite"]):
                refuse_existing(out)
            if self.options["scores"]:
                chooser: Chooser = self._chooser_of_scores(found)
                return await self._judged(found, recorded, PairEngine(chooser, journal, texts_digest))
            async with self.connection.open(transport) as client:
                chooser = await self._chooser(client, answers, found)
                return await self._judged(found, recorded, PairEngine(chooser, journal, texts_digest))

    def _chooser_of_scores(self, answers: Answers) -> MetricChooser:
        labels = list(next(iter(answers.results.values())))
        label = label_named(labels, str(self.metrics.metrics), "--by")
        return MetricChooser(label, answers.lines.get(label, ""), self.options["tie_margin"])

    async def _chooser(self, client: AsyncClient, source: InputFile, answers: Answers) -> Chooser:
        text = str(self.metrics.metrics)
        if is_comparison(text):
            return await self._judge(client, text, source, answers)
        if self.options["target_width"] is not None:
            raise click.UsageError(
                "--target-width works only with a judge. A metric scores each answer once, so pairs cost nothing"
            )
        quiet = self.options["quiet"]
        plan = await resolve_plan(client, self.metrics, source, has_synthetic=answers.has_synthetic, quiet=quiet)
        if len(plan.chosen.labels) != 1:
            raise InputError(f"--by {text}: name one metric only")
        scorer = await RowScorer.open(client, plan, deadline_s=self.connection.deadline_s)
        (label,) = plan.chosen.labels
        return MetricChooser(label, scorer.lines[label], self.options["tie_margin"], scorer)

    async def _judge(self, client: AsyncClient, text: str, source: InputFile, answers: Answers) -> JudgeChooser:
        by = pair_comparison_of(text, self.metrics.judge, self.metrics.prompts)
        tell(judge_notes(await client.models(), {judge_name(by)}))
        if by.image:
            answers.show_pictures(source.folder)
        return await JudgeChooser.open(client, by, text, pictures=source.folder, deadline_s=self.connection.deadline_s)

    async def _judged(self, answers: Answers, recorded: Verdicts, engine: PairEngine) -> Verdicts:
        judging = PairJudging(answers=answers, recorded=recorded, engine=engine, options=self.rating)
        judging.open(resume=self.options["resume"])
        full = answers.pool(judging.models).pairs
        width, most = self.options["target_width"], self.options["max_pairs"]
        # With a target width, the number of pairs is unknown.
        total = full if width is None else most
        with progress("judging", total, quiet=self.options["quiet"], already=judging.before) as shown:
            if width is None:
                await judging.all_pairs(shown)
            else:
                await judging.until(width, most, shown)
        engine.finish()
        self.by = str(engine.chooser.identity["by"])
        self.notes += _notes(judging, full=full)
        return judging.verdicts()


def _notes(judging: PairJudging, *, full: int) -> list[str]:
    judged = len(judging.pairs)
    # Files from other programs may repeat a pair.
    known = len({pair.key for pair in judging.verdicts().pairs if judging.answers.has(pair)})
    saved, kept = full - known, judging.before - judging.outdated
    by = judging.engine.chooser.name
    told = [
        f"judged {judged - kept} pairs by {by}; took {kept} from earlier runs and {known - judged} from other files"
    ]
    if judging.outdated:
        told.append(f"{judging.outdated} pairs were judged again because their answers changed")
    if saved:
        told.append(f"{saved} of the {full} pairs in a full round robin were not needed ({saved / full:.0%})")
    return told
