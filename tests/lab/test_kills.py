# SPDX-License-Identifier: Apache-2.0
"""kill -9 of each process of a run with a real guest, at a random time. Many more such runs, with a guest that is no
Linux: tests/faults/kill_driver.py."""

import pathlib
import random
import sys

import harness
from harness import expect

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "faults"))

import kills  # noqa: E402

# Until the guest works, or before; in the lab a boot takes some 3 s.
SECONDS = 8.0

WORK = """
i=0
while :; do
	i=$(((i + 1) % 8))
	head -c 8192 /dev/zero | tr '\\0' "$(printf '\\%o' $((97 + i)))" | dd bs=4096 of=w$i 2>/dev/null
	mv w$i w$(((i * 3) % 8)) 2>/dev/null
	rm -f w$(((i * 5 + 1) % 8))
done
"""


def kill(target, review, secret=False):
    delay = random.uniform(0, SECONDS)
    with harness.directory() as path:
        place = kills.Place(path, endless=True)
        place.environment.update(harness.cache())
        command = [harness.MVAGENT, "run", *harness.ROOT, "--json", "report.json",
                   "--share", f"{place.share}:review" if review else place.share,
                   *(["--allow", "example.com", "--secret", "TOKEN@api.example.com"] if secret else []), "--", "sh", "-c", WORK]
        run = kills.Run(place, harness.MVAGENT, command, target, delay)
        try:
            run.check(review)
        except kills.Failure as failure:
            raise harness.Failure(f"{target} after {delay:.2f} s: {failure}") from failure
        print(f"     {target} killed after {delay:.2f} s: all had ended after {1000 * run.seconds:.0f} ms", file=sys.stderr)


def test_hashes_are_known():
    """Else the supervisor hashes the image before it ends, and that takes a while here."""
    harness.run_ok("--", "true")
    kept = pathlib.Path(harness.cache().get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    expect((kept / "mvagent/hashes/hashes").exists(), "the run has kept no hashes")


def test_kill_of_the_supervisor():
    kill("mvagent", review=True)
    kill("mvagent", review=False)


def test_kill_of_everything():
    kill(kills.EVERYTHING, review=True)


def test_kill_of_each_other_process():
    for target in ("mvagent-vmm", "mvagent-blk", "mvagent-fs"):
        kill(target, review=random.random() < 0.5)


def test_kill_of_the_ways_out():
    for target in ("mvagent-relay", "mvagent-secret"):
        kill(target, review=True, secret=True)


if __name__ == "__main__":
    harness.main(globals())
