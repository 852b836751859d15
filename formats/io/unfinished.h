/* Files being written beside their targets: a unique name for each, and a list that a signal
 * handler can clean up.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNFINISHED_H
#define UNFINISHED_H

#include <sys/types.h>

#include "core/runtime.h"

/* "spmv-0123456789abcdef.part" and a zero byte. The length does not depend on the target's name, so
 * the name is valid even if the target's is as long as the file system allows. */
enum { UNFINISHED_NAME = 5 + 16 + 5 + 1 };

/* A file being written beside its target. It is locked (flock) meanwhile, so that a file left by a
 * killed writer can be distinguished from one in use. */
struct unfinished {
    bool has_folder;
    int folder;  /* folder of both files; owned */
    uint64_t id; /* determines the name; 0: no file */
    int slot;    /* of the list; -1: the list was full */
};

/* Creates a file with a new name in the folder and opens it for writing. The mode is reduced by the
 * umask. Returns the file descriptor, or -1 with errno. Takes ownership of the folder's descriptor
 * also after an error. */
int unfinished_create(int folder, mode_t mode, struct unfinished *file);

/* Renames the file in its folder and replaces a file of that name. Returns 0, or -1 with errno. */
int unfinished_rename(struct unfinished *file, const char *name);

/* Removes the file if it was not renamed, and closes the folder. Keeps errno. */
void unfinished_end(struct unfinished *file);

/* Removes a leftover file of that name from the folder: its name ends in ".part", it is a regular
 * file of this user, and no process is writing it. */
void unfinished_remove_left_over(int folder, const char *name);

#endif
