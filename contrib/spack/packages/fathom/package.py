# SPDX-License-Identifier: Apache-2.0
# Spack recipe.  From the root of the source tree:
#     spack repo add contrib/spack && spack dev-build fathom@main
from spack.package import *


class Fathom(CMakePackage, CudaPackage):
    """Runs DeepSeek language models on CPUs and Hopper GPUs, and Hartree-Fock and DFT calculations."""

    license("Apache-2.0")

    version("main")

    variant("mpi", default=True, description="Several ranks, on one host or many")

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+cuda")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("jansson")
    depends_on("pcre2")
    depends_on("libevent+openssl")
    depends_on("openssl")
    depends_on("hwloc")
    depends_on("libedit")
    depends_on("openblas")
    depends_on("netlib-lapack+lapacke")
    depends_on("libxc")
    depends_on("xxhash", type="build")
    depends_on("mpi@3:", when="+mpi")
    depends_on("cuda@13:", when="+cuda")

    conflicts("cuda_arch=none", when="+cuda", msg="kernels are for Hopper: cuda_arch=90a")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define("FM_MPI", "ON" if self.spec.satisfies("+mpi") else "OFF"),
            self.define("FM_CUDA", "ON" if self.spec.satisfies("+cuda") else "OFF"),
            self.define("FM_TESTS", "OFF"),
        ]
