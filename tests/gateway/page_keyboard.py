"""What a person does with a keyboard, and what a page looks like to eyes: for tests in a real browser."""

from typing import Any, Final

from playwright.sync_api import Locator, Page

_MOST_STEPS: Final = 150
_OUTLINED: Final = """one => one === document.activeElement && one.matches(':focus-visible')
    && getComputedStyle(one).outlineStyle !== 'none' && parseFloat(getComputedStyle(one).outlineWidth) >= 2"""
# Every text that is seen: its words, its colour, and what is painted behind it, blended where it is see-through.
_TEXTS: Final = r"""() => {
  const parsed = (colour) => {
    const [red, green, blue, alpha = 1] = colour.match(/[\d.]+/g).map(Number);
    return [red, green, blue, alpha];
  };
  const over = (front, behind) => [0, 1, 2].map((at) => front[at] * front[3] + behind[at] * (1 - front[3])).concat(1);
  const behindOf = (one) => {
    const layers = [];
    for (let at = one; at; at = at.parentElement) layers.push(parsed(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
  };
  const found = [];
  const note = (one, text, colour) => {
    if (!text.trim() || !one.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return;
    if (one.closest('.unseen, .skip:not(:focus), option')) return;
    const behind = behindOf(one);
    found.push([text.trim().slice(0, 60), over(parsed(colour), behind), behind]);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const one = walker.currentNode.parentElement;
    note(one, walker.currentNode.data, getComputedStyle(one)[one instanceof SVGElement ? 'fill' : 'color']);
  }
  for (const one of document.querySelectorAll('input, textarea, select')) {
    if (!['checkbox', 'file'].includes(one.type)) note(one, one.value || 'empty', getComputedStyle(one).color);
    if (one.placeholder && !one.value) note(one, one.placeholder, getComputedStyle(one, '::placeholder').color);
  }
  return found;
}"""


def tab_to(page: Page, target: Locator) -> None:
    """Presses Tab until `target` has the focus, and checks that this can be seen."""
    for _ in range(_MOST_STEPS):
        page.keyboard.press("Tab")
        if target.evaluate("one => one === document.activeElement"):
            assert target.evaluate(_OUTLINED), f"the focus on {target} cannot be seen"
            return
    raise AssertionError(f"{_MOST_STEPS} times Tab do not reach {target}")


def press_on(page: Page, target: Locator, key: str = "Enter") -> None:
    """Goes to `target` by Tab and presses a key there."""
    tab_to(page, target)
    page.keyboard.press(key)


def type_into(page: Page, target: Locator, text: str) -> None:
    """Goes to `target` by Tab and types over what is there."""
    tab_to(page, target)
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(text)


def weak_texts(page: Page, least: float = 4.5) -> list[str]:
    """Texts that are in sight, in whichever theme the page is, with less contrast than WCAG 2.2 asks."""
    texts: list[Any] = page.evaluate(_TEXTS)
    assert texts
    return [
        f"{text!r}: {contrast(front, behind):.2f}" for text, front, behind in texts if contrast(front, behind) < least
    ]


def contrast(front: list[float], behind: list[float]) -> float:
    """WCAG 2.2's contrast ratio, 1 to 21, of colours from 0 to 255."""
    dark, light = sorted((_luminance(front), _luminance(behind)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: list[float]) -> float:
    parts = [part / 255 for part in colour[:3]]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
