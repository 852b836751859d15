/* The cache. The name of a cached file contains the whole key:
 * PATHSUM-SIZE-SECONDS.NANOSECONDS-CONTENTSUM-TYPE.spmv, so a look-up is one open. The file has the
 * binary form, with the facts of the reading at its end.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
/* realpath is part of X/Open */
#define _XOPEN_SOURCE 700
#include "formats/io/cache/matrix_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/trust.h"
#include "formats/io/binary/binary_form.h"
#include "formats/io/binary/checksum.h"
#include "formats/io/unfinished.h"

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
    free(key->folder);
    free(key->place);
    *key = (struct cache_key){NULL, NULL, NULL};
}

/* Whether only the effective user can have written the file that s describes. */
static bool is_own(const struct stat *s)
{
    return distrust(s, geteuid()) == NULL;
}

/* Opens the folder. If it returns -1, *why says what is wrong with the folder; NULL: it does not
 * exist. */
static int open_folder(const char *folder, const char **why)
{
    struct stat s;
    *why = NULL;
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        if (lstat(folder, &s) == 0)
            *why = S_ISLNK(s.st_mode)   ? "it is a link: use the folder itself"
                   : S_ISDIR(s.st_mode) ? "it cannot be read"
                                        : "it is not a folder";
        return -1;
    }
    if (fstat(fd, &s) != 0)
        *why = "it cannot be read";
    else
        *why = distrust(&s, geteuid());
    if (*why == NULL)
        return fd;
    close(fd);
    return -1;
}

static spmv_status warn_folder(spmv_context *ctx, const char *folder, const char *why)
{
    return context_warn(ctx, "%.300s: the cache is not used: %s", folder, why);
}

/* Opens an entry of the folder; -1 if there is no trusted one. A FIFO in its place does not
 * block. */
static int open_entry(int folder, const char *name)
{
    struct stat s;
    const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || (fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && is_own(&s)))
        return fd;
    close(fd);
    return -1;
}

/* Sets key->folder and key->place, for this checksum of the path. */
static spmv_status name_entry(spmv_context *ctx, uint64_t path_sum, const struct stat *s, uint64_t content,
                              spmv_type type, struct cache_key *key)
{
    const size_t bytes = strlen(key->folder) + NAME_BYTES;
    key->place = malloc(bytes);
    if (key->place == NULL)
        return context_fail_memory(ctx, "a file name", (int64_t)bytes);
    /* f64 and the default share a name: their matrices differ only if the file is complex, and then
     * f64 is an error. */
    const int length = snprintf(key->place, bytes, "%s/", key->folder);
    snprintf(key->place + length, bytes - (size_t)length, "%016" PRIx64 "-%lld-%lld.%09ld-%016" PRIx64 "-%s.spmv",
             path_sum, (long long)s->st_size, (long long)s->st_mtim.tv_sec, (long)s->st_mtim.tv_nsec, content,
             spmv_type_name(type != SPMV_TYPE_DEFAULT ? type : SPMV_F64));
    key->name = key->place + length;
    return SPMV_OK;
}

/* Sets key->folder. Slashes at the end are removed, because open would follow a link before
 * them. */
static spmv_status take_folder(spmv_context *ctx, const char *folder, struct cache_key *key)
{
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    key->folder = malloc(length + 1);
    if (key->folder == NULL)
        return context_fail_memory(ctx, "a file name", (int64_t)length + 1);
    memcpy(key->folder, folder, length);
    key->folder[length] = '\0';
    return SPMV_OK;
}

spmv_status cache_key_make(spmv_context *ctx, const char *folder, const char *path, int fd, spmv_type type,
                           struct cache_key *key)
{
    struct stat s;
    uint64_t content = 0;
    const char *why = NULL;
    *key = (struct cache_key){NULL, NULL, NULL};
    if (strcmp(path, "-") == 0 || fstat(fd, &s) != 0 || !S_ISREG(s.st_mode))
        return SPMV_OK;
    spmv_status st = take_folder(ctx, folder, key);
    if (st != SPMV_OK)
        return st;
    const int opened = open_folder(key->folder, &why);
    if (opened >= 0)
        close(opened);
    if (why != NULL)
        return warn_folder(ctx, key->folder, why);
    char *const whole = realpath(path, NULL);
    if (whole == NULL) /* path is "archive:member" */
        return SPMV_OK;
    const char *const slash = strrchr(path, '/');
    const uint64_t path_sum = mix_text(mix_text(0, whole), slash != NULL ? slash + 1 : path);
    free(whole);
    st = checksum_file(ctx, path, fd, (int64_t)s.st_size, &content);
    return st != SPMV_OK ? st : name_entry(ctx, path_sum, &s, content, type, key);
}

