/* SPDX-License-Identifier: MIT */
/* fault_parse.c - the grammar of fault specifications, by recursive descent; each error knows its position. */
#include <stdio.h>
#include <string.h>

#include "fault_parse.h"
#include "nearest.h"

struct parser {
    const char *spec;
    const char *at;
    struct umd_fault_error *error;
};

/* Action names out of fault_sites.def, ended and shared: a hit may outlive the plan that it came from. */
static const char *const actions[] = { "fail", "fire", "delay" };

static const struct { const char *name; uint64_t min; } attrs[ATTR_COUNT] = {
    [ATTR_NTH] = { "nth", 1 }, [ATTR_INTERVAL] = { "interval", 1 }, [ATTR_SPACE] = { "space", 0 }, [ATTR_TIMES] = { "times", 1 },
    [ATTR_CTX] = { "ctx", 1 }, [ATTR_QUEUE] = { "queue", 1 }, [ATTR_RANK] = { "rank", 0 },
};

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

/* Always false, so that callers return it. The first error stands. */
static bool fail_at(struct parser *p, const char *where, const char *expected)
{
    struct umd_fault_error *e = p->error;
    size_t n = 0;

    e->position = (size_t)(where - p->spec);
    e->line = 1;
    e->column = 1;
    for (const char *s = p->spec; s < where; s++) {
        e->column = *s == '\n' ? 1 : e->column + 1;
        e->line += *s == '\n';
    }
    snprintf(e->expected, sizeof(e->expected), "%s", expected);
    if (!*where)
        n = (size_t)snprintf(e->found, sizeof(e->found), "end of text");
    else if (*where == '\n')
        n = (size_t)snprintf(e->found, sizeof(e->found), "end of line");
    else if (!is_word(*where))
        e->found[n++] = *where;
    else
        for (; is_word(where[n]) && n + 1 < sizeof(e->found); n++)
            e->found[n] = where[n];
    e->found[n] = '\0';
    for (char *c = e->found; *c; c++)
        if (*c == '"' || (unsigned char)*c < ' ' || (unsigned char)*c > 126)
            *c = '?';
    return false;
}

static void skip_blanks(struct parser *p)
{
    p->at += strspn(p->at, " \t\r");
    if (*p->at == '#')
        p->at += strcspn(p->at, "\n");
}

static bool take(struct parser *p, const char *token)
{
    skip_blanks(p);
    size_t n = strlen(token);
    if (strncmp(p->at, token, n) != 0)
        return false;
    p->at += n;
    return true;
}

static size_t word(struct parser *p, const char **begin)
{
    size_t n = 0;

    skip_blanks(p);
    *begin = p->at;
    while (is_word(p->at[n]))
        n++;
    return n;
}

static bool same(const char *begin, size_t n, const char *name) { return strlen(name) == n && memcmp(begin, name, n) == 0; }

/* Decimal or 0x; stops at the first byte that is no digit. */
static bool number(struct parser *p, const char *expected, uint64_t *out)
{
    uint64_t v = 0;
    const char *begin;
    unsigned base = 10;

    skip_blanks(p);
    begin = p->at;
    if (begin[0] == '0' && (begin[1] == 'x' || begin[1] == 'X')) {
        base = 16;
        p->at += 2;
    }
    const char *digits = p->at;
    for (;; p->at++) {
        char c = *p->at;
        unsigned d = c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                   : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10 : 99;
        if (d >= base)
            break;
        if (v > (UINT64_MAX - d) / base)
            return fail_at(p, begin, "a number below 2^64");
        v = v * base + d;
    }
    if (p->at == digits || (is_word(*p->at) && *p->at != '.'))
        return fail_at(p, begin, expected);
    *out = v;
    return true;
}

