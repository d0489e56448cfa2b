"""Judges: language models that grade; which there are, which of them are built, and how to build them.

What builds or checks a judge lives in `gradewire_models.judges.build`.
"""

from gradewire_models.judges.catalog import CatalogJudge, Form, catalog_judges, default_judge, find_judge
from gradewire_models.judges.repository import BuiltJudge, default_judge_repository, list_judges, load_judge

__all__ = [
    "BuiltJudge",
    "CatalogJudge",
    "Form",
    "catalog_judges",
    "default_judge",
    "default_judge_repository",
    "find_judge",
    "list_judges",
    "load_judge",
]
