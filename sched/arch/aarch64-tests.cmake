# The aarch64 port, proven on any machine: sched and its tests are cross-compiled in a build tree of their own
# and run under qemu-user, as three tests that need each other (fixtures): those about what is different there
# (sched/CMakeLists.txt names them), not the ones about the scheduler's rules, and with two Ps only: the number
# of Ps is nothing that differs. A tool that is missing fails the first of them and not the configuration:
# programs can be built without it, but no test run passes over it.
#
# Everything is compiled with -mbranch-protection=standard, so that return addresses are signed and landing
# pads are needed; -z now, because guarded code has no pad for lazy binding (tests/landing_pads_test.cpp).
#
# What this cannot show: qemu on x86-64 orders memory as x86-64 does, so reorderings that only aarch64 makes
# do not happen. And it answers MADV_GUARD_INSTALL with success and does nothing, so the stacks have the other
# kind of guard (rt/memory/stack_arena.cpp). With that kind vm.max_map_count ends at about 33,000 stacks, and the
# test that wants 100,000 is left out. So are those whose signal moves to a real-time one, which waited in
# vain under qemu 7.2, one about sysmon's rules that takes long, one that reads memory by process_vm_readv, which
# qemu does not have, one that waits for the name of a system call, whose number in /proc is the host's, and one that
# waits for the report of a deadlock, because qemu does not tell the number of threads.

set(tree ${PROJECT_BINARY_DIR}/aarch64)
set(jobs 2)

# Without the variables that choose flags for this machine.
add_test(NAME aarch64.configure
  COMMAND ${CMAKE_COMMAND} -E env --unset=CFLAGS --unset=CXXFLAGS --unset=ASMFLAGS --unset=LDFLAGS
    ${CMAKE_COMMAND} -S ${PROJECT_SOURCE_DIR} -B ${tree} -G ${CMAKE_GENERATOR}
    -DCMAKE_TOOLCHAIN_FILE=${CMAKE_CURRENT_LIST_DIR}/aarch64-toolchain.cmake
    -DCMAKE_MAKE_PROGRAM=${CMAKE_MAKE_PROGRAM}
    -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -g1"
    -DCMAKE_CXX_FLAGS=-mbranch-protection=standard -DCMAKE_EXE_LINKER_FLAGS=-Wl,-z,now
    -DTUZA_SCHED_ONLY=ON -DTUZA_TESTS=ON -DTUZA_WERROR=ON -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=6
    -DTUZA_BENCHMARKS=OFF -DTUZA_EXAMPLES=OFF)
set_tests_properties(aarch64.configure PROPERTIES
  FIXTURES_SETUP aarch64_tree LABELS all COST 300 TIMEOUT 600)

add_test(NAME aarch64.build COMMAND ${CMAKE_COMMAND} --build ${tree} --target sched_tests --parallel ${jobs})
set_tests_properties(aarch64.build PROPERTIES
  FIXTURES_REQUIRED aarch64_tree FIXTURES_SETUP aarch64_program LABELS all COST 300 PROCESSORS ${jobs} TIMEOUT 900)

# Parts of the names of those that are left out, see above. Each must still stand in a test.
set(left_out GuardedStacksCanWait ALibraryTakesTheSignal ALibraryGotTheSignal HandlerThatCallsOurs ComesEarlierAfterAUsefulOne
  InTheKernelWorkOn LeavesThreadsAloneThatWait ADeadlockIsReported)
list(TRANSFORM left_out REPLACE "(.+)" "*\\1*" OUTPUT_VARIABLE patterns)
list(JOIN patterns ":" patterns)

# Two shards, for two cores.
foreach(shard 0 1)
  set(test aarch64.sched_tests.${shard})
  add_test(NAME ${test}
    COMMAND sh -c "exec \"$1\" \"$(command -v qemu-aarch64 || command -v qemu-aarch64-static)\" sched/sched_tests \"$2\"" sh
      ${CMAKE_CURRENT_LIST_DIR}/aarch64-emulator.sh "--gtest_filter=-P/*/0:P/*/2:${patterns}"
    WORKING_DIRECTORY ${tree})
  set_tests_properties(${test} PROPERTIES ENVIRONMENT "GTEST_TOTAL_SHARDS=2;GTEST_SHARD_INDEX=${shard}"
    FIXTURES_REQUIRED "aarch64_tree;aarch64_program" LABELS all COST 300 TIMEOUT 600)
endforeach()
