# SPDX-License-Identifier: BSL-1.0
"""The parts of weft-report: `trace` reads, `measure` computes, `advice` concludes, `draw` and `page` show."""
