/* The cache. The key is the kept file's name: PATHSUM-SIZE-SECONDS.NANOSECONDS-CONTENTSUM-TYPE.spmv, so that looking is
 * opening. The file is one of the binary form, with the facts of the reading at its end.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
/* realpath belongs to X/Open */
#define _XOPEN_SOURCE 700
#include "matrix_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "binary_form.h"
#include "checksum.h"
#include "unfinished.h"

enum { NAME_BYTES = 160, VERSION = 1 };
static const char magic[8] = {'S', 'P', 'M', 'V', 'r', 'e', 'a', 'd'};
_Static_assert(sizeof(struct cache_facts) == 64 + TEXT_WARNINGS, "the facts have no gaps");

static uint64_t mix_text(uint64_t sum, const char *text)
{
    for (size_t at = 0, length = strlen(text); at < length; at += CHECKSUM_TILE) {
        const size_t left = length - at;
        sum = checksum_mix(sum, checksum_tile(text + at, left < CHECKSUM_TILE ? (int64_t)left : CHECKSUM_TILE));
    }
    return sum;
}

void cache_key_free(struct cache_key *key)
{
    free(key->place);
    *key = (struct cache_key){NULL, 0};
}

spmv_status cache_key_make(spmv_context *ctx, const char *folder, const char *path, int fd, spmv_type type,
                           struct cache_key *key)
{
    struct stat s;
    uint64_t content = 0;
    *key = (struct cache_key){NULL, 0};
    if (strcmp(path, "-") == 0 || fstat(fd, &s) != 0 || !S_ISREG(s.st_mode))
        return SPMV_OK;
    char *const whole = realpath(path, NULL);
    if (whole == NULL) /* "archive:member" */
        return SPMV_OK;
    const char *const slash = strrchr(path, '/');
    key->path_sum = mix_text(mix_text(0, whole), slash != NULL ? slash + 1 : path);
    free(whole);
    const spmv_status st = checksum_file(ctx, path, fd, (int64_t)s.st_size, &content);
    if (st != SPMV_OK)
        return st;
    const size_t bytes = strlen(folder) + NAME_BYTES;
    key->place = malloc(bytes);
    if (key->place == NULL)
        return context_fail_memory(ctx, "a file name", (int64_t)bytes);
    /* f64 and the default share a name: what differs is a complex matrix, which nobody gets who asks for f64 */
    snprintf(key->place, bytes, "%s/%016" PRIx64 "-%lld-%lld.%09ld-%016" PRIx64 "-%s.spmv", folder, key->path_sum,
             (long long)s.st_size, (long long)s.st_mtim.tv_sec, (long)s.st_mtim.tv_nsec, content,
             spmv_type_name(type != SPMV_TYPE_DEFAULT ? type : SPMV_F64));
    return SPMV_OK;
}

static uint64_t facts_sum(const struct cache_facts *facts)
{
    return checksum_mix(0, checksum_tile(facts, (int64_t)offsetof(struct cache_facts, sum)));
}

/* The facts at the end of the file; false when there are none, or damaged ones. */
static bool read_facts(int fd, struct cache_facts *facts)
{
    struct stat s;
    if (fstat(fd, &s) != 0 || s.st_size < (off_t)sizeof *facts ||
        pread(fd, facts, sizeof *facts, s.st_size - (off_t)sizeof *facts) != (ssize_t)sizeof *facts)
        return false;
    return memcmp(facts->magic, magic, sizeof magic) == 0 && facts->version == VERSION &&
           facts->sum == facts_sum(facts) && facts->warnings_bytes >= 0 && facts->warnings_bytes <= TEXT_WARNINGS &&
           (facts->warnings_bytes == 0 || facts->warnings[facts->warnings_bytes - 1] == '\0');
}

void cache_find(spmv_context *ctx, const struct cache_key *key, spmv_type type, int64_t max_bytes, spmv_matrix **matrix,
                struct cache_facts *facts)
{
    int64_t bytes = 0;
    *matrix = NULL;
    const int fd = key->place != NULL ? open(key->place, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    /* one that is damaged is made again */
    if (binary_form_begins(fd) && read_facts(fd, facts))
        binary_form_read(ctx, key->place, fd, type, max_bytes, matrix, &bytes);
    close(fd);
}

/* Removes what is kept of the same path and type under another name. */
static void remove_older(const char *folder, const struct cache_key *key)
{
    const char *const own = strrchr(key->place, '/') + 1, *const ending = strrchr(own, '-');
    DIR *const d = opendir(folder);
    for (const struct dirent *e = d != NULL ? readdir(d) : NULL; e != NULL; e = readdir(d)) {
        const char *const last = strrchr(e->d_name, '-');
        if (strncmp(e->d_name, own, 17) == 0 && strcmp(e->d_name, own) != 0 && last != NULL &&
            strcmp(last, ending) == 0)
            unlinkat(dirfd(d), e->d_name, 0);
    }
    if (d != NULL)
        closedir(d);
}

/* Removes what interrupted writers left in the folder. */
static void remove_left_overs(const char *folder)
{
    DIR *const d = opendir(folder);
    for (const struct dirent *e = d != NULL ? readdir(d) : NULL; e != NULL; e = readdir(d))
        unfinished_remove_left_over(dirfd(d), e->d_name);
    if (d != NULL)
        closedir(d);
}

/* The folder and those above it. */
static bool make_folders(const char *folder)
{
    char *const copy = malloc(strlen(folder) + 1);
    if (copy == NULL)
        return false;
    strcpy(copy, folder);
    bool made = true;
    for (char *p = copy + (copy[0] == '/'); made; p++) {
        const char c = *p;
        if (c != '/' && c != '\0')
            continue;
        *p = '\0';
        made = mkdir(copy, 0700) == 0 || errno == EEXIST;
        *p = c;
        if (c == '\0')
            break;
    }
    free(copy);
    return made;
}

spmv_status cache_keep(spmv_context *ctx, const char *folder, const struct cache_key *key, const spmv_matrix *matrix,
                       struct cache_facts *facts)
{
    spmv_csr a;
    if (key->place == NULL)
        return SPMV_OK;
    if (!make_folders(folder))
        return context_warn(ctx, "%.300s: the cache cannot be made: %s", folder, strerror(errno));
    remove_left_overs(folder);
    spmv_matrix_view(matrix, &a);
    memcpy(facts->magic, magic, sizeof magic);
    facts->version = VERSION;
    facts->sum = facts_sum(facts);
    const spmv_status st = binary_form_write_with(ctx, &a, key->place, facts, (int64_t)sizeof *facts);
    if (st == SPMV_CANCELLED)
        return st;
    if (st != SPMV_OK) {
        char why[sizeof ctx->error];
        memcpy(why, ctx->error, sizeof why);
        return context_warn(ctx, "the matrix was not kept in the cache: %.400s", why);
    }
    remove_older(folder, key);
    return SPMV_OK;
}
