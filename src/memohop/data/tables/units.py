"""Units of one dimension, which a fixed factor converts, and currencies, which nothing does."""

from __future__ import annotations

_INCH, _POUND, _DAY = 0.0254, 0.45359237, 86_400.0
_YEAR = 365.25 * _DAY
_DIMENSIONS: tuple[dict[str, float], ...] = (
    {
        "mm": 1e-3,
        "cm": 1e-2,
        "m, metre, meter": 1.0,
        "km, kilometre, kilometer": 1e3,
        'in, inch, inche, ", \u2033': _INCH,
        "ft, foot, feet, \u2032": 12 * _INCH,
        "yd, yard": 36 * _INCH,
        "mi, mile": 5280 * 12 * _INCH,
        "nmi, NM": 1852.0,
    },
    {
        "mg": 1e-6,
        "g, gram": 1e-3,
        "kg, kilo, kilogram": 1.0,
        "t, tonne": 1e3,
        "oz, ounce": _POUND / 16,
        "lb, pound": _POUND,
        "stone": 14 * _POUND,
    },
    {
        "ms": 1e-3,
        "s, sec, second": 1.0,
        "min, minute": 60.0,
        "h, hr, hour": 3600.0,
        "d, day": _DAY,
        "wk, week": 7 * _DAY,
        "mo, month": _YEAR / 12,
        "y, yr, year": _YEAR,
    },
    {
        "B": 1.0,
        "kB, KB": 1e3,
        "MB": 1e6,
        "GB": 1e9,
        "TB": 1e12,
        "KiB": 2.0**10,
        "MiB": 2.0**20,
        "GiB": 2.0**30,
        "TiB": 2.0**40,
    },
    {
        "cm2, cm²": 1e-4,
        "m2, m², sqm, sq m": 1.0,
        "km2, km², sq km": 1e6,
        "ft2, ft², sqft, sq ft": (12 * _INCH) ** 2,
        "ha, hectare": 1e4,
        "acre": 43_560 * (12 * _INCH) ** 2,
        "sq mi": (5280 * 12 * _INCH) ** 2,
    },
    {"ml, mL": 1e-3, "cl": 1e-2, "dl": 0.1, "l, L, litre, liter": 1.0},
    {"m/s": 1.0, "km/h, kmh, kph": 1 / 3.6, "mph": 0.44704, "kn, knot": 1852 / 3600},
    {"W": 1.0, "kW": 1e3, "MW": 1e6, "GW": 1e9},
    {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9},
    {"‰": 0.1, "%, percent": 1.0},
    {"$, US$, USD": 1.0},
    {"€, EUR": 1.0},
    {"£, GBP": 1.0},
)
_UNITS = {
    unit: (number, factor)
    for number, units in enumerate(_DIMENSIONS)
    for names, factor in units.items()
    for unit in names.split(", ")
}


def factor(unit: str, into: str) -> float | None:
    """What converts a number from a unit into another one; None if there is no fixed factor.

    A month is a twelfth of a year of 365.25 days. Units of more than one letter may also be in
    capitals.

    Example:
        >>> factor("m", "cm"), factor("kg", "m"), factor("hour", "min")
        (100.0, None, 60.0)
    """
    if unit == into:
        return 1.0
    of, target = _known(unit), _known(into)
    if of is None or target is None or of[0] != target[0]:
        return None
    return of[1] / target[1]


def is_converted(unit: str) -> bool:
    """Whether there are units that are converted into this one."""
    return _known(unit) is not None


def _known(unit: str) -> tuple[int, float] | None:
    return _UNITS.get(unit) or (_UNITS.get(unit.lower()) if len(unit) > 1 else None)
