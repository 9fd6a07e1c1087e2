"""One self-contained HTML page about one or more scenarios: `write(["campaign-a"], "report.html")`.

The page draws what the library answers; nothing is computed here. It needs plotly to be written and
nothing to be read: the plotting library is inside the page, and no address is fetched.
"""

from .page import write

__all__ = ["write"]
