"""A judge is shown what it can see and what is a picture, and its verdicts are told apart by what it saw."""

import asyncio
import base64
import hashlib
import time
from dataclasses import replace
from typing import Any

import pytest
from tests.server.judges.bench import Bench, choose, generate
from tests.server.judges.images.pictures import SVG, picture
from tests.support.judges.scripted import ScriptedJudge, ScriptedJudges, judge_status

from gradewire_server.domain.image import Image
from gradewire_server.domain.judge import Choose
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.result import Failure, Status
from gradewire_server.settings.images import ImageConfig
from gradewire_server.settings.judge import JudgeConfig

RED, BLUE = picture(colour="red"), picture(colour="blue")


def seeing(**limits: Any) -> Bench:
    """A judge with eyes."""
    source = ScriptedJudges("scripted")
    source.known["scripted"] = ScriptedJudge(replace(judge_status("scripted"), sees_images=True), source.script)
    return Bench(config=JudgeConfig(images=ImageConfig(**limits)), source=source)


def showing(*images: Image) -> Choose:
    need = choose()
    return replace(need, prompt=replace(need.prompt, images=images))


async def test_a_judge_without_eyes_is_not_asked(bench: Bench) -> None:
    for need in (showing(Image(data=RED)), showing(Image(data=SVG))):
        answer = (await bench.service.choose(need)).answer
        assert isinstance(answer, Failure)
        assert answer.status is Status.JUDGE_CANNOT_SEE
        assert "image=true" in answer.message
    text = replace(generate(), prompt=showing(Image(data=RED)).prompt)
    answer = (await bench.service.generate(text)).answer
    assert isinstance(answer, Failure)
    assert answer.status is Status.JUDGE_CANNOT_SEE
    assert bench.source.script.asked == []
    assert not isinstance((await bench.service.choose(choose())).answer, Failure)


async def test_pictures_come_checked_and_are_part_of_a_verdicts_name() -> None:
    bench = seeing()
    uri = f"data:image/png;base64,{base64.b64encode(RED).decode()}"
    first = await bench.service.choose(showing(Image(data=RED)))
    again = await bench.service.choose(showing(Image(uri=uri)))
    other = await bench.service.choose(showing(Image(data=BLUE)))
    both = await bench.service.choose(showing(Image(data=BLUE), Image(data=RED)))
    turned = await bench.service.choose(showing(Image(data=RED), Image(data=BLUE)))
    without = await bench.service.choose(choose())
    sources = [reply.source for reply in (first, again, other, both, turned, without)]
    assert sources == [AnswerSource.COMPUTED, AnswerSource.MEMORY, *[AnswerSource.COMPUTED] * 4]
    seen = [need.prompt.images for need in bench.source.script.asked]
    assert seen[0] == (Image(data=RED, media_type="image/png", digest=hashlib.sha256(RED).hexdigest()),)
    assert [image.data for image in seen[2]] == [BLUE, RED]
    assert seen[4] == ()


@pytest.mark.parametrize(
    ("images", "message"),
    [
        ((Image(data=RED), Image(data=SVG)), r"images\[1\]: is SVG"),
        ((Image(data=RED, media_type="image/gif"),), r"images\[0\]: is image/png"),
        ((Image(data=RED),) * 300, "images: 300 of them, at most 2 are allowed"),
        ((Image(data=picture(size=(300, 300))),), r"images\[0\]: has 300 x 300 pixels"),
        ((Image(data=bytes(3000)),), r"images\[0\]: has 3000 bytes"),
        ((Image(uri="https://169.254.169.254/a.png"),), r"images\[0\]: uri: the host '169.254.169.254' is not one"),
        ((Image(uri="file:///etc/passwd"),), r"images\[0\]: uri: .* fetches nothing"),
    ],
)
async def test_what_is_wrong_with_one_is_named_and_nothing_is_asked(images: tuple[Image, ...], message: str) -> None:
    bench = seeing(max_count=2, max_bytes=2000, max_pixels=10_000, hosts=("images.example.org",))
    answer = (await bench.service.choose(showing(*images))).answer
    assert isinstance(answer, Failure)
    assert answer.status is Status.INVALID_INPUT
    with pytest.raises(ValueError, match=message):
        raise ValueError(answer.message)
    assert bench.source.script.asked == []
    assert not isinstance((await bench.service.choose(showing(Image(data=RED)))).answer, Failure)


async def test_a_picture_that_was_good_is_still_refused_under_another_type() -> None:
    bench = seeing()
    for claimed in ("", "image/png"):
        good = showing(Image(data=RED, media_type=claimed))
        assert not isinstance((await bench.service.choose(good)).answer, Failure)
    answer = (await bench.service.choose(showing(Image(data=RED, media_type="image/gif")))).answer
    assert isinstance(answer, Failure)
    assert answer.message.startswith("images[0]: is image/png, not 'image/gif'")


async def test_an_address_is_handed_on_where_its_host_is_allowed() -> None:
    bench = seeing(hosts=("images.example.org",))
    address = "https://images.example.org/a.png"
    await bench.service.choose(showing(Image(uri=address)))
    await bench.service.choose(showing(Image(uri=address)))
    await bench.service.choose(showing(Image(uri=f"{address}?b")))
    shown = [need.prompt.images[0] for need in bench.source.script.asked]
    assert [(image.uri, image.data) for image in shown] == [(address, b""), (f"{address}?b", b"")]
    assert shown[0].digest != shown[1].digest


async def test_many_at_a_time_each_get_their_own_answer() -> None:
    bench = seeing()
    needs = [showing(Image(data=RED if n % 2 else SVG)) for n in range(40)]
    answers = [reply.answer for reply in await asyncio.gather(*map(bench.service.choose, needs))]
    assert [isinstance(answer, Failure) for answer in answers] == [not n % 2 for n in range(40)]


async def test_a_deadline_counts_while_pictures_are_checked() -> None:
    bench = seeing()
    answer = (await bench.service.choose(showing(Image(data=RED)), deadline_s=time.monotonic() - 1)).answer
    assert isinstance(answer, Failure)
    assert answer.status is Status.TIMEOUT
