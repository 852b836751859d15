/* SLOW: 1 where the host plays the GPU, with a fiber for each thread. Only small cases run then.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_SLOW_H
#define SUPPORT_SLOW_H

#ifdef HOST_CUDA
enum { SLOW = 1 };
#else
enum { SLOW = 0 };
#endif

#endif
