/* SPDX-License-Identifier: MIT */
/* status.h - the whole row of a return code, for tools and for the driver's own retries. The public part is umd_diag.h. */
#ifndef UMD_DIAG_STATUS_H
#define UMD_DIAG_STATUS_H

#include <umd/umd_diag.h>

/** A row of status.toml. Texts are static and never NULL. */
struct umd_status_info {
    umdStatus code;
    const char *name, *class_name;     /**< class: second part of the name, "STATUS" for positive codes */
    const char *when, *todo;
    const char *since, *retired;       /**< versions; retired "": still returned */
    const char *errno_name, *vkresult;
    const char *cuda, *hip, *ze;       /**< counterparts, one or several with blanks between; "": none */
    umdStatusRange range;
    umdSeverity severity;
    umdScope scope;
    umdAction action;
    bool sticky, provisional;          /**< provisional: no mechanism of this version raises it */
    uint32_t delay_ms, count;          /**< retry that makes sense for the caller */
    uint32_t driver_delay_ms, driver_count; /**< retry that the driver itself has done before; count 0: none */
    int err;
};
struct umd_status_range_info {
    umdStatusRange range;
    const char *name, *text;
    int32_t first, last;
};

/** NULL for a value outside the table. */
UMD_API const struct umd_status_info *umd_status_info(umdStatus st);
/** All rows, by rising value. */
UMD_API uint32_t umd_status_count(void);
UMD_API const struct umd_status_info *umd_status_at(uint32_t index);
/** The range that a value lies in; NULL: none. */
UMD_API const struct umd_status_range_info *umd_status_range_info(umdStatus st);
/** What a class of codes is about; "" for an unknown one. */
UMD_API const char *umd_status_class_text(const char *class_name);
/** Words of the table: "error", "context", "free_retry"; "unknown" outside the enum. */
UMD_API const char *umd_severity_word(umdSeverity severity);
UMD_API const char *umd_scope_word(umdScope scope);
UMD_API const char *umd_action_word(umdAction action);
/** What the action is, for people: "free what is short, then retry". Static string, pure. */
UMD_API const char *umd_action_text(umdAction action);

/** The list of the public call (api_codes.toml) has the code; one without a list may return any failure of the table. Not for success. */
UMD_API bool umd_api_may_return(const char *function, umdStatus st);
/** Public calls that have a list, by name; NULL: no more. */
UMD_API const char *umd_api_function_at(uint32_t index);

/** How often the driver itself retries what failed with the code before the caller gets it, and the pause before each (B12). Count 0: never. */
struct umd_driver_retry {
    uint32_t delay_ms, count;
};
UMD_API struct umd_driver_retry umd_status_driver_retry(umdStatus st);

#endif
