"""The tables by which papers compare evaluators: AVE, KNVQA-Eval, VisIT-Bench, SMILE's table 3."""
