# SPDX-License-Identifier: GPL-2.0-or-later
"""A plan under each commit of a range: each is compared with the one before it."""

import subprocess
import sys
from pathlib import Path

from .. import cache
from ..errors import ToolError, UsageError
from . import results, tree

KIND = "ci-clone"
MOST = 100


def main(span, output, baseline, test):
    """Test the commits of a range, the oldest first; the exit status: the first one's that is not 0.

    output: the folder that gets one for each commit, or None: beside the clone. test(path, baseline, output): (results.Run,
    exit status).
    """
    repository = git(Path.cwd(), "rev-parse", "--path-format=absolute", "--git-common-dir",
                     cure=f"run this in a tree of git, or give the folder of a tree: {span} is no folder")
    hashes = git(Path.cwd(), "rev-list", "--reverse", span, "--", cure="give a range such as v6.12..HEAD").split()
    if not 1 <= len(hashes) <= MOST:
        raise UsageError(f"{span} has {len(hashes)} commits", f"give a range with 1 to {MOST} commits")
    clone = clone_of(repository)
    folder = Path(output or clone.with_name(f"{clone.name}-reports"))
    rows, worst = [], 0
    for number, commit in enumerate(hashes, 1):
        git(clone, "checkout", "--quiet", "--force", "--detach", commit)
        title = tree.commit(clone)
        print(f"== {number}/{len(hashes)}: {title}", flush=True)
        run = None
        try:
            run, status = test(clone, baseline, folder / f"{number:03}-{commit[:12]}")
            change = results.compare(run, baseline)
            word = ", ".join(f"{len(names)} {kind}" for kind, names in vars(change).items() if names) or "as before"
        except UsageError:
            raise
        except ToolError as error:
            print(f"hghca: {error}", file=sys.stderr)
            status, word = results.STATUS_UNTESTABLE, "cannot be tested"
        rows.append((title, word))
        worst = worst or status
        baseline = run or baseline
    for title, word in rows:
        print(f"{word}: {title}")
    return worst


def clone_of(repository):
    """A clone that shares the objects of a repository, which stays as it is; the clone is kept for later runs."""
    clone = cache.root() / KIND / cache.key(repository)
    if not (clone / ".git").is_dir():
        clone.parent.mkdir(exist_ok=True)
        git(clone.parent, "clone", "--quiet", "--shared", "--no-checkout", repository, str(clone))
    return clone


def git(folder, *arguments, cure=None):
    """The output of git in a folder; ToolError with what it says."""
    try:
        done = subprocess.run([*tree.COMMIT, str(folder), *arguments], capture_output=True, text=True)
    except FileNotFoundError:
        raise ToolError("git is missing", "install the package git, or give the folder of a tree") from None
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise UsageError(f"git {arguments[0]}: {said[0] if said else f'status {done.returncode}'}", cure)
    return done.stdout.strip()