static uint64_t facts_sum(const struct cache_facts *facts)
{
    return checksum_mix(0, checksum_tile(facts, (int64_t)offsetof(struct cache_facts, sum)));
}

/* Reads the facts at the end of the file; false if there are none or they are damaged. */
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
    if (key->place == NULL)
        return;
    const char *why = NULL;
    const int folder = open_folder(key->folder, &why), fd = folder >= 0 ? open_entry(folder, key->name) : -1;
    if (folder >= 0)
        close(folder);
    if (fd < 0)
        return;
    /* A damaged entry is ignored: the file is read and cached again. */
    if (binary_form_begins(fd) && read_facts(fd, facts))
        binary_form_read(ctx, key->place, fd, type, max_bytes, matrix, &bytes);
    close(fd);
}

/* Removes entries of the same path and type with another name, and files that interrupted writers
 * left. Closes the folder. */
static void tidy_folder(int folder, const struct cache_key *key)
{
    const char *const own = key->name, *const ending = strrchr(own, '-');
    DIR *const d = fdopendir(folder);
    if (d == NULL) {
        close(folder);
        return;
    }
    for (const struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        unfinished_remove_left_over(folder, e->d_name);
        const char *const last = strrchr(e->d_name, '-');
        if (strncmp(e->d_name, own, 17) == 0 && strcmp(e->d_name, own) != 0 && last != NULL &&
            strcmp(last, ending) == 0)
            unlinkat(folder, e->d_name, 0);
    }
    closedir(d);
}

/* Removes an untrusted file in the entry's place, such as a link, which writing would follow. */
static void remove_foreign(int folder, const char *name)
{
    const int fd = open_entry(folder, name);
    if (fd >= 0)
        close(fd);
    else
        unlinkat(folder, name, 0);
}

/* Creates the folder and its parents. */
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

static spmv_status write_entry(spmv_context *ctx, int folder, const struct cache_key *key, const spmv_matrix *matrix,
                               struct cache_facts *facts)
{
    spmv_csr a;
    spmv_matrix_view(matrix, &a);
    memcpy(facts->magic, magic, sizeof magic);
    facts->version = VERSION;
    facts->sum = facts_sum(facts);
    remove_foreign(folder, key->name);
    const spmv_status st = binary_form_write_with(ctx, &a, key->place, facts, (int64_t)sizeof *facts);
    if (st == SPMV_OK) {
        /* independent of the umask; some file systems have no rights to set */
        const int ignored = fchmodat(folder, key->name, S_IRUSR | S_IWUSR, 0);
        (void)ignored; /* a cast of the call itself does not silence gcc with _FORTIFY_SOURCE */
    }
    return st;
}

spmv_status cache_keep(spmv_context *ctx, const struct cache_key *key, const spmv_matrix *matrix,
                       struct cache_facts *facts)
{
    const char *why = NULL;
    if (key->place == NULL)
        return SPMV_OK;
    if (!make_folders(key->folder))
        return context_warn(ctx, "%.300s: cannot create the cache: %s", key->folder, strerror(errno));
    const int folder = open_folder(key->folder, &why);
    if (folder < 0)
        return warn_folder(ctx, key->folder, why != NULL ? why : "it was removed");
    const spmv_status st = write_entry(ctx, folder, key, matrix, facts);
    if (st == SPMV_OK) {
        tidy_folder(folder, key);
        return SPMV_OK;
    }
    close(folder);
    if (st == SPMV_CANCELLED)
        return st;
    char why_not[sizeof ctx->error];
    memcpy(why_not, ctx->error, sizeof why_not);
    return context_warn(ctx, "the matrix was not kept in the cache: %.400s", why_not);
}
