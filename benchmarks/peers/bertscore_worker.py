"""Compute BERTScore with its authors' package `bert_score`, as a worker of `same_rows`.

The worker reads blocks of rows, one JSON line per block, and writes a line with seconds and F1 scores for each block.
"""

import argparse
import json
import sys
import time

from bert_score import BERTScorer

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("checkpoint", help="encoder as a Hugging Face folder")
parser.add_argument("--layer", type=int, default=6, help="layer whose vectors are compared; default: %(default)s")
arguments = parser.parse_args()

scorer = BERTScorer(model_type=arguments.checkpoint, num_layers=arguments.layer, batch_size=64, device="cpu")
for line in sys.stdin:
    rows = json.loads(line)
    started = time.perf_counter()
    _, _, f1 = scorer.score([row["prediction"] for row in rows], [row["references"] for row in rows])
    seconds = time.perf_counter() - started
    sys.stdout.write(json.dumps({"seconds": seconds, "scores": f1.tolist()}) + "\n")
    sys.stdout.flush()
