/* What transports have in common (transport.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "distributed/transport.h"

struct transport_kept {
    struct transport_kept *next;
    void (*release)(void *memory);
    void *memory;
};

void transport_keep(struct transport_kept **list, void (*release)(void *memory), void *memory)
{
    struct transport_kept *record = malloc(sizeof *record);
    if (record == NULL)
        return;
    *record = (struct transport_kept){*list, release, memory};
    *list = record;
}

void transport_release_kept(struct transport_kept *list)
{
    while (list != NULL) {
        struct transport_kept *const record = list;
        list = record->next;
        record->release(record->memory);
        free(record);
    }
}
