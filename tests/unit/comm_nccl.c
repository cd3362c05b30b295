/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of NCCL, by a stand-in library that fails where the test says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "comm/device_comm.h"
#include "comm/nccl/nccl_library.h"
#include "comm/world_internal.h"

enum { REMOTE_ERROR = 6 };

static struct {
    int is_absent, is_stuck, error; /* what goes wrong */
    int n_aborted, n_destroyed, n_call, n_blamed;
    int n_async; /* answers of "in progress" still to come */
} fake;

/* --- what stands around the file under test --------------------------------- */

fm_status fm_comm_run(fm_comm *c, fm_comm_call call)
{
    (void)c, (void)call;
    return FM_OK;
}

double fm__world_timeout(const fm_world *w)
{
    (void)w;
    return 0.05;
}

void fm__world_blame(fm_world *w)
{
    (void)w;
    fake.n_blamed++;
}

static int get_id(fm__nccl_id *id)
{
    *id = (fm__nccl_id){{1}};
    return 0;
}

static int init(fm__nccl_comm *out, int n, fm__nccl_id id, int rank, fm__nccl_config *config)
{
    (void)n, (void)id, (void)rank;
    *out = (fm__nccl_comm)&fake;
    assert_int_equal(config->blocking, 0);
    fake.n_async = 3;
    return FM__NCCL_IN_PROGRESS;
}

static int async_error(fm__nccl_comm c, int *state)
{
    assert_ptr_equal(c, &fake);
    *state = fake.error                            ? fake.error
             : fake.is_stuck || fake.n_async-- > 0 ? FM__NCCL_IN_PROGRESS
                                                   : 0;
    return 0;
}

static int finalize(fm__nccl_comm c)
{
    (void)c;
    return fake.is_stuck ? FM__NCCL_IN_PROGRESS : FM__NCCL_OK;
}

static int destroy(fm__nccl_comm c)
{
    (void)c;
    fake.n_destroyed++;
    return 0;
}

static int abort_comm(fm__nccl_comm c)
{
    (void)c;
    fake.n_aborted++;
    return 0;
}

static int send_bytes(const void *p, size_t n, int type, int to, fm__nccl_comm c, fm_stream s)
{
    (void)p, (void)n, (void)type, (void)to, (void)c, (void)s;
    fake.n_call++;
    return FM__NCCL_IN_PROGRESS;
}

static const char *error_string(int rc)
{
    return rc == REMOTE_ERROR ? "remote process exited" : "?";
}

fm_status fm__nccl_library(const fm__nccl_calls **out)
{
    static const fm__nccl_calls calls = {.GetUniqueId        = get_id,
                                         .CommInitRankConfig = init,
                                         .CommGetAsyncError  = async_error,
                                         .CommFinalize       = finalize,
                                         .CommDestroy        = destroy,
                                         .CommAbort          = abort_comm,
                                         .Send               = send_bytes,
                                         .GetErrorString     = error_string};
    *out                              = &calls;
    return fake.is_absent ? fm_fail(FM_E_NOSUP, "no such library") : FM_OK;
}

/* --- tests ------------------------------------------------------------------ */

static fm_comm pair; /* the group given to NCCL; nothing is sent */

static int begin(void **state)
{
    (void)state;
    memset(&fake, 0, sizeof fake);
    pair = (fm_comm){.rank = 0, .n_rank = 2};
    return 0;
}

static void test_opens_waits_and_closes(void **state)
{
    (void)state;
    fm_device_comm *c = NULL;
    assert_int_equal(fm_device_comm_open_nccl(&c, &pair), FM_OK);
    fake.n_async = 2;
    assert_int_equal(fm_device_comm_check(c), FM_OK); /* still in progress is no fault */
    assert_int_equal(fm_device_send(c, "x", 1, 1, NULL), FM_OK);
    assert_int_equal(fm_device_send(c, "x", 0, 1, NULL), FM_OK);
    assert_int_equal(fake.n_call, 1);
    fm_device_comm_close(c);
    assert_int_equal(fake.n_destroyed, 1);
    assert_int_equal(fake.n_aborted, 0);
}

