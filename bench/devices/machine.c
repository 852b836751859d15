/* The name and the processors of the machine, from /proc.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/devices/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies the text after the colon of the first line that begins with name; false if there is
 * none. */
static bool property(const char *path, const char *name, char *text, size_t size)
{
    char line[1024];
    bool found = false;
    FILE *const file = fopen(path, "r");
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        const char *value = strchr(line, ':');
        if (value == NULL || strncmp(line, name, strlen(name)) != 0)
            continue;
        value += 1 + strspn(value + 1, " \t");
        line[strcspn(line, "\n")] = '\0';
        found = *value != '\0';
        if (found)
            snprintf(text, size, "%.*s", (int)size - 1, value);
    }
    if (file != NULL)
        fclose(file);
    return found;
}

const char *cpu_name(void)
{
    static char name[104];
    if (name[0] == '\0' && !property("/proc/cpuinfo", "model name", name, sizeof name))
        snprintf(name, sizeof name, "unknown");
    return name;
}

const char *processors_allowed(void)
{
    static char list[1024];
    if (list[0] == '\0' && !property("/proc/self/status", "Cpus_allowed_list", list, sizeof list))
        list[0] = '\0';
    return list;
}

/* Takes the next range off the list; false at its end. */
static bool next_range(const char **list, int64_t *first, int64_t *last)
{
    char *end = NULL;
    if (**list < '0' || **list > '9')
        return false;
    *first = strtol(*list, &end, 10);
    *last = *end == '-' ? strtol(end + 1, &end, 10) : *first;
    *list = *end == ',' ? end + 1 : end;
    return true;
}

int64_t processor_list_count(const char *list)
{
    int64_t count = 0, first, last;
    while (next_range(&list, &first, &last))
        count += last - first + 1;
    return count;
}

bool processor_list_has(const char *list, int64_t number)
{
    int64_t first, last;
    while (next_range(&list, &first, &last))
        if (first <= number && number <= last)
            return true;
    return false;
}
