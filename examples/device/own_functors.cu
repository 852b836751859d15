/* A path of small rotations, with types and functors defined in this program: the orientation after
 * each step (a scan of quaternion products, which do not commute), the step with the largest angle
 * (a reduction that returns the index), and the steps with large angles (compact of structs by a
 * predicate). Each is checked against a loop on the host.
 *
 * Exit code 0 if all agree, 1 if not, 77 without a GPU.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <vector>

#include <spmv/device.cuh>

/* ------------------------------------------------------------------- types */

struct step {
    float axis[3]; /* unit length */
    float angle;
    int id;
};

struct alignas(16) quaternion {
    float w, x, y, z;
};

struct place {
    float angle;
    int at;
};

/* ---------------------------------------------------------------- functors */

/* First the earlier rotation, then the later one. */
struct then {
    using type = quaternion;
    __host__ __device__ quaternion operator()(quaternion b, quaternion a) const
    {
        return {a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
                a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x, a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
    }
    static __host__ __device__ quaternion identity()
    {
        return {1, 0, 0, 0};
    }
};

/* The larger angle; among equal ones the first. */
struct farther {
    using type = place;
    static constexpr bool commutes = true;
    __host__ __device__ place operator()(place a, place b) const
    {
        return b.angle > a.angle || (b.angle == a.angle && b.at < a.at) ? b : a;
    }
    static __host__ __device__ place identity()
    {
        return {-1, 0x7fffffff};
    }
};

struct rotation {
    __host__ __device__ quaternion operator()(step s) const
    {
        const float c = cosf(s.angle / 2), k = sinf(s.angle / 2);
        return {c, k * s.axis[0], k * s.axis[1], k * s.axis[2]};
    }
};

/* A loader: step i as (angle, i). */
struct angle_at {
    const step *steps;
    __device__ place operator()(int64_t i) const
    {
        return {steps[i].angle, (int)i};
    }
};

struct turns_more_than {
    float limit;
    __host__ __device__ bool operator()(step s) const
    {
        return s.angle > limit;
    }
};

/* -------------------------------------------------------------------- host */

static std::vector<step> make_steps(int n)
{
    std::vector<step> steps((size_t)n);
    unsigned random = 1;
    for (int i = 0; i < n; i++) {
        float v[4];
        for (float &c : v) {
            /* a linear congruential generator (D. E. Knuth, The Art of Computer Programming,
             * vol. 2, 3.3.4) */
            random = random * 1664525u + 1013904223u;
            c = (float)(random >> 8) * 0x1p-23f - 1;
        }
        const float length = sqrtf(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]) + 1e-6f;
        steps[(size_t)i] = {{v[0] / length, v[1] / length, v[2] / length}, 0.01f * fabsf(v[3]), i};
    }
    return steps;
}

/* Counts quaternions of the path that differ from the product, computed in f64 from the same f32
 * rotations. A product of unit f32 quaternions has an error of a few 2^-24; n of them add up. */
static int wrong_path(const std::vector<step> &steps, const std::vector<quaternion> &path)
{
    double w = 1, x = 0, y = 0, z = 0;
    int wrong = 0;
    for (size_t i = 0; i < steps.size(); i++) {
        const quaternion a = rotation()(steps[i]);
        const double v[4] = {a.w * w - a.x * x - a.y * y - a.z * z, a.w * x + a.x * w + a.y * z - a.z * y,
                             a.w * y - a.x * z + a.y * w + a.z * x, a.w * z + a.x * y - a.y * x + a.z * w};
        w = v[0], x = v[1], y = v[2], z = v[3];
        const double off = fabs(path[i].w - w) + fabs(path[i].x - x) + fabs(path[i].y - y) + fabs(path[i].z - z);
        wrong += !(off <= 16 * (double)(i + 1) * 0x1p-24);
    }
    return wrong;
}

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if ((st = (call)) != SPMV_OK)                                                                                  \
            goto done;                                                                                                 \
    } while (0)

int main(void)
{
    const int n = 100003;
    const turns_more_than much = {0.0099f};
    const std::vector<step> steps = make_steps(n);
    std::vector<quaternion> path((size_t)n), again((size_t)n);
    std::vector<step> kept((size_t)n);
    place most = {0, 0}, most_wanted = farther::identity();
    int64_t number = 0, number_wanted = 0;
    step *in = NULL, *large = NULL;
    quaternion *out = NULL;
    place *best = NULL;
    int64_t *count = NULL;
    int wrong = 0;
    spmv_context *ctx = NULL;
    spmv_context_options options;
    spmv_context_options_init(&options, sizeof options);
    options.backend = SPMV_BACKEND_CUDA;
    spmv_status st = spmv_context_create(&options, &ctx);
    if (st != SPMV_OK) {
        printf("skipped: %s\n", spmv_last_error(NULL));
        return 77;
    }
    CHECK(spmv_alloc(ctx, n * (int64_t)sizeof *in, (void **)&in));
    CHECK(spmv_alloc(ctx, n * (int64_t)sizeof *large, (void **)&large));
    CHECK(spmv_alloc(ctx, n * (int64_t)sizeof *out, (void **)&out));
    CHECK(spmv_alloc(ctx, sizeof *best, (void **)&best));
    CHECK(spmv_alloc(ctx, sizeof *count, (void **)&count));
    CHECK(spmv_upload(ctx, steps.data(), in, n * (int64_t)sizeof *in));

    CHECK(spmv::device::map_scan<then>(ctx, rotation(), SPMV_INCLUSIVE, in, out, n));
    CHECK(spmv_download(ctx, out, path.data(), n * (int64_t)sizeof *out));
    CHECK(spmv::device::map_scan<then>(ctx, rotation(), SPMV_INCLUSIVE, in, out, n));
    CHECK(spmv_download(ctx, out, again.data(), n * (int64_t)sizeof *out));
    CHECK(spmv::device::reduce<farther>(ctx, angle_at{in}, best, n));
    CHECK(spmv_download(ctx, best, &most, sizeof most));
    CHECK(spmv::device::compact(ctx, much, in, large, count, n));
    CHECK(spmv_download(ctx, count, &number, sizeof number));
    CHECK(spmv_download(ctx, large, kept.data(), number * (int64_t)sizeof *large));

    wrong += wrong_path(steps, path);
    /* both runs give the same bits */
    wrong += memcmp(path.data(), again.data(), (size_t)n * sizeof(quaternion)) != 0;
    for (int i = 0; i < n; i++) {
        most_wanted = farther()(most_wanted, {steps[(size_t)i].angle, i});
        if (!much(steps[(size_t)i]))
            continue;
        wrong += number_wanted >= number || kept[(size_t)number_wanted].id != i;
        number_wanted++;
    }
    wrong += number != number_wanted || most.at != most_wanted.at || most.angle != most_wanted.angle;
    printf("%d steps: the end (%.4f, %.4f, %.4f, %.4f); step %d turns the most, %.6f; %lld turn much; %s\n", n,
           path.back().w, path.back().x, path.back().y, path.back().z, most.at, most.angle, (long long)number,
           wrong == 0 ? "verified" : "WRONG");
done:
    if (st != SPMV_OK)
        fprintf(stderr, "%s: %s\n", spmv_status_name(st), spmv_last_error(ctx));
    spmv_free(ctx, in);
    spmv_free(ctx, large);
    spmv_free(ctx, out);
    spmv_free(ctx, best);
    spmv_free(ctx, count);
    spmv_context_destroy(ctx);
    return st == SPMV_OK && wrong == 0 ? 0 : 1;
}
