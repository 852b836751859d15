/* The files that calls under way write beside their targets: one name for each, and a list that a
 * signal handler can empty.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNFINISHED_H
#define UNFINISHED_H

#include <sys/types.h>

#include "runtime.h"

/* "spmv-0123456789abcdef.part" and a zero byte. The length does not depend on the target's name,
 * so the name fits wherever the target's does. */
enum { UNFINISHED_NAME = 5 + 16 + 5 + 1 };

/* A file that is written beside its target. It is locked (flock) while it is written, so that a
 * file whose writer was killed can be told from one that is being written. */
struct unfinished {
    bool has_folder;
    int folder;  /* both files are in it; owned */
    uint64_t id; /* the name is made of it; 0: no file */
    int slot;    /* of the file in the list; -1: the list was full */
};

/* Creates a file of a new name in the folder and opens it for writing. The mode is reduced by
 * the umask. Returns the file descriptor; -1: failed, with errno. The folder's descriptor now
 * belongs to file in any case. */
int unfinished_create(int folder, mode_t mode, struct unfinished *file);

/* Gives the file its name in the folder, in place of what has that name. 0: done; -1: failed,
 * with errno. */
int unfinished_rename(struct unfinished *file, const char *name);

/* Removes the file if it still has its own name, and closes the folder. errno stays. */
void unfinished_end(struct unfinished *file);

/* Removes the file of that name from the folder when it was left over: its name ends in ".part",
 * it is a plain file of this user, and no process writes it. */
void unfinished_remove_left_over(int folder, const char *name);

#endif
