"""Statistics of evaluation, usable alone: arrays in, numbers out; no files, no terminal, nothing of the client.

- `agreement`: metrics beside labels; `curves`: ROC and calibration of one metric; `preferences`: pairs of answers of
  which people chose one.
- `systems`, `model_accuracy`, `knvqa`, `ave`: tables of models, evaluators and descriptions, as papers have them.
- `annotators`: agreement between people; `estimated_mean`: a mean from a few labels and many scores.
- `calibration`: probabilities fitted on labels; `comparison`: runs and models without labels; `ratings`: Elo and
  Bradley-Terry. `bootstrap`: the draws behind every interval.
"""

from importlib.util import find_spec

if find_spec("numpy") is None:
    raise ModuleNotFoundError("gradewire_stats needs numpy: pip install 'gradewire[agree]'", name="numpy")
