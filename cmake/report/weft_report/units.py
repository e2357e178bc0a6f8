# SPDX-License-Identifier: BSL-1.0
"""Numbers for people."""

UNITS = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"), (1e-3, "ns"))


def unit_of(microseconds):
    """The unit in which such a time is best said: (microseconds, name)."""
    return next((u for u in UNITS if microseconds >= u[0]), UNITS[-1])


def time(microseconds):
    size, name = unit_of(microseconds)
    return f"{microseconds / size:.3g} {name}" if microseconds < 999.5e6 else f"{microseconds / 1e6:.0f} s"


def percent(part):
    value = 100 * part
    if 99.5 <= value < 100:
        return f"{min(value, 99.9):.1f} %"
    if 0 < value < 9.95:
        return f"{value:.1f} %" if value >= 0.05 else "under 0.1 %"
    return f"{value:.0f} %"


def number(count):
    return f"{count:,}"
