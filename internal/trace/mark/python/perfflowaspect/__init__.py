# SPDX-License-Identifier: BSD-3-Clause
"""In the place of PerfFlowAspect's package: programs that import it are marked by copper_mark."""
