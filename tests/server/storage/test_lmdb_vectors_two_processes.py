"""Two processes that fill one directory: generations come and go, and nobody reads what was not written."""

import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import hashlib, pathlib, random, sys
from gradewire_server.storage.lmdb_environment import StoreDirectory
from gradewire_server.storage.lmdb_vectors import Generations

directory = StoreDirectory(pathlib.Path(sys.argv[1]))
generations = Generations(directory, max_bytes=4 << 20)
directory.share()
source, found, seen = random.Random(int(sys.argv[2])), 0, set()
value = lambda key: hashlib.blake2b(key).digest() * 24
for turn in range(400):
    keys = [b"%06d" % source.randrange(20_000) for _ in range(32)]
    values, _ = generations.read(keys)
    for key, there in zip(keys, values):
        if there is not None:
            assert bytes(there) == value(key), key
            found += 1
    generations.write({key: value(key) for key in keys})
    seen |= set(generations._open)
assert generations.read(keys)[0] == [value(key) for key in keys]
generations.close(suspect=False)
directory.close()
print(found, max(seen))
"""


def test_they_rotate_together_and_read_what_was_written(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", _PROGRAM, str(tmp_path), str(seed)], stdout=subprocess.PIPE, text=True)
        for seed in (1, 2)
    ]
    try:
        said = [process.communicate(timeout=60)[0].split() for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert [process.returncode for process in processes] == [0, 0]
    for found, newest in said:
        assert int(found) > 0
        assert int(newest) >= 3
    left = [each for each in (tmp_path / "v1").iterdir() if each.name.startswith("predictions-")]
    assert len(left) == 2
