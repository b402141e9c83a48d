/* SPDX-License-Identifier: MIT */
/* status.c - facts of a return code, looked up in the table generated from status.toml. */
#include <errno.h>
#include <string.h>

#include "diag_internal.h"
#include "status.h"
#include "status_table.inc"

#define ROW_COUNT (sizeof(status_rows) / sizeof(status_rows[0]))

/* Rows are sorted by value. */
static const struct umd_status_info *find(umdStatus st)
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
    const struct umd_status_info *row = find(st);
    return row ? row->name : "UMD_UNKNOWN";
}

const char *umdStatusString(umdStatus st)
{
    const struct umd_status_info *row = find(st);
    return row ? row->when : "A code that this version of the library does not know.";
}

const char *umdStatusTodo(umdStatus st)
{
    const struct umd_status_info *row = find(st);
    return row ? row->todo : "Look the number up in docs/status-codes.md of the version that returned it.";
}

const struct umd_status_range_info *umd_status_range_info(umdStatus st)
{
    for (size_t i = 0; i < sizeof(range_rows) / sizeof(range_rows[0]); i++)
        if ((int32_t)st >= range_rows[i].first && (int32_t)st <= range_rows[i].last)
            return &range_rows[i];
    return NULL;
}

umdStatusRange umdStatusRangeOf(umdStatus st)
{
    const struct umd_status_range_info *r = umd_status_range_info(st);

    return r ? r->range : UMD_RANGE_UNKNOWN;
}

int umdStatusErrno(umdStatus st)
{
    const struct umd_status_info *row = find(st);

    if (row)
        return row->err;
    return st < 0 ? EIO : 0;
}

const char *umdStatusVkResult(umdStatus st)
{
    const struct umd_status_info *row = find(st);
    return row ? row->vkresult : "VK_ERROR_UNKNOWN";
}

umdAdvice umdStatusAdvice(umdStatus st)
{
    const struct umd_status_info *row = find(st);

    if (!row && st > 0) /* a status of a newer library */
        return (umdAdvice){ .action = UMD_ACTION_NONE, .severity = UMD_SEVERITY_INFO, .scope = UMD_SCOPE_CALL };
    if (!row)
        return (umdAdvice){ .action = UMD_ACTION_ABORT, .severity = UMD_SEVERITY_FATAL, .scope = UMD_SCOPE_DEVICE, .sticky = true };
    return (umdAdvice){
        .action = row->action, .severity = row->severity, .scope = row->scope,
        .sticky = row->sticky, .delay_ms = row->delay_ms, .count = row->count,
    };
}

/* ---- For tools and the driver itself ---- */

const struct umd_status_info *umd_status_info(umdStatus st) { return find(st); }
uint32_t umd_status_count(void) { return ROW_COUNT; }
const struct umd_status_info *umd_status_at(uint32_t index) { return index < ROW_COUNT ? &status_rows[index] : NULL; }

const char *umd_status_class_text(const char *class_name)
{
    for (size_t i = 0; i < sizeof(class_rows) / sizeof(class_rows[0]); i++)
        if (strcmp(class_rows[i][0], class_name) == 0)
            return class_rows[i][1];
    return "";
}

static const char *word(const char *const *words, size_t count, unsigned value) { return value < count ? words[value] : "unknown"; }
#define WORD(words_, value_) word((words_), sizeof(words_) / sizeof((words_)[0]), (unsigned)(value_))

const char *umd_severity_word(umdSeverity severity) { return WORD(severity_words, severity); }
const char *umd_scope_word(umdScope scope) { return WORD(scope_words, scope); }
const char *umd_action_word(umdAction action) { return WORD(action_words, action); }

const char *umd_action_text(umdAction action)
{
    static const char *const text[] = {
        [UMD_ACTION_NONE] = "nothing", [UMD_ACTION_RETRY] = "retry", [UMD_ACTION_FREE_RETRY] = "free what is short, then retry",
        [UMD_ACTION_CHANGE_ARGUMENT] = "change an argument", [UMD_ACTION_SKIP] = "skip the work",
        [UMD_ACTION_REBUILD_CONTEXT] = "rebuild the context", [UMD_ACTION_RESET_DEVICE] = "reset the device",
        [UMD_ACTION_ABORT] = "stop",
    };
    return WORD(text, action);
}

struct umd_driver_retry umd_status_driver_retry(umdStatus st)
{
    const struct umd_status_info *row = find(st);

    return row ? (struct umd_driver_retry){ row->driver_delay_ms, row->driver_count } : (struct umd_driver_retry){ 0 };
}
