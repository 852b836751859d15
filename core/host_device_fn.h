/* HOST_DEVICE_FN begins the definition of a function in a header that C and kernels share.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_DEVICE_FN_H
#define HOST_DEVICE_FN_H

#ifdef __CUDACC__
#define HOST_DEVICE_FN static __host__ __device__ inline
#else
#define HOST_DEVICE_FN static inline
#endif

#endif
