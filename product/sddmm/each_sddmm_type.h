/* Includes TEMPLATE once for each type of sampled products, with T, of sums; ELEMENT, of all arrays; WIDENED(x), an
 * element as a T; ROUNDED(x), a T as an element, ROUNDED_ONCE(x), a long double; EXP(x); IS_HALF for
 * 16-bit elements. TYPED(name) is name_f64 or the like.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#define T double
#define ELEMENT double
#define WIDENED(x) (x)
#define ROUNDED(x) (x)
#define ROUNDED_ONCE(x) ((double)(x))
#define EXP(x) exp(x)
#define TYPED(name) name##_f64
#include TEMPLATE
#undef T
#undef ELEMENT
#undef ROUNDED_ONCE
#undef EXP
#undef TYPED

#define T float
#define EXP(x) expf(x)

#define ELEMENT float
#define ROUNDED_ONCE(x) ((float)(x))
#define TYPED(name) name##_f32
#include TEMPLATE
#undef ELEMENT
#undef WIDENED
#undef ROUNDED
#undef ROUNDED_ONCE
#undef TYPED

#define IS_HALF
#define ELEMENT spmv_bf16
#define WIDENED(x) float_of_bf16(x)
#define ROUNDED(x) bf16_of_float(x)
#define ROUNDED_ONCE(x) bf16_of_float(float_to_odd(x))
#define TYPED(name) name##_bf16
#include TEMPLATE
#undef ELEMENT
#undef WIDENED
#undef ROUNDED
#undef ROUNDED_ONCE
#undef TYPED

#define ELEMENT spmv_f16
#define WIDENED(x) float_of_f16(x)
#define ROUNDED(x) f16_of_float(x)
#define ROUNDED_ONCE(x) f16_of_float(float_to_odd(x))
#define TYPED(name) name##_f16
#include TEMPLATE
#undef ELEMENT
#undef WIDENED
#undef ROUNDED
#undef ROUNDED_ONCE
#undef TYPED
#undef IS_HALF
#undef T
#undef EXP
