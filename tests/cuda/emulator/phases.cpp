/* SPDX-License-Identifier: Apache-2.0 */
#include "phases.h"

#include <string.h>

/* What the eight bytes hold. */
struct phase_word {
    uint16_t made_for;
    uint16_t left : 15, parity : 1;
    int32_t  bytes; /* announced and not yet there */
};
static_assert(sizeof(phase_word) == sizeof(uint64_t), "a barrier has eight bytes");

struct bulk_copy {
    uint64_t                 *barrier;
    std::vector<fm_emu_piece> pieces;
    int                       bytes, arrivals; /* what its landing reports */
};

static std::vector<bulk_copy> under_way;
static unsigned               n_landed;

static phase_word read_phase(const uint64_t *b)
{
    phase_word w;
    fm_emu_need_shared("mbarrier", b, sizeof *b, sizeof *b);
    memcpy(&w, b, sizeof w);
    if (w.made_for == 0 || w.made_for == 0xffff) fm_emu_stop("an mbarrier without fm_mbarrier_init");
    return w;
}

static void count(uint64_t *b, int arrivals, int bytes)
{
    phase_word w = read_phase(b);
    if (w.left < arrivals)
        fm_emu_stop("an mbarrier for %d arrivals has one more in a phase", w.made_for);
    w.left = (uint16_t)(w.left - arrivals) & 0x7fff;
    w.bytes += bytes;
    const bool is_over = w.left == 0 && w.bytes == 0;
    if (is_over) {
        w.left   = w.made_for & 0x7fff;
        w.parity = !w.parity;
    }
    memcpy(b, &w, sizeof w);
    if (is_over) fm_emu_wake(b);
}

int fm_emu_phase_parity(const uint64_t *b) { return read_phase(b).parity; }

void fm_emu_phase_init(uint64_t *b, int n_arrive)
{
    phase_word w = {};
    fm_emu_need_shared("mbarrier", b, sizeof *b, sizeof *b);
    if (n_arrive < 1 || n_arrive > 1024) fm_emu_stop("an mbarrier for %d arrivals", n_arrive);
    w.made_for = (uint16_t)n_arrive;
    w.left     = w.made_for & 0x7fff;
    memcpy(b, &w, sizeof w);
}

/* Bytes are announced before the arrival can end the phase. */
void fm_emu_phase_arrive(uint64_t *b, int bytes) { count(b, 1, bytes); }

void fm_emu_phase_wait(uint64_t *b, int parity)
{
    while (fm_emu_phase_parity(b) == parity) fm_emu_sleep_at(b);
}

void fm_emu_phase_arrive_copied(uint64_t *b)
{
    bulk_copy c = {b, {}, 0, 1};
    fm_emu_take_copies([&c](void *to, const void *from, size_t bytes) {
        c.pieces.push_back(
            {(unsigned char *)to, (const unsigned char *)from, from ? (int)bytes : 0, bytes});
    });
    under_way.push_back(std::move(c));
}

void fm_emu_bulk(uint64_t *b, const std::vector<fm_emu_piece> &pieces, int bytes)
{
    read_phase(b);
    for (const fm_emu_piece &p : pieces) memset(p.to, 0xff, p.room);
    under_way.push_back({b, pieces, bytes, 0});
}

static void land(const bulk_copy &c)
{
    for (const fm_emu_piece &p : c.pieces) {
        memset(p.to, 0, p.room);
        if (p.n) memcpy(p.to, p.from, (size_t)p.n);
    }
    count(c.barrier, c.arrivals, -c.bytes);
}

/* The oldest and the newest by turns: copies overtake each other. */
bool fm_emu_land_next()
{
    if (under_way.empty()) return false;
    const auto at = n_landed++ % 2 ? under_way.begin() : under_way.end() - 1;
    const bulk_copy c = std::move(*at);
    under_way.erase(at);
    land(c);
    return true;
}

void fm_emu_need_no_bulk()
{
    if (!under_way.empty()) fm_emu_stop("%zu bulk copies are never waited for", under_way.size());
}