static void test_absent_library_is_said_so(void **state)
{
    (void)state;
    fm_device_comm *c = NULL;
    fake.is_absent    = 1;
    assert_int_equal(fm_device_comm_open_nccl(&c, &pair), FM_E_NOSUP);
    assert_null(c);
}

static void test_joining_does_not_hang(void **state)
{
    (void)state;
    fm_device_comm *c = NULL;
    fake.is_stuck     = 1;
    assert_int_equal(fm_device_comm_open_nccl(&c, &pair), FM_E_COMM);
    assert_int_equal(fake.n_aborted, 1);
    assert_true(pair.is_broken);
}

static void test_lost_rank_ends_the_group(void **state)
{
    (void)state;
    fm_device_comm *c = NULL;
    assert_int_equal(fm_device_comm_open_nccl(&c, &pair), FM_OK);
    fake.error = REMOTE_ERROR;
    assert_int_equal(fm_device_comm_check(c), FM_E_COMM);
    assert_non_null(strstr(fm_why(), "remote process exited"));
    assert_int_equal(fake.n_aborted, 1);
    assert_true(pair.is_broken);
    fake.error = 0; /* an aborted group stays one */
    assert_int_equal(fm_device_send(c, "x", 1, 1, NULL), FM_E_COMM);
    assert_int_equal(fake.n_call, 0);
    fm_device_comm_close(c);
    assert_int_equal(fake.n_aborted, 1);
    assert_int_equal(fake.n_destroyed, 0);
}

/* A caller who can do without NCCL goes on without it: the job is not ended. */
static void test_optional_group_ends_alone(void **state)
{
    (void)state;
    fm_device_comm *c = NULL;
    fake.is_absent    = 1;
    assert_int_equal(fm_device_comm_find_nccl(), FM_E_NOSUP);
    fake.is_absent = 0;
    assert_int_equal(fm_device_comm_find_nccl(), FM_OK);
    fake.is_stuck = 1;
    assert_int_equal(fm_device_comm_try_nccl(&c, &pair), FM_E_COMM);
    assert_int_equal(fake.n_blamed, 0);
    fake.is_stuck = 0;
    assert_int_equal(fm_device_comm_try_nccl(&c, &pair), FM_OK);
    fm_device_comm_abort(c, "no answer");
    assert_non_null(strstr(fm_why(), "no answer"));
    assert_int_equal(fake.n_aborted, 2);
    assert_int_equal(fake.n_blamed, 0);
    assert_int_equal(fm_device_send(c, "x", 1, 1, NULL), FM_E_COMM);
    fm_device_comm_close(c);
    assert_int_equal(fm_device_comm_open_nccl(&c, &pair), FM_OK);
    fm_device_comm_abort(c, "no answer");
    assert_int_equal(fake.n_blamed, 1);
    fm_device_comm_close(c);
    assert_int_equal(fake.n_aborted, 3);
    assert_int_equal(fake.n_destroyed, 0);
}

/* A rank that failed at something else closes its groups, alone. */
static void test_closing_alone_keeps_the_sentence(void **state)
{
    (void)state;
    fm_device_comm *c = NULL;
    assert_int_equal(fm_device_comm_open_nccl(&c, &pair), FM_OK);
    fake.is_stuck = 1;
    (void)fm_fail(FM_E_DEVICE, "what went wrong");
    fm_device_comm_close(c);
    assert_string_equal(fm_why(), "what went wrong");
    assert_int_equal(fake.n_aborted, 1);
    assert_int_equal(fake.n_destroyed, 0);
    assert_int_equal(fake.n_blamed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_opens_waits_and_closes, begin),
        cmocka_unit_test_setup(test_absent_library_is_said_so, begin),
        cmocka_unit_test_setup(test_joining_does_not_hang, begin),
        cmocka_unit_test_setup(test_lost_rank_ends_the_group, begin),
        cmocka_unit_test_setup(test_optional_group_ends_alone, begin),
        cmocka_unit_test_setup(test_closing_alone_keeps_the_sentence, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
