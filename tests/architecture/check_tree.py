#!/usr/bin/env python3
"""Checks of the source tree that no compiler makes: `check_tree.py ROOT RULE`.

Each rule is a function from the root folder to a list of complaints; the exit status is 1 if there
is any. The rules read what git tracks, or every file below a root that is not a checkout.
"""

import pathlib
import re
import subprocess
import sys

SOURCE_SUFFIXES = {".cpp", ".h", ".cu", ".cuh"}
# Past this a file is probably two things; the style guide asks for about 400.
MAX_LINES = 450
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CUDA_HEADER = re.compile(
    r"^(cuda|cuda[A-Z_].*|cublas.*|nvml|nccl|mma|cooperative_groups.*|sm_\d+.*|vector_types|"
    r"device_launch_parameters|nv)(\.h|/.*)$")
THIRD_PARTY = {"nlohmann": "nlohmann/", "Eigen": "Eigen/", "boost": "boost/",
               "pybind11": "pybind11/", "gtest": "gtest/", "benchmark": "benchmark/"}
# Folders whose C++ may include anything: they sit on top of everything.
UNRESTRICTED = {"tests"}


def tracked_files(root):
    """Paths relative to `root`, tracked or about to be; build folders are ignored by git."""
    if (root / ".git").exists():
        listing = subprocess.run(
            ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z", "--cached",
             "--others", "--exclude-standard"],
            check=True, capture_output=True, text=True).stdout
        paths = [pathlib.PurePosixPath(p) for p in listing.split("\0") if p]
        return [p for p in paths if (root / p).is_file()]
    return sorted(pathlib.PurePosixPath(p.relative_to(root).as_posix())
                  for p in root.rglob("*") if p.is_file())


def source_files(root):
    return [p for p in tracked_files(root) if p.suffix in SOURCE_SUFFIXES]


def read_table(path):
    """folder -> (allowed project folders, allowed third parties)."""
    table = {}
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        folder, allowed = line.split(":")
        project, _, third_party = allowed.partition(";")
        table[folder.strip()] = (set(project.split()), set(third_party.split()))
    return table


def owner(path, table):
    """The longest folder of `table` that holds `path`, or None."""
    for parent in path.parents:
        if str(parent) in table:
            return str(parent)
    return None


def third_party_of(header):
    for name, prefix in THIRD_PARTY.items():
        if header.startswith(prefix):
            return name
    return "cuda" if CUDA_HEADER.match(header) else None


def check_includes(root):
    """Dependencies run one way, as dependencies.txt says; project includes start at the root."""
    table = read_table(pathlib.Path(__file__).with_name("dependencies.txt"))
    complaints = []
    for path in source_files(root):
        if path.parts[0] in UNRESTRICTED:
            continue
        home = owner(path, table)
        if home is None:
            complaints.append(f"{path}: its folder is not in dependencies.txt")
            continue
        project, third_parties = table[home]
        for number, line in enumerate((root / path).read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            quote, header = match.groups()
            party = third_party_of(header)
            where = f"{path}:{number}"
            if party is not None:
                if party not in third_parties:
                    complaints.append(f"{where}: {home} may not include {party} ({header})")
                elif party == "cuda" and "_reference." in path.name:
                    complaints.append(f"{where}: host references include nothing of CUDA")
                continue
            if quote == "<" and not (root / header).is_file():
                continue
            included = owner(pathlib.PurePosixPath(header), table)
            if included is None:
                complaints.append(f"{where}: \"{header}\" is not rooted at the repository")
            elif included not in project:
                complaints.append(f"{where}: {home} may not include {included} ({header})")
    return complaints


def check_length(root):
    """Source files stay small enough to be read in one sitting."""
    complaints = []
    for path in tracked_files(root):
        if path.suffix in SOURCE_SUFFIXES | {".py", ".cmake"} or path.name == "CMakeLists.txt":
            with open(root / path, encoding="utf-8") as file:
                lines = sum(1 for _ in file)
            if lines > MAX_LINES:
                complaints.append(f"{path}: {lines} lines, more than {MAX_LINES}")
    return complaints


def check_readmes(root):
    """Every top-level folder says in a README what belongs in it."""
    folders = {p.parts[0] for p in tracked_files(root) if len(p.parts) > 1}
    return [f"{folder}/README.md is missing"
            for folder in sorted(folders)
            if not folder.startswith(".") and folder != "cmake"
            and not (root / folder / "README.md").is_file()]


def check_json(root):
    """JSON is touched only in io folders, the command line, and tests: never in the laws."""
    complaints = []
    for path in source_files(root):
        if path.parts[0] in UNRESTRICTED | {"cli"} or "io" in path.parts[:-1]:
            continue
        for number, line in enumerate((root / path).read_text().splitlines(), 1):
            if re.search(r"\bnlohmann\b|\bjson\.hpp\b", line):
                complaints.append(f"{path}:{number}: JSON outside an io folder")
    return complaints


def check_headers(root):
    """Headers guard against double inclusion the same way everywhere."""
    return [f"{path}: no #pragma once"
            for path in source_files(root)
            if path.suffix in {".h", ".cuh"} and "#pragma once" not in (root / path).read_text()]


RULES = {"includes": check_includes, "length": check_length, "readmes": check_readmes,
         "json": check_json, "headers": check_headers}


def main(argv):
    if len(argv) != 3 or argv[2] not in RULES:
        print(f"usage: check_tree.py ROOT {{{'|'.join(RULES)}}}", file=sys.stderr)
        return 2
    complaints = RULES[argv[2]](pathlib.Path(argv[1]))
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
