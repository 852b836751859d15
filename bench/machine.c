/* What the machine is called.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "machine.h"

#include <stdio.h>
#include <string.h>

const char *cpu_name(void)
{
    static char name[128];
    if (name[0] != '\0')
        return name;
    snprintf(name, sizeof name, "unknown");
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (file == NULL)
        return name;
    char line[256];
    while (fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (colon == NULL || strncmp(line, "model name", 10) != 0)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        line[strcspn(line, "\n")] = '\0';
        if (*colon != '\0')
            snprintf(name, sizeof name, "%.100s", colon);
        break;
    }
    fclose(file);
    return name;
}
