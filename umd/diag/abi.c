/* SPDX-License-Identifier: MIT */
/*
 * abi.c - what programs that are built already share with this library: layout of structs, numbers of words. No code: it does not compile when
 * one of them has moved. A field stays where it is; a struct with size_B may get new ones behind its end, the others have a new name then.
 * The numbers of codes, actions, severities, scopes and ranges are held by tests/abi/status.lock, symbols by tests/abi/libumd_diag.symbols.
 */
#include <assert.h>
#include <stddef.h>

#include <umd/umd_diag.h>
#include <umd/umd_log.h>

#define AT(type_, field_, at_) static_assert(offsetof(type_, field_) == (at_), #type_ "." #field_ " is not where programs look for it")
#define SIZE(type_, size_) static_assert(sizeof(type_) == (size_), #type_ " has another size than in programs")
#define GROWS(type_, size_) static_assert(sizeof(type_) >= (size_), #type_ " is smaller than version 0.1 has it")
#define IS(word_, number_) static_assert((int)(word_) == (number_), #word_ " has another number than in programs")

SIZE(umdAdvice, 32);
AT(umdAdvice, action, 0);
AT(umdAdvice, severity, 4);
AT(umdAdvice, scope, 8);
AT(umdAdvice, sticky, 12);
AT(umdAdvice, delay_ms, 16);
AT(umdAdvice, count, 20);
AT(umdAdvice, largest_fit_B, 24);

SIZE(umdRecordId, 16);
AT(umdRecordId, boot, 0);
AT(umdRecordId, pid, 4);
AT(umdRecordId, seq, 8);

SIZE(umdHop, 120);
AT(umdHop, layer, 0);
AT(umdHop, func, 12);
AT(umdHop, file, 60);
AT(umdHop, line, 108);
AT(umdHop, code_in, 112);
AT(umdHop, code_out, 116);

GROWS(umdErrorDetail, UMD_ERROR_DETAIL_SIZE_V1);
AT(umdErrorDetail, size_B, 0);
AT(umdErrorDetail, code, 4);
AT(umdErrorDetail, origin_code, 8);
AT(umdErrorDetail, hop_count, 12);
AT(umdErrorDetail, id, 16);
AT(umdErrorDetail, cause, 32);
AT(umdErrorDetail, mono_ns, 48);
AT(umdErrorDetail, real_ns, 56);
AT(umdErrorDetail, context_id, 64);
AT(umdErrorDetail, tid, 72);
AT(umdErrorDetail, repeat, 76);
AT(umdErrorDetail, end, 80);
AT(umdErrorDetail, call_depth, 84);
AT(umdErrorDetail, advice, 88);
AT(umdErrorDetail, func, 120);
AT(umdErrorDetail, file, 168);
AT(umdErrorDetail, line, 216);
AT(umdErrorDetail, module, 220);
AT(umdErrorDetail, api, 236);
AT(umdErrorDetail, text, 284);
AT(umdErrorDetail, figures, 668);
AT(umdErrorDetail, absorbed, 1308);
AT(umdErrorDetail, hops, 1404);

SIZE(umdSceneCall, 216);
AT(umdSceneCall, name, 0);
AT(umdSceneCall, args, 48);
AT(umdSceneCall, start_ns, 192);
AT(umdSceneCall, end_ns, 200);
AT(umdSceneCall, code, 208);
AT(umdSceneCall, reserved, 212);

SIZE(umdErrorNote, 32);
AT(umdErrorNote, id, 0);
AT(umdErrorNote, mono_ns, 16);
AT(umdErrorNote, code, 24);
AT(umdErrorNote, reserved, 28);

GROWS(umdErrorScene, UMD_ERROR_SCENE_SIZE_V1);
AT(umdErrorScene, size_B, 0);
AT(umdErrorScene, tid, 4);
AT(umdErrorScene, call_depth, 8);
AT(umdErrorScene, calls_tid, 12);
AT(umdErrorScene, id, 16);
AT(umdErrorScene, digest, 32);
AT(umdErrorScene, call_count, 40);
AT(umdErrorScene, call_at, 44);
AT(umdErrorScene, error_count, 48);
AT(umdErrorScene, frame_count, 52);
AT(umdErrorScene, errors, 56);
AT(umdErrorScene, calls, 312);
AT(umdErrorScene, frames, 7224);

