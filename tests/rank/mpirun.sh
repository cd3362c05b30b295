#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mpirun.sh N PROGRAM [ARG...]: N ranks on this machine, with any number of cores
# (oversubscribed) and also as root.
n=$1
shift
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl_vader_single_copy_mechanism=none # containers often forbid the fast one, loudly
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
export ASAN_OPTIONS="detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}" # MPI keeps what it allocates
exec mpirun -np "$n" "$@"
