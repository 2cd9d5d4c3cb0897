# SPDX-License-Identifier: BSD-3-Clause
"""The interface of perfflowaspect.aspect; see copper-mark(1)."""
from copper_mark import async_event, critical_path, sync_event

__all__ = ["critical_path", "sync_event", "async_event"]
