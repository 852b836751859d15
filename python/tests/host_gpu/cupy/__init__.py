# SPDX-License-Identifier: BSD-3-Clause
"""The part of CuPy that spmv and test_gpu.py use, with arrays in host memory.

It goes with a build of spmv for the emulated GPU of tests/emulated_gpu, whose device memory is host
memory. Streams are numbers that the emulation takes for handles.
"""

import numpy as np

float64, float32, int32, int64 = np.float64, np.float32, np.int32, np.int64


class _Pointer:
    def __init__(self, ptr):
        self.ptr, self.device_id = ptr, 0


class ndarray:
    def __init__(self, a):
        self.a = np.asarray(a)
        self.shape, self.dtype, self.flags, self.size = self.a.shape, self.a.dtype, self.a.flags, self.a.size
        self.data = _Pointer(self.a.ctypes.data)
        self.device = cuda.Device(0)

    @property
    def __cuda_array_interface__(self):
        about = dict(self.a.__array_interface__)
        about.pop("descr", None)
        about["version"], about["stream"] = 3, None
        return about

    def get(self):
        return self.a.copy()

    def set(self, a):
        self.a[...] = a

    def copy(self):
        return ndarray(self.a.copy())

    def astype(self, dtype):
        return ndarray(self.a.astype(dtype))

    def reshape(self, *shape):
        return ndarray(self.a.reshape(*shape))

    def __getitem__(self, where):
        return ndarray(self.a[where])

    def __setitem__(self, where, value):
        self.a[where] = value.a if isinstance(value, ndarray) else value

    def __truediv__(self, other):
        return ndarray(self.a / other.a)

    def __sub__(self, other):
        return ndarray(self.a - other.a)

    def __mul__(self, other):
        return ndarray(self.a * (other.a if isinstance(other, ndarray) else other))

    __rmul__ = __mul__

    def sum(self):
        return self.a.sum()


class cuda:
    class Device:
        def __init__(self, number=0):
            self.id = number

        def __enter__(self):
            return self

        def __exit__(self, *ignored):
            return False

        def synchronize(self):
            pass

    class Stream:
        ptr = 0
        current = None

        def __init__(self, ptr=2, non_blocking=False):
            self.ptr = ptr  # cudaStreamPerThread

        def __enter__(self):
            self.before, cuda.Stream.current = cuda.Stream.current, self

        def __exit__(self, *ignored):
            cuda.Stream.current = self.before
            return False

    class runtime:
        @staticmethod
        def getDevice():
            return 0

    @staticmethod
    def get_current_stream():
        return cuda.Stream.current or cuda.Stream(0)

    @staticmethod
    def is_available():
        return True


class _Interface:
    def __init__(self, about, owner):
        self.__array_interface__ = {k: v for k, v in about.items() if k != "stream"}
        self.owner = owner


def asarray(a, dtype=None):
    if isinstance(a, ndarray):
        return a
    if hasattr(a, "__cuda_array_interface__"):
        return ndarray(np.asarray(_Interface(a.__cuda_array_interface__, a)))
    return ndarray(np.array(a, dtype=dtype))


def ascontiguousarray(a, dtype=None):
    return ndarray(np.ascontiguousarray(a.a, dtype))


def empty(shape, dtype=float, order="C"):
    return ndarray(np.empty(shape, dtype, order))


def asnumpy(a):
    return a.get()
