# For people: make, make chat, make bench, make bench-cpu, make bench-scf, make test, make install.  CMake does the work.
B      ?= build
PREFIX ?= /usr/local

all: $(B)/build.ninja
	@cmake --build $(B)

$(B)/build.ninja: | packages
	@cmake -G Ninja -B $(B) -DCMAKE_INSTALL_PREFIX=$(PREFIX) $(CMAKE_ARGS)

# What runs one program builds that one alone.
program: $(B)/build.ninja
	@cmake --build $(B) --target fathom_app

bench: program
	@$(B)/fathom bench

bench-cpu: $(B)/build.ninja
	@cmake --build $(B) --target bench_cpu
	@$(B)/bench/bench_cpu --commit $$(git describe --always --dirty 2>/dev/null || echo unknown) $(BENCH_ARGS)

# Beside NWChem and PySCF, where they are installed.
bench-scf: all
	@tools/peer/scf.sh $(B) $(BENCH_ARGS)

# With a GPU here.  tools/gpu/run.sh is for one elsewhere: it takes along what gpu-bundle makes.
test-gpu: test-packages $(B)/build.ninja
	@cmake --build $(B) --target fathom-test-gpu
	@$(B)/tests/cuda/gpu/fathom-test-gpu $(TEST_ARGS)

bench-gpu: $(B)/build.ninja
	@cmake --build $(B) --target bench_cuda
	@$(B)/bench/cuda/bench_cuda --commit $$(git describe --always --dirty 2>/dev/null || echo unknown) $(BENCH_ARGS)

gpu-bundle: | test-packages
	@tools/gpu/bundle.sh $(B)-bundle build-gpu

chat: program
	@$(B)/fathom run

# The configure looks again: what the tests need may just have been installed.
test: test-packages $(B)/build.ninja
	@cmake -B $(B) -DFM_TESTS=ON >/dev/null
	@cmake --build $(B)
	@tests/run.sh $(B)

# No tests and no measuring programs are built for it.
install: $(B)/build.ninja
	@cmake --build $(B) --target fathom_app fathom_shared
	@cmake --install $(B) --prefix $(PREFIX)
	@if [ -z "$$DESTDIR" ] && [ "$$(id -u)" = 0 ]; then ldconfig || true; fi # libfathom into the cache of the loader

# Debian package and relocatable tarball of what make install leaves, in $(B).
deb: $(B)/build.ninja
	@cmake --build $(B) --target fathom_app fathom_shared
	@cpack --config $(B)/CPackConfig.cmake -B $(B)/deb && ls $(B)/deb/*.deb

tarball: $(B)/build.ninja
	@cmake --build $(B) --target fathom_app fathom_shared
	@tools/tarball.sh $(B) $(B)/fathom-$$(uname -m).tar.gz

packages:
	@tools/packages.sh build

test-packages: | packages
	@tools/packages.sh test

clean:
	@rm -rf $(B)

.PHONY: all program chat bench bench-cpu bench-scf bench-gpu gpu-bundle test test-gpu install deb tarball packages test-packages clean
