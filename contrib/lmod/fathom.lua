-- SPDX-License-Identifier: Apache-2.0
-- Lmod module file: put it at MODULEPATH/fathom/0.1.0.lua and set prefix.
local prefix = "/opt/fathom/0.1.0"

help([[Runs DeepSeek models (fathom bench, serve, run) and Hartree-Fock and DFT (fathom scf).]])
whatis("Name: fathom")
whatis("Version: 0.1.0")
whatis("Description: DeepSeek inference, and Hartree-Fock and DFT, in one program")
whatis("License: Apache-2.0")

conflict("fathom")
-- The MPI it was built with, for several ranks:
-- depends_on("openmpi")

prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("LD_LIBRARY_PATH", pathJoin(prefix, "lib"))
prepend_path("PKG_CONFIG_PATH", pathJoin(prefix, "lib/pkgconfig"))
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
prepend_path("XDG_DATA_DIRS", pathJoin(prefix, "share"))
setenv("FATHOM_ROOT", prefix)
