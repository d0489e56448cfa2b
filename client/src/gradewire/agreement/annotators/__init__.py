"""Labels of people: how far annotators agree, and people as one more evaluator."""
