"""The importer on a table it writes itself; exit 77 (skipped) where pyarrow is missing."""

import pathlib
import sys
import tempfile

try:
    import pyarrow
    import pyarrow.parquet
except ImportError:
    print("skipped: pyarrow is not installed")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from fulcrum_tools import import_aiconfigurator as importer  # noqa: E402

EXPECTED = """op_name,kernel_source,gemm_dtype,m,n,k,latency_ms
gemm,lib,bfloat16,1,128,256,0.1
gemm,lib,bfloat16,2,128,256,2
"""

with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    place = root / "data" / "toy_gpu" / "gemm" / "sglang" / "0.5"
    place.mkdir(parents=True)
    pyarrow.parquet.write_table(
        pyarrow.table(
            {
                "framework": ["SGLang"] * 2,
                "version": ["0.5"] * 2,
                "device": ["Toy GPU"] * 2,
                "op_name": ["gemm"] * 2,
                "kernel_source": ["lib"] * 2,
                "gemm_dtype": ["bfloat16"] * 2,
                "m": [1, 2],
                "n": [128, 128],
                "k": [256, 256],
                "latency": [0.1, 2.0],
            }
        ),
        place / "gemm_perf.parquet",
    )
    (place / "moe_perf.parquet").write_text("version https://git-lfs.github.com/spec/v1\n")
    data = ["--data", str(root / "data"), "-o", str(root / "out")]

    assert importer.main(data + ["--table", "gemm_perf"]) == 0
    written = (root / "out" / "toy_gpu__gemm__sglang__0.5__gemm_perf.csv").read_text()
    assert written == EXPECTED, written
    # A pointer instead of data, an unknown system and a missing folder are bad input.
    assert importer.main(data + ["--table", "moe_perf"]) == 2
    assert importer.main(data + ["--system", "other"]) == 2
    assert importer.main(["--data", str(root / "nowhere")]) == 2
print("ok")
