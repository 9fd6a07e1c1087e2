"""`python -m fulcrum.report`, which `fulcrum report` calls."""

import argparse
import json
import sys

from .._fulcrum import InputError


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="fulcrum report", description="Writes one self-contained HTML page with plots.",
        epilog="example: fulcrum report campaign-a campaign-b -o report.html")
    parser.add_argument("scenarios", nargs="*", default=["campaign-a"], metavar="SCENARIO")
    parser.add_argument("-o", "--output", default="report.html")
    parser.add_argument("-c", "--concurrency", help="requests in flight, e.g. 1,8,16")
    parser.add_argument("--cases", action="append", default=[],
                        help="measured cases (JSONL) to draw beside the prediction; repeatable")
    parser.add_argument("--json", action="store_true", help="print what was written as JSON")
    arguments = parser.parse_args(argv)
    concurrency = None
    if arguments.concurrency:
        try:
            concurrency = [float(part) for part in arguments.concurrency.split(",")]
        except ValueError:
            print(f"fulcrum: error: command line: --concurrency: is \"{arguments.concurrency}\" "
                  "(allowed: numbers, comma separated)", file=sys.stderr)
            return 2
    try:
        from .page import write
    except ImportError as error:
        print(f"fulcrum: error: {error}: run `pip install plotly`", file=sys.stderr)
        return 1
    try:
        written = write(arguments.scenarios, arguments.output, concurrency=concurrency,
                        cases=arguments.cases)
    except InputError as error:
        print(f"fulcrum: error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"fulcrum: error: {error}", file=sys.stderr)
        return 1
    if arguments.json:
        print(json.dumps({"schema": "fulcrum/report/1", **written}, indent=1))
    else:
        print(f"wrote {written['file']}: {len(written['plots'])} plots, "
              f"{written['bytes'] / 1e6:.1f} MB", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
