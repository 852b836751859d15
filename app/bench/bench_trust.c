/* Whether the figures of spmv bench are reliable: the load of the machine at the start, and the
 * spread of each row.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "app/bench/bench_output.h"
#include "app/output.h"

void bench_trust_begin(struct bench_trust *trust, const struct machine_load *load, int threads)
{
    *trust = (struct bench_trust){.load = *load};
    machine_load_doubt(load, threads, trust->doubt, sizeof trust->doubt);
}

void bench_trust_row(struct bench_trust *trust, const struct timing *seconds)
{
    trust->rows++;
    trust->unsteady += !timing_steady(seconds);
}

void bench_trust_text(const struct bench_trust *trust, char *text, size_t size)
{
    text[0] = '\0';
    if (trust->doubt[0] == '\0' && trust->unsteady == 0)
        return;
    size_t used = (size_t)snprintf(text, size, "figures cannot be trusted: %s%s", trust->doubt,
                                   trust->doubt[0] != '\0' && trust->unsteady > 0 ? "; " : "");
    if (trust->unsteady > 0 && used < size)
        used += (size_t)snprintf(text + used, size - used,
                                 "the median of %d of %d row%s is more than 20%% above the minimum: ratios with them "
                                 "are in brackets and left out of means",
                                 trust->unsteady, trust->rows, trust->rows == 1 ? "" : "s");
    if (used < size)
        snprintf(text + used, size - used, "; repeat it on a quiet machine");
}

void bench_load_text(const struct machine_load *load, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "at the start:");
    if (load->load_average >= 0)
        used += (size_t)snprintf(text + used, size - used, " load average %.2f,", load->load_average);
    if (load->others_share >= 0)
        used += (size_t)snprintf(text + used, size - used, " other processes used %.0f%% of", 100 * load->others_share);
    snprintf(text + used, size - used, " %d processor%s", load->processors, load->processors == 1 ? "" : "s");
}

json_t *bench_trust_json(const struct bench_trust *trust)
{
    char text[WHY_SIZE];
    json_t *const object = json_object();
    const struct machine_load *const load = &trust->load;
    bench_trust_text(trust, text, sizeof text);
    json_put(object, "load_average", load->load_average >= 0 ? json_number(load->load_average) : json_null());
    json_put(object, "others_share", load->others_share >= 0 ? json_number(load->others_share) : json_null());
    json_put(object, "processors", json_integer(load->processors));
    json_put(object, "machine_processors", json_integer(load->machine_processors));
    json_put(object, "rows", json_integer(trust->rows));
    json_put(object, "unsteady_rows", json_integer(trust->unsteady));
    json_put(object, "trusted", json_boolean(text[0] == '\0'));
    if (text[0] != '\0')
        json_put(object, "sentence", json_string(text));
    return object;
}

json_t *bench_timing_json(const struct timing *seconds)
{
    json_t *const object = json_timing(seconds);
    json_put(object, "spread", json_number(timing_spread(seconds)));
    json_put(object, "steady", json_boolean(timing_steady(seconds)));
    return object;
}
