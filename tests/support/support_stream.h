/* Streams of an application.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_STREAM_H
#define SUPPORT_STREAM_H

#include <cuda_runtime_api.h>

#include "tests/support/support.h"

static inline cudaStream_t support_stream(void)
{
    cudaStream_t stream = NULL;
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    return stream;
}

#endif
