# SPDX-License-Identifier: BSD-3-Clause
"""The version of the package; test_package.py compares it with that of the library."""

__version__ = "0.9.0"
