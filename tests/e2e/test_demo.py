"""The demonstration of the README runs, cold, warm and after a restart."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_demonstration_runs_to_its_end_and_keeps_its_lines_whole_on_a_narrow_terminal(minilm: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GRADEWIRE_")}
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "demo.py"],
        # With windows chosen in 8 bits, the number of texts would depend on the processor.
        env=clean | {"GRADEWIRE_MODEL_REPOSITORY": str(minilm), "GRADEWIRE_WINDOW_CHOICE": "fp32", "COLUMNS": "60"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    cold, warm, restarted = (line for line in done.stdout.splitlines() if "smile texts:" in line)
    assert " 306 encoded" in cold
    assert " 0 encoded, 432 from memory" in warm
    assert " from disk" in restarted
    assert " 0 from disk" not in restarted
    assert "correctness: the probability that the answer is right" in done.stdout
    assert "The line that reproduces a verdict: correctness/" in done.stdout