static void suggest(struct parser *p, const char *begin, size_t n)
{
    size_t best = n / 3 > 2 ? n / 3 + 1 : 3; /* further away is no help */

    for (int i = 0; i < (int)UMD_FAULT_SITE_COUNT; i++) {
        const char *name = umd_fault_site_info((enum umd_fault_site)i)->name;
        size_t d = umd_nearest_distance(begin, n, name);
        if (d < best) {
            best = d;
            snprintf(p->error->suggestion, sizeof(p->error->suggestion), "%s", name);
        }
    }
}

static bool attribute(struct parser *p, struct umd_fault_rule *rule)
{
    const char *begin;
    size_t n = word(p, &begin);

    for (int i = 0; i < ATTR_COUNT; i++) {
        if (!same(begin, n, attrs[i].name))
            continue;
        if (rule->given[i])
            return fail_at(p, begin, "each attribute once");
        p->at += n;
        if (!take(p, "="))
            return fail_at(p, p->at, "'=' after the attribute");
        skip_blanks(p);
        const char *value = p->at;
        if (!number(p, "a number", &rule->attr[i]))
            return false;
        if (rule->attr[i] < attrs[i].min)
            return fail_at(p, value, "a number from 1");
        rule->given[i] = true;
        return true;
    }
    return fail_at(p, begin, "an attribute: nth interval space times ctx queue rank");
}

static bool attributes(struct parser *p, struct umd_fault_rule *rule)
{
    if (!take(p, "["))
        return true;
    do
        if (!attribute(p, rule))
            return false;
    while (take(p, ","));
    return take(p, "]") || fail_at(p, p->at, "',' or ']'");
}

/* "5%" or "0.25%": up to four places after the point. */
static bool percent(struct parser *p, const char *begin, struct umd_fault_term *term)
{
    uint64_t whole = 0, part = 0, scale = 10000;

    p->at = begin;
    for (; *p->at >= '0' && *p->at <= '9' && whole <= 100; p->at++)
        whole = whole * 10 + (uint64_t)(*p->at - '0');
    if (*p->at == '.')
        for (p->at++; *p->at >= '0' && *p->at <= '9'; p->at++) {
            if (scale == 1)
                return fail_at(p, begin, "a percentage with at most four places");
            scale /= 10;
            part += (uint64_t)(*p->at - '0') * scale;
        }
    if (*p->at != '%' || whole * 10000 + part > UMD_FAULT_ALWAYS)
        return fail_at(p, begin, "a percentage from 0 to 100");
    p->at++;
    term->per_million = (uint32_t)(whole * 10000 + part);
    return true;
}

enum { ERRNO_MAX = 4095 }; /* of the kernel's MAX_ERRNO */

/* A number, or a name of errno such as ENOSPC. What the sites of the host's calls take is an errno. */
static bool argument(struct parser *p, const struct umd_fault_rule *rule, struct umd_fault_term *term)
{
    const char *begin;
    size_t n = word(p, &begin);

    if (term->arg_count == UMD_FAULT_ARGS)
        return fail_at(p, begin, "at most 4 arguments");
    uint64_t *out = &term->args[term->arg_count++];
    if (n && begin[0] == 'E') {
        for (int e = 1; e < 134; e++) {
            const char *name = strerrorname_np(e);
            if (name && same(begin, n, name)) {
                *out = (uint64_t)e;
                p->at += n;
                return true;
            }
        }
    }
    if (!number(p, "a number or an errno name", out))
        return false;
    if (strncmp(umd_fault_site_info(rule->site)->name, "sys.", 4) == 0 && (*out == 0 || *out > ERRNO_MAX))
        return fail_at(p, begin, "an errno from 1 to 4095");
    return true;
}

