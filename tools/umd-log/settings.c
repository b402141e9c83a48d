/* SPDX-License-Identifier: MIT */
/* settings.c - reads an environment, and resolves levels and paths as the library would. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "env.h"
#include "nearest.h"
#include "rec.h"
#include "settings.h"

const struct umd_log_sink_facts *sink_facts(int sink)
{
    static struct umd_log_sink_facts facts[16];
    const size_t i = (size_t)sink;

    if (i >= sizeof(facts) / sizeof(facts[0]) || (!facts[i].name && !umd_log_sink_facts((uint32_t)i, &facts[i])))
        return NULL;
    return &facts[i];
}

const char *settings_of_environment(const struct settings *s, const char *name)
{
    size_t n = strlen(name);

    if (!s->block)
        return env_before(name) ? env_before(name) : getenv(name);
    for (const char *at = s->block; at < s->block + s->block_B; at += strlen(at) + 1) {
        if (strncmp(at, name, n) == 0 && at[n] == '=')
            return at + n + 1;
    }
    return NULL;
}

const char *settings_entry_at(const struct settings *s, uint32_t i)
{
    const char *at = s->block;

    if (!at)
        return env_before_at(i);
    while (i && at < s->block + s->block_B) {
        at += strlen(at) + 1;
        i--;
    }
    return at < s->block + s->block_B ? at : NULL;
}

/* What the library makes of it; of a section that it does not read, whether its own was meant. False: it is for others. */
static bool judge(const struct umd_log_config_entry *e, char *problem, size_t size)
{
    char unused[160];

    problem[0] = '\0';
    if (strcmp(e->section, "log") != 0) {
        const bool known = umd_log_setting_check(e->key, e->value, true, unused, sizeof(unused)) || strcmp(unused, "no such setting") != 0;
        if (!known && umd_nearest_distance(e->section, strlen(e->section), "log") > 1)
            return false;
        snprintf(problem, size, "it stands in section [%.40s], and only [log] is read", e->section);
    } else if (e->problem) {
        snprintf(problem, size, "%s", e->problem);
    } else if (!umd_log_setting_check(e->key, e->value, true, unused, sizeof(unused))) {
        snprintf(problem, size, "%s", unused);
    }
    return true;
}

static void take(void *arg, const struct umd_log_config_entry *e)
{
    struct settings *s = arg;
    char problem[200];

    if (s->config_count == sizeof(s->config) / sizeof(s->config[0]) || !judge(e, problem, sizeof(problem)))
        return;
    s->config[s->config_count++] = (struct setting_of_file){
        .key = strdup(e->key), .value = strdup(e->value), .file = strdup(e->file), .line = e->line, .problem = *problem ? strdup(problem) : NULL,
    };
}

static void lend(const struct settings *s, const char *name)
{
    const char *value = settings_of_environment(s, name);

    if (value)
        (void)setenv(name, value, 1);
    else
        (void)unsetenv(name);
}

/* The library's own search, with the variables that it goes by as that environment has them. */
static void read_config(struct settings *s)
{
    lend(s, "HOME");
    lend(s, "XDG_CONFIG_HOME");
    const char *named = s->block ? settings_of_environment(s, "PETREL_CONFIG") : env_before("PETREL_CONFIG");
    if (named)
        (void)setenv("PETREL_CONFIG", named, 1);
    else
        (void)unsetenv("PETREL_CONFIG");
    umd_log_config_read(take, s);
    (void)setenv("PETREL_CONFIG", "", 1);
}

void settings_own(struct settings *s)
{
    *s = (struct settings){ 0 };
    if (!getcwd(s->cwd, sizeof(s->cwd)))
        s->cwd[0] = '\0';
    read_config(s);
}

