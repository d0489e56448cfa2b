"""Make a stand-in for the AVE benchmark from labelled short answers.

`python -m benchmarks.agreement.ave_stand_in answers.jsonl --out standin.jsonl` is `gradewire bench make-ave`, under the
name that the tables in benchmarks/results/ave.md were made with. In SFVE's paper (section 3.3), a language model wrote
the descriptions; here, templates and dictionaries write them.
"""

from gradewire_cli.bench.make_ave import make_ave_command

if __name__ == "__main__":
    make_ave_command(prog_name="ave_stand_in")
