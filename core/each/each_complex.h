/* Includes TEMPLATE once for each complex type, with IS_COMPLEX 1, T, and PART, the type of the real
 * and the imaginary part. Without NAMED, TYPED(name) is name_c128 or the like.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef NAMED
#define NAMED(name, type) name##_##type
#define NAMED_HERE
#endif

#define IS_COMPLEX 1
#define T spmv_c64
#define PART float
#define TYPED(name) NAMED(name, c64)
#include TEMPLATE
#undef T
#undef PART
#undef TYPED

#define T spmv_c128
#define PART double
#define TYPED(name) NAMED(name, c128)
#include TEMPLATE
#undef T
#undef PART
#undef TYPED
#undef IS_COMPLEX

#ifdef NAMED_HERE
#undef NAMED
#undef NAMED_HERE
#endif
