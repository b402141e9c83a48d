/* SPDX-License-Identifier: MIT */
/* status.c - facts of a return code, looked up in the table generated from status.toml. */
#include <errno.h>

#include <umd/umd_diag.h>

#include "diag_internal.h"

struct umd_status_row {
    umdStatus code;
    const char *name, *when, *todo, *since, *vkresult;
    umdStatusRange range;
    umdSeverity severity;
    umdScope scope;
    umdAction action;
    bool sticky;
    uint32_t delay_ms, count;
    int err;
};
struct umd_status_range_row {
    umdStatusRange range;
    const char *name;
    int32_t first, last;
};
#include "status_table.inc"

#define ROW_COUNT (sizeof(status_rows) / sizeof(status_rows[0]))

/* Rows are sorted by value. */
static const struct umd_status_row *find(umdStatus st)
{
    size_t low = 0, high = ROW_COUNT;

    while (low < high) {
        size_t mid = (low + high) / 2;
        if (status_rows[mid].code == st)
            return &status_rows[mid];
        if ((int32_t)status_rows[mid].code < (int32_t)st)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

bool umd_status_known(umdStatus st) { return find(st) != NULL; }

const char *umdStatusName(umdStatus st)
{
    const struct umd_status_row *row = find(st);
    return row ? row->name : "UMD_UNKNOWN";
}

const char *umdStatusString(umdStatus st)
{
    const struct umd_status_row *row = find(st);
    return row ? row->when : "A code that this version of the library does not know.";
}

const char *umdStatusTodo(umdStatus st)
{
    const struct umd_status_row *row = find(st);
    return row ? row->todo : "Look the number up in docs/status-codes.md of the version that returned it.";
}

umdStatusRange umdStatusRangeOf(umdStatus st)
{
    for (size_t i = 0; i < sizeof(range_rows) / sizeof(range_rows[0]); i++)
        if ((int32_t)st >= range_rows[i].first && (int32_t)st <= range_rows[i].last)
            return range_rows[i].range;
    return UMD_RANGE_UNKNOWN;
}

int umdStatusErrno(umdStatus st)
{
    const struct umd_status_row *row = find(st);

    if (row)
        return row->err;
    return st < 0 ? EIO : 0;
}

const char *umdStatusVkResult(umdStatus st)
{
    const struct umd_status_row *row = find(st);
    return row ? row->vkresult : "VK_ERROR_UNKNOWN";
}

umdAdvice umdStatusAdvice(umdStatus st)
{
    const struct umd_status_row *row = find(st);

    if (!row)
        return (umdAdvice){ .action = UMD_ACTION_ABORT, .severity = UMD_SEVERITY_FATAL, .scope = UMD_SCOPE_DEVICE, .sticky = true };
    return (umdAdvice){
        .action = row->action, .severity = row->severity, .scope = row->scope,
        .sticky = row->sticky, .delay_ms = row->delay_ms, .count = row->count,
    };
}
