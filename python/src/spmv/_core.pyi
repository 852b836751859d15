# SPDX-License-Identifier: BSD-3-Clause
# The extension module is private: its functions take addresses.
from typing import Any, final

VERSION: str
TYPES: dict[str, int]

@final
class Context: ...

@final
class Object: ...

def __getattr__(name: str) -> Any: ...
