#!/usr/bin/env python3
"""Tests cmake/SpmvCuda.cmake with SPMV_CUDA=GPU: whether the CUDA backend is built follows the
driver of the machine, here a stand-in for nvidia-smi.

usage: test_gpu_choice.py SOURCE CMAKE

SPDX-License-Identifier: BSD-3-Clause
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

CMAKE = sys.argv.pop(2) if __name__ == "__main__" else ""
SOURCE = os.path.abspath(sys.argv.pop(1)) if __name__ == "__main__" else ""

# Without languages, as no compiler for CUDA may be on this machine.
SCRIPT = """
cmake_minimum_required(VERSION 3.24)
set(PROJECT_SOURCE_DIR "{source}")
list(APPEND CMAKE_MODULE_PATH "{source}/cmake")
include(SpmvChoice)
include(SpmvFind)
spmv_choice(SPMV_CUDA "" GPU)
spmv_find_gpu(gpu)
message(STATUS "found ${{gpu}}")
if(NOT gpu)
  include(SpmvCuda)
  message(STATUS "lacks <${{SPMV_CUDA_LACKS}}>, backend ${{SPMV_HAVE_CUDA}}")
endif()
"""


class Choice(unittest.TestCase):
    def configure(self, driver, choice="GPU"):
        """driver: the body of nvidia-smi, None: there is none."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "choice.cmake"), "w", encoding="utf-8") as script:
                script.write(SCRIPT.format(source=SOURCE))
            if driver is not None:
                with open(os.path.join(folder, "nvidia-smi"), "w", encoding="utf-8") as program:
                    program.write("#!/bin/sh\n" + driver)
                    os.fchmod(program.fileno(), 0o755)
            run = subprocess.run([CMAKE, f"-DSPMV_CUDA={choice}", "-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF",
                                  "-P", os.path.join(folder, "choice.cmake")],
                                 env={"PATH": folder}, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            return run.returncode, run.stdout + run.stderr

    def test_a_gpu(self):
        status, said = self.configure('[ "$1" = -L ] && echo "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)"\n')
        self.assertEqual(status, 0, said)
        self.assertIn("found ON", said)

    def test_no_gpu(self):
        for driver in (None, "exit 9\n", "echo 'No devices were found'\nexit 6\n",
                       "echo 'NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.'\nexit 9\n"):
            status, said = self.configure(driver)
            self.assertEqual(status, 0, said)
            self.assertIn("found OFF", said)
            self.assertIn("CUDA backend: off (no NVIDIA GPU was found; SPMV_CUDA=ON compiles it", said)
            self.assertIn("lacks <an NVIDIA GPU>, backend OFF", said)

    def test_other_words_are_refused(self):
        status, said = self.configure(None, "NATIVE")
        self.assertNotEqual(status, 0)
        self.assertIn('SPMV_CUDA is "NATIVE"; it must be AUTO, GPU, ON or OFF', " ".join(said.split()))

    def test_the_demonstration_compiles_for_this_machine_and_tests_for_all(self):
        def choice(script):
            with open(os.path.join(SOURCE, "scripts", script), encoding="utf-8") as text:
                return re.findall(r'-DSPMV_CUDA="\$\{SPMV_CUDA:-(\w+)\}"', text.read())

        self.assertEqual(choice("demo.sh"), ["GPU"])
        self.assertEqual(choice("test.sh"), ["AUTO"])


if __name__ == "__main__":
    unittest.main()
