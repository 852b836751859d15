/* Whether a file or folder may be used that other users can reach: caches, and modules, which are
 * code.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef TRUST_H
#define TRUST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Why the file or folder s is not trusted: NULL, or TRUST_OWNER or TRUST_WRITABLE. Its owner must be
 * the effective user or `owner`, and nobody else may write to it. */
#define TRUST_OWNER "it belongs to another user"
#define TRUST_WRITABLE "others may write to it: prevent that with chmod go-w"
static inline const char *distrust(const struct stat *s, uid_t owner)
{
    if (s->st_uid != geteuid() && s->st_uid != owner)
        return TRUST_OWNER;
    return (s->st_mode & (S_IWGRP | S_IWOTH)) != 0 ? TRUST_WRITABLE : NULL;
}

/* As distrust, for code. It may also belong to root. Its group may write if it is the owner's own
 * one, which has the owner's number: systems with such groups let them write by default. */
static inline const char *distrust_code(const struct stat *s, uid_t owner)
{
    struct stat checked = *s;
    if (s->st_uid == 0)
        owner = 0;
    if (s->st_gid == s->st_uid)
        checked.st_mode &= ~(mode_t)S_IWGRP;
    return distrust(&checked, owner);
}

/* Whether the module at path must not be opened, because it or its folder is not trusted; why then
 * has a sentence. beside: the path of the library or program that opens it, whose owner is trusted;
 * NULL: unknown. */
static inline bool distrust_module(const char *path, const char *beside, char *why, size_t size)
{
    struct stat file, folder, own;
    char place[4096];
    const char *const slash = strrchr(path, '/');
    const uid_t owner = beside != NULL && stat(beside, &own) == 0 ? own.st_uid : geteuid();
    snprintf(place, sizeof place, "%.*s", slash != NULL ? (int)(slash - path) : 1, slash != NULL ? path : ".");
    const char *reason = "it cannot be read", *of = "";
    if (stat(path, &file) == 0 && stat(place, &folder) == 0) {
        reason = distrust_code(&file, owner);
        if (reason == NULL) {
            reason = distrust_code(&folder, owner);
            of = " its folder:";
        }
    }
    if (reason != NULL)
        snprintf(why, size, "%.300s is not opened, because it is not safe:%s %s", path, of, reason);
    return reason != NULL;
}

#endif