int settings_of(struct settings *s, uint32_t pid)
{
    char path[64];
    ssize_t n;

    *s = (struct settings){ .pid = pid };
    snprintf(path, sizeof(path), "/proc/%u/cwd", pid);
    n = readlink(path, s->cwd, sizeof(s->cwd) - 1);
    s->cwd[n > 0 ? n : 0] = '\0';
    snprintf(path, sizeof(path), "/proc/%u/environ", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    for (size_t size = 0;;) {
        if (s->block_B + 1 >= size) {
            size = size ? size * 2 : 65536;
            char *grown = size > (8u << 20) ? NULL : realloc(s->block, size);
            if (!grown)
                break;
            s->block = grown;
        }
        n = read(fd, s->block + s->block_B, size - s->block_B - 1);
        if (n <= 0)
            break;
        s->block_B += (size_t)n;
    }
    close(fd);
    if (!s->block)
        return ENOMEM;
    s->block[s->block_B] = '\0';
    read_config(s);
    return 0;
}

void settings_finish(struct settings *s)
{
    for (uint32_t i = 0; i < s->config_count; i++) {
        free(s->config[i].key);
        free(s->config[i].value);
        free(s->config[i].file);
        free(s->config[i].problem);
    }
    free(s->block);
    *s = (struct settings){ 0 };
}

/* Of several lines with one key the last counts. */
static const struct setting_of_file *of_file(const struct settings *s, const char *name)
{
    for (uint32_t i = s->config_count; i > 0; i--) {
        const struct setting_of_file *f = &s->config[i - 1];
        if (f->key && f->value && !f->problem && strcmp(f->key, name) == 0)
            return f;
    }
    return NULL;
}

const char *settings_get(const struct settings *s, const char *name)
{
    const char *value = settings_of_environment(s, name);
    const struct setting_of_file *f = value ? NULL : of_file(s, name);

    return value ? value : f ? f->value : NULL;
}

const char *settings_where(const struct settings *s, const char *name)
{
    static char text[512];
    const struct setting_of_file *f = settings_of_environment(s, name) ? NULL : of_file(s, name);

    if (!f)
        return name;
    snprintf(text, sizeof(text), "%s (%s, line %u)", name, f->file ? f->file : "?", f->line);
    return text;
}

/* One rule of a specification: "umd.mem=trace", "warn". Value: what follows it; NULL: the mistake is at its word. */
struct rule {
    const char *module, *word;  /* word: the level */
    size_t module_n;
    int level;                  /* 0: off */
};

static const char *next_rule(const char *s, struct rule *r)
{
    s += strspn(s, " \t");
    size_t n = strcspn(s, ","), left = strcspn(s, "=,");
    const char *end = s + n;

    while (n && (s[n - 1] == ' ' || s[n - 1] == '\t'))
        n--;
    *r = (struct rule){ .module = s, .module_n = left < n ? left : 0 };
    const char *word = left < n ? s + left + 1 : s;
    size_t word_n = left < n ? n - left - 1 : n;
    r->word = word;
    r->level = log_level_of(word, word_n);
    bool off = word_n == 3 && strncasecmp(word, "off", 3) == 0;
    if ((!r->level && !off) || (left < n && left == 0))
        return NULL;
    return *end ? end + 1 : end;
}

bool settings_levels_valid(const char *spec, size_t *position_out)
{
    struct rule r;

    for (const char *s = spec; *(s + strspn(s, " \t"));) {
        const char *next = next_rule(s, &r);
        *position_out = (size_t)(r.word - spec);
        if (!next)
            return false;
        s = next;
    }
    return true;
}

/* The longest match; of equals the later one counts. */
static bool lookup(const char *spec, const char *module, int *level_out)
{
    size_t position, best = 0;
    bool found = false;
    struct rule r;

    if (!spec || !settings_levels_valid(spec, &position))
        return false;
    for (const char *s = spec; *(s + strspn(s, " \t"));) {
        s = next_rule(s, &r);
        bool match = r.module_n == 0 ||
                     (strncmp(r.module, module, r.module_n) == 0 && (module[r.module_n] == '\0' || module[r.module_n] == '.'));
        if (match && r.module_n >= best) {
            best = r.module_n;
            found = true;
            *level_out = r.level;
        }
    }
    return found;
}

int sink_level(int sink, const char *own, const char *all, const char *module, int *which_out)
{
    const struct umd_log_sink_facts *f = sink_facts(sink);
    int level = (int)f->level;

    *which_out = 0;
    if (f->level_key && lookup(own, module, &level))
        *which_out = 1;
    else if (!f->own_levels && lookup(all, module, &level))
        *which_out = 2;
    else if (f->rules)
        (void)lookup(f->rules, module, &level);
    return level;
}

int settings_level(const struct settings *s, int sink, const char *module, const char **by_out)
{
    const char *key = sink_facts(sink)->level_key;
    int which, level = sink_level(sink, key ? settings_get(s, key) : NULL, settings_get(s, "UMD_LOG_LEVEL"), module, &which);

    *by_out = which == 0 ? "the default" : settings_where(s, which == 1 ? key : "UMD_LOG_LEVEL");
    return level;
}

bool settings_path(const struct settings *s, const char *key, char *out, size_t size)
{
    const char *value = key ? settings_get(s, key) : NULL;
    size_t n = 0;

    if (!value || !*value)
        return false;
    if (*value != '/') {
        n = (size_t)snprintf(out, size, "%s/", s->cwd);
        if (n >= size)
            return false;
    }
    for (; *value; value++) {
        char piece[16] = { *value, '\0' };
        if (*value == '%' && value[1] == 'p') {
            if (s->pid)
                snprintf(piece, sizeof(piece), "%u", s->pid);
            else
                snprintf(piece, sizeof(piece), "%%p");
            value++;
        } else if (*value == '%' && value[1] == '%') {
            value++;
        }
        if (n + strlen(piece) >= size)
            return false;
        memcpy(out + n, piece, strlen(piece) + 1);
        n += strlen(piece);
    }
    return true;
}
