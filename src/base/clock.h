/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FM_BASE_CLOCK_H
#define FM_BASE_CLOCK_H

double fm_now(void);        /* seconds on a clock that never goes back */
double fm_start_time(void); /* fm_now() when this program started */

#endif
