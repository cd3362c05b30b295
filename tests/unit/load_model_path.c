/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "llm/load/model_path.h"
#include "load_support.h"

static const char *const variables[] = {"HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME"};

enum { NOBODY = 65534 };

static void forget_environment(void)
{
    for (size_t i = 0; i < 4; i++) unsetenv(variables[i]);
}

/* mkdir -p below the temporary directory */
static void make_folders(const temp_dir *d, const char *path)
{
    char full[1024];
    snprintf(full, sizeof full, "%s/%s", d->path, path);
    for (char *p = full + strlen(d->path) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(full, 0755);
        *p = '/';
    }
    mkdir(full, 0755);
}

static void snapshot(const temp_dir *d, const char *hub, const char *revision)
{
    fm_str path = {0};
    fm_str_printf(&path, "%s%smodels--org--Some-Model.1/snapshots/%s", hub, *hub ? "/" : "",
                  revision);
    make_folders(d, path.text);
    fm_str_puts(&path, "/config.json");
    temp_text(d, path.text, "{}");
    fm_str_fini(&path);
}

static void set_mtime(const temp_dir *d, const char *path, long seconds)
{
    char                  full[1024];
    const struct timespec t[2] = {{seconds, 0}, {seconds, 0}};
    snprintf(full, sizeof full, "%s/%s", d->path, path);
    assert_int_equal(utimensat(-1, full, t, 0), 0);
}

static void expect_found(const char *asked, const char *ends_with)
{
    fm_model_path p;
    if (fm_model_path_find(&p, asked) != FM_OK) fail_msg("%s", fm_why());
    assert_null(p.builtin);
    assert_string_equal(p.name, asked);
    assert_true(strlen(p.dir) >= strlen(ends_with));
    assert_string_equal(p.dir + strlen(p.dir) - strlen(ends_with), ends_with);
}

static void builtin_shapes(void **state)
{
    (void)state;
    static const char *const names[] = {"r1", "v2-lite", "r1-mini"};
    for (size_t i = 0; i < 3; i++) {
        fm_model_path p;
        assert_int_equal(fm_model_path_find(&p, names[i]), FM_OK);
        assert_ptr_equal(p.builtin, fm_builtin_config(names[i]));
        assert_string_equal(p.dir, "");
    }
}

static void directories(void **state)
{
    (void)state;
    temp_dir      d;
    fm_model_path p;
    temp_dir_make(&d);
    assert_int_equal(fm_model_path_find(&p, d.path), FM_E_IO);
    assert_non_null(strstr(fm_why(), "no config.json"));
    temp_text(&d, "config.json", "{}");
    expect_found(d.path, d.path);
    temp_dir_remove(&d);
}

/* As another user, should this one be allowed everything. */
static void expect_closed(const char *asked, const char *what)
{
    fm_model_path p;
    const uid_t   me = geteuid();
    assert_int_equal(seteuid(me ? me : NOBODY), 0);
    const fm_status rc = fm_model_path_find(&p, asked);
    assert_int_equal(seteuid(me), 0);
    assert_int_equal(rc, FM_E_IO);
    if (!strstr(fm_why(), what)) fail_msg("\"%s\" does not say \"%s\"", fm_why(), what);
}

static void directories_of_others(void **state)
{
    (void)state;
    char     model[1024];
    temp_dir d;
    temp_dir_make(&d);
    forget_environment();
    make_folders(&d, "models/good");
    temp_text(&d, "models/good/config.json", "{}");
    snprintf(model, sizeof model, "%s/models/good", d.path);
    chmod(d.path, 0755);

    chmod(model, 0);
    expect_closed(model, "good: Permission denied");
    chmod(model, 0755);
    expect_found(model, model);

    setenv("HF_HUB_CACHE", d.path, 1);
    snapshot(&d, "", "abc");
    chmod(d.path, 0);
    expect_closed(model, "good: Permission denied");
    expect_closed("org/Some-Model.1", " (Permission denied)");
    chmod(d.path, 0755);
    expect_found("org/Some-Model.1", "/abc");
    temp_dir_remove(&d);
    forget_environment();
}

/* Each variable leads to its folder. */
static void cache_folders(void **state)
{
    (void)state;
    static const char *const hub[] = {"", "hub", "huggingface/hub", ".cache/huggingface/hub"};
    for (size_t i = 0; i < 4; i++) {
        temp_dir d;
        temp_dir_make(&d);
        forget_environment();
        setenv(variables[i], d.path, 1);
        snapshot(&d, hub[i], "abc");
        expect_found("org/Some-Model.1", "models--org--Some-Model.1/snapshots/abc");
        temp_dir_remove(&d);
    }
    forget_environment();
}

static void main_revision_or_newest(void **state)
{
    (void)state;
    temp_dir d;
    temp_dir_make(&d);
    forget_environment();
    setenv("HF_HUB_CACHE", d.path, 1);
    snapshot(&d, "", "old");
    snapshot(&d, "", "new");
    snapshot(&d, "", "middle");
    make_folders(&d, "models--org--Some-Model.1/snapshots/without-config");
    set_mtime(&d, "models--org--Some-Model.1/snapshots/old", 1000);
    set_mtime(&d, "models--org--Some-Model.1/snapshots/new", 3000);
    set_mtime(&d, "models--org--Some-Model.1/snapshots/middle", 2000);
    expect_found("org/Some-Model.1", "/new");

    make_folders(&d, "models--org--Some-Model.1/refs");
    temp_text(&d, "models--org--Some-Model.1/refs/main", "old\n");
    expect_found("org/Some-Model.1", "/old");
    temp_text(&d, "models--org--Some-Model.1/refs/main", "never-downloaded");
    expect_found("org/Some-Model.1", "/new");
    temp_text(&d, "models--org--Some-Model.1/refs/main", "../../../etc");
    expect_found("org/Some-Model.1", "/new");
    temp_dir_remove(&d);
    forget_environment();
}

static void nothing_found(void **state)
{
    (void)state;
    fm_model_path p;
    forget_environment();
    setenv("HF_HOME", "/nonexistent/hf", 1);
    setenv("HOME", "/nonexistent/home", 1);
    assert_int_equal(fm_model_path_find(&p, "org/absent"), FM_E_IO);
    assert_non_null(strstr(fm_why(), "org/absent"));
    assert_non_null(strstr(fm_why(), "/nonexistent/hf/hub"));
    assert_non_null(strstr(fm_why(), "/nonexistent/home/.cache/huggingface/hub"));
    assert_int_equal(fm_model_path_find(&p, "r2"), FM_E_IO);
    assert_non_null(strstr(fm_why(), "r1-mini"));
    assert_int_equal(fm_model_path_find(&p, ""), FM_E_ARG);
    assert_int_equal(fm_model_path_find(&p, NULL), FM_E_ARG);

    static char endless[20000];
    memset(endless, 'x', sizeof endless - 1);
    assert_int_equal(fm_model_path_find(&p, endless), FM_E_IO);
    endless[100] = '/';
    assert_int_equal(fm_model_path_find(&p, endless), FM_E_IO);
    forget_environment();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(builtin_shapes), cmocka_unit_test(directories),
        cmocka_unit_test(cache_folders),  cmocka_unit_test(main_revision_or_newest),
        cmocka_unit_test(nothing_found),  cmocka_unit_test(directories_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
