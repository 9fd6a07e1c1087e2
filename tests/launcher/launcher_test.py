#!/usr/bin/env python3
"""The launcher builds when it must, goes straight to the program when it may, and says why not.

Usage: launcher_test.py LAUNCHER. Each case runs a copy of the launcher in a scratch checkout with
stand-ins for the compiler, CMake and Ninja, so that no build takes place.
"""

import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

LAUNCHER = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None

# Configures by writing build.ninja, builds by writing a program that prints its arguments.
FAKE_CMAKE = """#!/bin/sh
echo "cmake $*" >>"$FAKE_LOG"
[ -z "${FAKE_FAILURE:-}" ] || { echo "$FAKE_FAILURE"; exit 1; }
case $1 in
  -S) mkdir -p "$4/cli"; : >"$4/build.ninja" ;;
  --build) printf '#!/bin/sh\\necho "program:$*:$PWD"\\nexit 7\\n' >"$2/cli/fulcrum"
           chmod +x "$2/cli/fulcrum" ;;
esac
"""
TOOLS = ["sh", "cat", "chmod", "cp", "dirname", "grep", "git", "id", "ls", "mkdir", "readlink", "rm", "tail"]


class Launcher(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.scratch = pathlib.Path(folder.name).resolve()
        self.bin = self.scratch / "bin"
        self.bin.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool))
        self.fake("cmake", FAKE_CMAKE)
        self.fake("ninja", "#!/bin/sh\n")
        self.fake("g++", "#!/bin/sh\n")
        self.root = self.scratch / "checkout"
        self.root.mkdir()
        shutil.copy(LAUNCHER, self.root / "fulcrum")
        self.git("init", "-q", "-b", "main")
        self.commit("first")

    def fake(self, name, text):
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def git(self, *arguments, cwd=None):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments],
                       cwd=cwd or self.root, check=True, capture_output=True)

    def commit(self, message):
        self.git("commit", "-q", "--allow-empty", "-m", message)

    def run_launcher(self, *arguments, launcher=None, cwd=None, **environment):
        self.log = self.scratch / "log"
        self.log.write_text("")
        return subprocess.run(
            [str(launcher or self.root / "fulcrum"), *arguments], cwd=cwd or self.scratch,
            env={"PATH": str(self.bin), "FAKE_LOG": str(self.log), **environment},
            capture_output=True, text=True, check=False)

    def child_seconds(self):
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    def num_builds(self):
        return self.log.read_text().count("cmake --build")

    def test_first_use_builds_then_runs_with_the_callers_arguments_folder_and_exit_status(self):
        result = self.run_launcher("predict", "a b")
        self.assertEqual((result.returncode, result.stdout),
                         (7, f"program:predict a b:{self.scratch}\n"))
        self.assertEqual(self.num_builds(), 1)
        self.assertIn("-DCMAKE_BUILD_TYPE=Release", self.log.read_text())

    def test_later_uses_go_straight_to_the_program(self):
        self.run_launcher("predict")
        before = self.child_seconds()
        result = self.run_launcher("predict")
        self.assertEqual((self.num_builds(), result.stderr), (0, ""))
        # 2 ms on the machine it was written on; processor time, since CI machines are busy.
        self.assertLess(self.child_seconds() - before, 0.05)

    def test_a_new_commit_rebuilds(self):
        self.run_launcher("predict")
        self.commit("second")
        self.run_launcher("predict")
        self.assertEqual(self.num_builds(), 1)
        self.run_launcher("predict")
        self.assertEqual(self.num_builds(), 0)

    def test_commits_are_found_in_packed_refs_and_in_detached_checkouts(self):
        self.git("pack-refs", "--all")
        self.run_launcher("predict")
        self.git("checkout", "-q", "--detach")
        self.run_launcher("predict")
        self.assertEqual(self.num_builds(), 0)
        self.commit("second")
        self.run_launcher("predict")
        self.assertEqual(self.num_builds(), 1)

    def test_a_linked_worktree_has_its_own_commit(self):
        self.git("add", "fulcrum")
        self.commit("with the launcher")
        worktree = self.scratch / "worktree"
        self.git("worktree", "add", "-q", "-b", "other", str(worktree))
        self.run_launcher("predict", launcher=worktree / "fulcrum")
        self.assertEqual(self.num_builds(), 1)
        self.commit("on main only")
        self.run_launcher("predict", launcher=worktree / "fulcrum")
        self.assertEqual(self.num_builds(), 0)
        self.git("commit", "-q", "--allow-empty", "-m", "there", cwd=worktree)
        self.run_launcher("predict", launcher=worktree / "fulcrum")
        self.assertEqual(self.num_builds(), 1)

    def test_it_works_without_git_and_through_a_link(self):
        shutil.rmtree(self.root / ".git")
        link = self.scratch / "link"
        link.symlink_to(self.root / "fulcrum")
        self.run_launcher("predict")
        self.assertEqual(self.run_launcher("predict", launcher=link).returncode, 7)
        self.assertEqual(self.num_builds(), 0)

    def test_a_failed_build_shows_its_end_and_is_tried_again(self):
        result = self.run_launcher("predict", FAKE_FAILURE="compiler says no")
        self.assertEqual(result.returncode, 1)
        self.assertIn("compiler says no", result.stderr)
        self.assertEqual(self.run_launcher("predict").returncode, 7)

    def test_missing_packages_are_named_before_anything_is_done(self):
        (self.bin / "g++").unlink()
        result = self.run_launcher("predict")
        self.assertEqual(result.returncode, 1)
        self.assertIn("packages are missing: g++", result.stderr)
        self.assertIn("no apt-get on this system", result.stderr)
        self.assertEqual(self.log.read_text(), "")

    def test_what_apt_cannot_provide_is_an_error_with_its_output(self):
        (self.bin / "g++").unlink()
        self.fake("apt-get", "#!/bin/sh\necho apt is broken\nexit 100\n")
        self.fake("sudo", '#!/bin/sh\nexec "$@"\n')
        result = self.run_launcher("predict")
        self.assertEqual(result.returncode, 1)
        self.assertIn("apt is broken", result.stderr)

    def test_packages_are_installed_then_the_program_is_built(self):
        (self.bin / "g++").unlink()
        self.fake("apt-get", f"#!/bin/sh\necho \"apt-get $*\" >>\"$FAKE_LOG\"\n"
                  f"cp {self.bin}/ninja {self.bin}/g++\n")
        self.fake("env", '#!/bin/sh\nshift\nexec "$@"\n')
        self.fake("sudo", '#!/bin/sh\nexec "$@"\n')
        self.assertEqual(self.run_launcher("predict").returncode, 7)
        self.assertRegex(self.log.read_text(), r"apt-get update.*\napt-get install -y .* g\+\+\n")

    def test_build_passes_options_on(self):
        self.run_launcher("build", "-DFULCRUM_ENABLE_CUDA=ON")
        self.assertIn("-DFULCRUM_ENABLE_CUDA=ON", self.log.read_text())


if __name__ == "__main__":
    assert os.access(LAUNCHER, os.X_OK), "usage: launcher_test.py LAUNCHER"
    unittest.main()
