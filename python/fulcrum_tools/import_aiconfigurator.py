"""Turn aiconfigurator's Parquet tables into the CSV form that `fulcrum calibrate` reads.

The tables come with `pip install aiconfigurator-core` (seen with 0.12.0) as
aiconfigurator_core/systems/data/<system>/<family>/<engine>/<version>/<table>.parquet. Each becomes
<system>__<family>__<engine>__<version>__<table>.csv: the same rows in the same order, `latency` renamed
`latency_ms` (its unit), and the columns that the file name repeats (framework, version, device) or that
no reader needs (architecture) left out. Numbers are written as the shortest text that gives the same
double, so nothing is rounded.

    python -m fulcrum_tools.import_aiconfigurator --system h200_sxm --engine sglang -o tables/
    fulcrum calibrate tables/*gemm_perf.csv --report

Exit status: 0 ok, 1 a file could not be written, 2 bad usage or nothing found.
"""

import argparse
import csv
import importlib.util
import pathlib
import sys

# The tables whose form calibrate/io/table_kinds.cpp knows.
TABLES = (
    "gemm_perf",
    "moe_perf",
    "nccl_perf",
    "custom_allreduce_perf",
    "mhc_module_perf",
    "dsv4_csa_generation_module_perf",
    "dsv4_hca_generation_module_perf",
    "dsv4_paged_mqa_logits_module_perf",
)
LEFT_OUT = ("framework", "version", "device", "architecture")


class ImportProblem(Exception):
    """Bad input; the message says what was found and what is needed."""


def find_data(explicit):
    """The folder systems/data: as given, or of the installed package."""
    if explicit:
        folder = pathlib.Path(explicit)
        if not folder.is_dir():
            raise ImportProblem(f"--data: {folder} is not a folder")
        return folder
    spec = importlib.util.find_spec("aiconfigurator_core")
    if spec is None or not spec.submodule_search_locations:
        raise ImportProblem(
            "aiconfigurator_core is not installed (pip install --no-deps aiconfigurator-core), "
            "or name its systems/data folder with --data"
        )
    return pathlib.Path(next(iter(spec.submodule_search_locations))) / "systems" / "data"


def parquet_files(data, systems, engines, versions, tables):
    """(path, name parts) of every table wanted, sorted."""
    found = []
    for path in sorted(data.glob("*/*/*/*/*.parquet")):
        system, family, engine, version = path.parts[-5:-1]
        table = path.stem
        if (
            table in tables
            and (not systems or system in systems)
            and (not engines or engine in engines)
            and (not versions or version in versions)
        ):
            found.append((path, (system, family, engine, version, table)))
    return found


def text_of(value):
    """Shortest exact text of a cell; integers without a decimal point."""
    if value is None:
        return ""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return str(value)


def convert(path, target):
    """Writes one table; returns the number of rows."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportProblem("pyarrow is not installed (pip install pyarrow)") from error
    with open(path, "rb") as handle:
        if handle.read(7) == b"version":
            raise ImportProblem(f"{path} is a Git LFS pointer, not data: git lfs pull")
    table = pyarrow.parquet.read_table(path)
    if "latency" not in table.column_names:
        raise ImportProblem(f"{path}: no column 'latency' among {', '.join(table.column_names)}")
    columns = [name for name in table.column_names if name not in LEFT_OUT]
    header = ["latency_ms" if name == "latency" else name for name in columns]
    cells = [table.column(name).to_pylist() for name in columns]
    with open(target, "w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(header)
        for row in zip(*cells):
            writer.writerow([text_of(value) for value in row])
    return table.num_rows


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m fulcrum_tools.import_aiconfigurator",
        description=__doc__.split("\n\n")[0],
        epilog="example: python -m fulcrum_tools.import_aiconfigurator --system h200_sxm -o tables/",
    )
    parser.add_argument("--data", help="systems/data folder (default: of the installed package)")
    parser.add_argument("--system", action="append", default=[], help="e.g. h200_sxm; repeatable")
    parser.add_argument("--engine", action="append", default=[], help="e.g. sglang; repeatable")
    parser.add_argument("--engine-version", action="append", default=[], help="repeatable")
    parser.add_argument(
        "--table", action="append", default=[], choices=TABLES, help="repeatable (default: all)"
    )
    parser.add_argument("-o", "--output", default=".", help="folder to write to")
    options = parser.parse_args(arguments)
    try:
        data = find_data(options.data)
        files = parquet_files(
            data, options.system, options.engine, options.engine_version, options.table or TABLES
        )
        if not files:
            systems = sorted(entry.name for entry in data.iterdir() if entry.is_dir())
            raise ImportProblem(f"no such table in {data}; systems there: {', '.join(systems)}")
        output = pathlib.Path(options.output)
        output.mkdir(parents=True, exist_ok=True)
        for path, parts in files:
            target = output / ("__".join(parts) + ".csv")
            print(f"{target}: {convert(path, target)} rows")
    except ImportProblem as problem:
        print(f"import_aiconfigurator: {problem}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"import_aiconfigurator: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
