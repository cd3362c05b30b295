#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mpirun ... tools/gpu/own_host.sh COMMAND...: NCCL takes each rank for one on a host of its own, and so
# accepts several ranks on one GPU.  For tests: it is slow.
NCCL_HOSTID=fathom-$OMPI_COMM_WORLD_RANK exec "$@"
