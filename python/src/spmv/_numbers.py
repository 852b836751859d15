# SPDX-License-Identifier: BSD-3-Clause
"""Plans and patterns by number: the compiled programs of PyTorch and JAX keep numbers, not objects."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

_numbers = itertools.count(1)
_by_number: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def numbered(thing: Any) -> int:
    """A number for a plan or pattern, that none had before."""
    number = next(_numbers)
    _by_number[number] = thing
    return number


def with_number(number: int) -> Any:
    """The plan or pattern with this number."""
    found = _by_number.get(int(number))
    if found is None:
        raise RuntimeError("the plan or pattern of this function no longer exists: keep it as long as the function")
    return found