static bool action(struct parser *p, const struct umd_fault_rule *rule, struct umd_fault_term *term)
{
    const char *begin, *list = umd_fault_site_info(rule->site)->actions;
    size_t n = word(p, &begin);
    char expected[80];

    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]) && n; i++) {
        if (!same(begin, n, actions[i]))
            continue;
        /* The site's list is "a,b": a whole word of it. */
        for (const char *s = list; *s; s += strcspn(s, ","), s += *s == ',')
            if (same(s, strcspn(s, ","), actions[i]))
                term->action = actions[i];
    }
    if (!term->action) {
        snprintf(expected, sizeof(expected), "an action of this site: %s", list);
        return fail_at(p, begin, expected);
    }
    p->at += n;
    if (!take(p, "("))
        return true;
    if (take(p, ")"))
        return true;
    do
        if (!argument(p, rule, term))
            return false;
    while (take(p, ","));
    return take(p, ")") || fail_at(p, p->at, "',' or ')'");
}

static bool term(struct parser *p, const struct umd_fault_rule *rule, struct umd_fault_term *out)
{
    const char *begin;

    *out = (struct umd_fault_term){ .per_million = UMD_FAULT_ALWAYS };
    skip_blanks(p);
    begin = p->at;
    if (begin[strspn(begin, "0123456789.")] == '%' && *begin != '%' && !percent(p, begin, out))
        return false;
    skip_blanks(p);
    begin = p->at;
    if (*begin >= '0' && *begin <= '9') {
        if (!number(p, "a count", &out->count))
            return false;
        if (out->count == 0)
            return fail_at(p, begin, "a count from 1");
        if (!take(p, "*"))
            return fail_at(p, p->at, "'*' after the count");
    }
    return action(p, rule, out);
}

static bool terms(struct parser *p, struct umd_fault_rule *rule)
{
    do {
        skip_blanks(p);
        if (rule->term_count == UMD_FAULT_TERMS)
            return fail_at(p, p->at, "at most 4 terms");
        if (rule->term_count && rule->terms[rule->term_count - 1].count == 0)
            return fail_at(p, p->at, "nothing more: the term before has no count, so it never ends");
        if (!term(p, rule, &rule->terms[rule->term_count++]))
            return false;
    } while (take(p, "->"));
    return true;
}

static bool site(struct parser *p, const char *begin, size_t n, struct umd_fault_rule *rule)
{
    for (int i = 0; i < (int)UMD_FAULT_SITE_COUNT; i++) {
        if (!same(begin, n, umd_fault_site_info((enum umd_fault_site)i)->name))
            continue;
        rule->site = (enum umd_fault_site)i;
        p->at += n;
        return true;
    }
    suggest(p, begin, n);
    return fail_at(p, begin, "a fault site");
}

static bool rule(struct parser *p, struct umd_fault_plan *plan)
{
    const char *begin;
    size_t n = word(p, &begin);

    if (same(begin, n, "seed")) {
        p->at += n;
        return take(p, "=") ? number(p, "a number", &plan->seed) : fail_at(p, p->at, "'=' after seed");
    }
    if (plan->rule_count == UMD_FAULT_RULES)
        return fail_at(p, begin, "at most 64 rules");
    struct umd_fault_rule *r = &plan->rules[plan->rule_count++];
    *r = (struct umd_fault_rule){ 0 };
    if (!site(p, begin, n, r) || !attributes(p, r))
        return false;
    if (!take(p, "="))
        return fail_at(p, p->at, "'[' or '=' after the site");
    return terms(p, r);
}

bool umd_fault_parse(const char *spec, struct umd_fault_plan *plan, struct umd_fault_error *error)
{
    struct parser p = { .spec = spec, .at = spec, .error = error };

    *error = (struct umd_fault_error){ 0 };
    plan->seed = 0;
    plan->rule_count = 0;
    for (;;) {
        skip_blanks(&p);
        if (*p.at == ';' || *p.at == '\n') {
            p.at++;
            continue;
        }
        if (!*p.at)
            return true;
        if (!rule(&p, plan))
            return false;
        skip_blanks(&p);
        if (*p.at && *p.at != ';' && *p.at != '\n')
            return fail_at(&p, p.at, "';' or end of text after the rule");
    }
}
