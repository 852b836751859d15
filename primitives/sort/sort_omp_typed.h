/* The typed part of sort_omp.c, included once per width of keys, with these macros:
 *   KEY               the type of a key
 *   ORDER(key, real)  the key's order number
 *   TYPED(name)       name_32 or name_64
 *
 * SPDX-License-Identifier: BSD-3-Clause */
static inline unsigned TYPED(digit)(const struct sort_job *job, KEY key)
{
    return (unsigned)(ORDER(key, job->real) >> job->pass.shift) & ((1u << job->pass.width) - 1u);
}

static void TYPED(count_digits)(const struct sort_job *job, struct range r, int64_t *count)
{
    const KEY *const key = job->pass.keys;
    for (int64_t i = r.begin; i < r.end; i++)
        count[TYPED(digit)(job, key[i])]++;
}

/* value_bytes is a constant after inlining; 0: no values. */
static inline void TYPED(move_sized)(const struct sort_job *job, struct range r, int64_t *next, int value_bytes)
{
    const struct sort_pass *const p = &job->pass;
    const KEY *const keys = p->keys;
    KEY *const to_keys = p->to_keys;
    for (int64_t i = r.begin; i < r.end; i++) {
        const KEY key = keys[i];
        const int64_t at = next[TYPED(digit)(job, key)]++;
        to_keys[at] = key;
        if (value_bytes == 4)
            ((uint32_t *)p->to_values)[at] = ((const uint32_t *)p->values)[i];
        else if (value_bytes == 8)
            ((uint64_t *)p->to_values)[at] = ((const uint64_t *)p->values)[i];
    }
}

static void TYPED(move)(const struct sort_job *job, struct range r, int64_t *next)
{
    if (job->value_bytes == 0)
        TYPED(move_sized)(job, r, next, 0);
    else if (job->value_bytes == 4)
        TYPED(move_sized)(job, r, next, 4);
    else
        TYPED(move_sized)(job, r, next, 8);
}