SIZE(umdErrorCounts, 56);
AT(umdErrorCounts, code, 0);
AT(umdErrorCounts, reserved, 4);
AT(umdErrorCounts, raised, 8);
AT(umdErrorCounts, delivered, 16);
AT(umdErrorCounts, absorbed, 24);
AT(umdErrorCounts, swallowed, 32);
AT(umdErrorCounts, retried, 40);
AT(umdErrorCounts, unlogged, 48);

SIZE(umdFigure, 720);
AT(umdFigure, kind, 0);
AT(umdFigure, unit, 4);
AT(umdFigure, int_value, 8);
AT(umdFigure, uint_value, 16);
AT(umdFigure, double_value, 24);
AT(umdFigure, key, 32);
AT(umdFigure, text, 80);

SIZE(umdLogStats, 48);
AT(umdLogStats, records, 0);
AT(umdLogStats, dropped, 8);
AT(umdLogStats, sink_errors, 16);
AT(umdLogStats, emergency, 24);
AT(umdLogStats, lost, 32);
AT(umdLogStats, sink_errno, 40);
AT(umdLogStats, reserved, 44);

SIZE(umdLogSite, 64);
AT(umdLogSite, module, 0);
AT(umdLogSite, func, 8);
AT(umdLogSite, file, 16);
AT(umdLogSite, fmt, 24);
AT(umdLogSite, line, 32);
AT(umdLogSite, id, 36);
AT(umdLogSite, level, 40);
AT(umdLogSite, arg_count, 41);
AT(umdLogSite, has_strings, 42);
AT(umdLogSite, ceiling, 43);
AT(umdLogSite, kind, 44);
AT(umdLogSite, code, 48);

SIZE(umdLogModule, 32);
AT(umdLogModule, name, 0);
AT(umdLogModule, level, 8);
AT(umdLogModule, next, 16);
AT(umdLogModule, sink_level, 24);

IS(UMD_RECORD_OPEN, 0);
IS(UMD_RECORD_DELIVERED, 1);
IS(UMD_RECORD_ABSORBED, 2);
IS(UMD_RECORD_SWALLOWED, 3);

IS(UMD_FIGURE_NONE, 0);
IS(UMD_FIGURE_STRING, 1);
IS(UMD_FIGURE_BOOL, 2);
IS(UMD_FIGURE_INT, 3);
IS(UMD_FIGURE_UINT, 4);
IS(UMD_FIGURE_DOUBLE, 5);

IS(UMD_UNIT_NONE, 0);
IS(UMD_UNIT_BYTES, 1);
IS(UMD_UNIT_NS, 2);
IS(UMD_UNIT_US, 3);
IS(UMD_UNIT_MS, 4);

IS(UMD_LOG_OFF, 0);
IS(UMD_LOG_ERROR, 1);
IS(UMD_LOG_WARN, 2);
IS(UMD_LOG_INFO, 3);
IS(UMD_LOG_DEBUG, 4);
IS(UMD_LOG_TRACE, 5);

IS(UMD_LOG_FORMAT_TEXT, 0);
IS(UMD_LOG_FORMAT_JSON, 1);
IS(UMD_LOG_FORMAT_BINARY, 2);
IS(UMD_LOG_FORMAT_RUN, 3);
IS(UMD_LOG_FORMAT_DISASTER, 4);

IS(UMD_LOG_PERIOD_OFF, 0);
IS(UMD_LOG_PERIOD_HOURLY, 1);
IS(UMD_LOG_PERIOD_DAILY, 2);

IS(UMD_SITE_LOG, 0);
IS(UMD_SITE_RAISE, 1);
IS(UMD_SITE_ABSORB, 2);

IS(UMD_RECORD_HOPS, 12);
IS(UMD_RECORD_TEXT, 384);
IS(UMD_RECORD_FIGURES, 640);
IS(UMD_SCENE_CALLS, 32);
IS(UMD_SCENE_ERRORS, 8);
IS(UMD_SCENE_FRAMES, 16);
