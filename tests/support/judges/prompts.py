"""Prompt files of the tests' own: what the packaged ones say may change, what is made of a file may not."""

LAVE = '''
format = 1
name = "test-lave"
version = 1
metric = "lave"
system = "Rate it."
item = """
Image: {caption}
Question: {question}
Right answers: {references}
Answer: {prediction}
"""

[references]
plain = "{reference}"
counted = "{reference} ({count} of {total})"
separator = " | "
most = 3
most_counted = 3

[variants.rating]
system_with_caption = "Rate it. Mind the picture."
correct_from = 0.75
[[variants.rating.steps]]
name = "rating"
opening = "Rating:"
labels = { "1" = 1, "2" = 2, "3" = 3 }

[variants.rationale]
item = """
{question} [{references}] {prediction} - right?"""
correct_from = 0.75
prediction_words = 5
[[variants.rationale.steps]]
name = "reason"
opening = "Reason:"
max_tokens = 6
[[variants.rationale.steps]]
name = "rating"
opening = "Rating:"
labels = { "1" = 1, "2" = 2, "3" = 3 }

[[demonstrations.binary]]
question = "Is it red?"
references = ["no", "no", "no", "yes"]
prediction = "no"
reason = "Most say no."
rating = "3"

[[demonstrations.long]]
question = "Who?"
references = ["Ada", "Ada Lovelace"]
prediction = "Bob"
caption = "two people"
reason = "Bob is not Ada."
rating = "1"
'''

GRADE = '''
format = 1
name = "test-grade"
version = 1
metric = "judge_grade"
system = "Grade it."
item = """
Question: {question}
Right answers: {references}
Answer: {prediction}"""

[variants.match]
[[variants.match.steps]]
name = "grade"
opening = "Grade:"
labels = { "0" = 0, "1" = 1, "2" = 2, "3" = 3, "4" = 4, "5" = 5 }
[[variants.match.steps]]
name = "verdict"
opening = "Correct:"
labels = { yes = 1, no = 0 }

[variants.extract]
correct_from = 0.9
[[variants.extract.steps]]
name = "facts"
opening = "Facts:"
max_tokens = 10
[[variants.extract.steps]]
name = "verdict"
opening = "Correct:"
labels = { yes = 1, no = 0 }
[[variants.extract.steps]]
name = "grade"
opening = "Grade:"
labels = { "0" = 0, "1" = 1, "2" = 2, "3" = 3, "4" = 4, "5" = 5 }
'''

SIMILARITY = """
format = 1
name = "test-similarity"
version = 1
metric = "judge_similarity"
item = "{question} / {references} / {prediction}"

[variants.similarity]
correct_from = 0.6
[[variants.similarity.steps]]
name = "similarity"
labels = { different = 0, akin = 0.5, alike = 1 }
"""

VERDICT = '''
format = 1
name = "test-verdict"
version = 1
metric = "judge_verdict"
system = "Say yes or no."
item = """
Question: {question}
Right answers: {references}
Answer: {prediction}"""

[variants.plain]
[[variants.plain.steps]]
name = "verdict"
opening = "Correct:"
labels = { yes = 1, no = 0 }

[variants.reasons]
[[variants.reasons.steps]]
name = "reason"
opening = "Reason:"
max_tokens = 10
[[variants.reasons.steps]]
name = "verdict"
opening = "Correct:"
labels = { yes = 1, no = 0 }
'''

SYNTHETIC = """
format = 1
name = "test-synthetic"
version = 1
metric = "synthetic"
[variants.sentence]
system = "Write one sentence."
item = "Q: {question}\\nA: {answer}"
steps = [{name = "sentence", opening = "S:", max_tokens = 12}]
[variants.again]
system = "Write one sentence."
item = "Q: {question}\\nA: {answer}\\nBefore, {problem}."
steps = [{name = "sentence", opening = "S:", max_tokens = 12}]
[[demonstrations.short]]
question = "Who swims?"
answer = "a duck"
sentence = "A duck swims."
"""
