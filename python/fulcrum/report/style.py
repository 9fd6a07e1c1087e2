"""Colours and number formats of the report."""

# Mid tones that stand out on white and on near-black alike; one per family, always the same.
FAMILIES = {
    "attention": ("attention", "#4c8dd6"),
    "indexer": ("indexer", "#e08a3c"),
    "moe": ("experts (MoE)", "#2fa39a"),
    "gemm_fp8": ("FP8 GEMM", "#d9605a"),
    "gemm_bf16": ("BF16 GEMM", "#9a7bd0"),
    "mhc": ("mHC", "#6aa84f"),
    "collective": ("collectives", "#d77fb0"),
    "head": ("head", "#b08968"),
    "elementwise": ("elementwise", "#8a919b"),
    "draft": ("draft", "#a8a63c"),
    "gap": ("GPU idle", "#5f6b7a"),
}
SERIES = ["#4c8dd6", "#e08a3c", "#2fa39a", "#d9605a", "#9a7bd0", "#6aa84f", "#d77fb0", "#a8a63c"]
VERDICTS = {"do": "#2fa39a", "cannot_tell": "#e08a3c", "skip": "#8a919b"}


def family_color(family):
    return FAMILIES.get(family, (family, "#8a919b"))[1]


def family_label(family):
    return FAMILIES.get(family, (family, ""))[0]


def faded(color, alpha):
    """The colour at an opacity."""
    red, green, blue = (int(color[i:i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def digits(value):
    """Three significant digits, without an exponent where that reads well."""
    if value == 0:
        return "0"
    magnitude = abs(value)
    if magnitude >= 99.95:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.1f}" if magnitude >= 9.995 else f"{value:.2f}"


def seconds(value):
    for limit, factor, unit in ((1.0, 1.0, "s"), (1e-3, 1e3, "ms"), (0.0, 1e6, "us")):
        if value >= limit:
            return f"{digits(value * factor)} {unit}"
    return ""


def size(value):
    for limit, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= limit:
            return f"{digits(value / limit)} {unit}"
    return f"{digits(value)} B"


def percent(fraction):
    return f"{100 * fraction:.1f} %"


def effort(minutes):
    if minutes >= 480:
        return f"{digits(minutes / 480)} days"
    return f"{digits(minutes / 60)} h" if minutes >= 120 else f"{digits(minutes)} min"
