# SPDX-License-Identifier: Apache-2.0
"""Who the command is to git: nobody unless --git-identity says so, and then the user's name and address and nothing else."""

import os
import pathlib
import subprocess

import harness
from harness import directory, expect, expect_equal, expect_in

SETTINGS = """[user]
	name = "Ada \\"Countess\\" Lovelace"
	email = ada@example.com
	signingkey = 0123456789ABCDEF
[credential]
	helper = store
[commit]
	gpgsign = true
"""

COMMIT = ("git commit -q --allow-empty -m made; git log -1 --format='%an <%ae> %cn <%ce>'; git config user.name; git config user.email;"
          "git config --list --show-origin | grep -v file:.git/config; cat /etc/gitconfig; env | grep GIT_")


def user(place, settings):
    """The environment of a user whose git is configured so."""
    (place / ".gitconfig").write_text(settings)
    return {"PATH": os.environ["PATH"], "HOME": str(place), "GIT_CONFIG_NOSYSTEM": "1", "XDG_STATE_HOME": f"{place}/state",
            **harness.cache()}


def repository(place, *settings):
    git = ["git", "-C", str(place)]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True, capture_output=True)
    for name, value in settings:
        subprocess.run([*git, "config", name, value], check=True)


def test_commits_in_the_users_name():
    with directory() as home, directory() as share:
        repository(share)
        result = harness.run("--git-identity", "--share", str(share), "--", "sh", "-c", COMMIT, env=user(home, SETTINGS))
        name = 'Ada "Countess" Lovelace'
        expect_equal(result.out.splitlines(),
                     [f"{name} <ada@example.com> {name} <ada@example.com>", name, "ada@example.com",
                      f"file:/etc/gitconfig\tuser.name={name}", "file:/etc/gitconfig\tuser.email=ada@example.com",
                      "[user]", '\tname = "Ada \\"Countess\\" Lovelace"', '\temail = "ada@example.com"'], f"in the guest: {result.err}")
        # On the host it is a commit like any other.
        told = subprocess.run(["git", "-c", f"safe.directory={share}", "-C", str(share), "log", "-1", "--format=%an <%ae>"],
                              check=True, capture_output=True, text=True)
        expect_equal(told.stdout.strip(), f"{name} <ada@example.com>", "the commit on the host")


def test_a_repository_counts_more():
    with directory() as home, directory() as share:
        repository(share, ("user.email", "ada@project.example.com"))
        result = harness.run("--git-identity", "--share", str(share), "--", "sh", "-c", COMMIT, env=user(home, SETTINGS))
        expect_equal(result.out.splitlines()[2], "ada@project.example.com", result.err)
        expect_in("<ada@project.example.com>", result.out.splitlines()[0])


def test_nothing_unasked():
    with directory() as home, directory() as share:
        repository(share)
        result = harness.run("--share", str(share), "--", "sh", "-c", COMMIT, env=user(home, SETTINGS))
        expect("Lovelace" not in result.out and "example.com" not in result.out, f"in the guest: {result.out}")
        expect_in("tell me who you are", result.err)


def test_an_identity_that_is_missing():
    with directory() as home:
        result = harness.run("--git-identity", "--", "true", env=user(home, "[user]\n\tname = Ada\n"))
        expect_equal(result.status, 125, "status")
        expect_in("--git-identity: your git has no user.email; set it: git config --global user.email", result.err)


def test_the_record_says_that_it_was_passed_and_not_what():
    with directory() as home, directory() as records:
        result = harness.run("--git-identity", "--record", str(records), "--", "true", env=user(home, SETTINGS))
        expect_equal(result.status, 0, result.err)
        text = "".join(path.read_text() for path in pathlib.Path(records).rglob("*.jsonl"))
        expect_in('"git_identity":true', text)
        expect("Lovelace" not in text, "the name is in the record")


if __name__ == "__main__":
    harness.main(globals())
