# SPDX-License-Identifier: BSD-3-Clause
# The extension module is private: its functions take addresses.
from typing import Any

VERSION: str
TYPES: dict[str, int]

class Context: ...
class Object: ...

def __getattr__(name: str) -> Any: ...
