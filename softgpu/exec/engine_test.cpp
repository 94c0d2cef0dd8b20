// SPDX-License-Identifier: Apache-2.0
// What warps and blocks do together: divergence, barriers, shuffles, atomics, faults.
#include "softgpu/exec/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "softgpu/exec/test_machine.h"

namespace remora::softgpu {
namespace {

using test::Machine;
using test::module_of;
using test::Parameters;

const char* const kThread =
    "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;\n"
    "mad.lo.s32 %r0, %r2, %r3, %r1;\n"  // the thread's index in the grid
    "ld.param.u64 %d0, [out]; mad.wide.u32 %d1, %r0, 4, %d0;\n";

TEST(Engine, EveryThreadRunsOnce) {
  Machine machine;
  machine.load(module_of(".param .u64 out", std::string(kThread) + "st.global.u32 [%d1], %r0; ret;"));
  constexpr unsigned kThreads = 100 * 77;
  auto* out = machine.memory.allocate<std::uint32_t>(kThreads, 0xffffffff);
  const Fault fault = machine.launch("k", {100}, {77}, Parameters() << out);
  EXPECT_EQ(fault.kind, Fault::Kind::none) << fault.text;
  for (unsigned i = 0; i < kThreads; ++i) ASSERT_EQ(out[i], i);
}

// Lanes take different numbers of rounds, and meet again: the count of lanes that are together
// behind the loop says so.
TEST(Engine, LanesOfALoopMeetBehindIt) {
  Machine machine;
  machine.load(module_of(".param .u64 out", std::string(kThread) + R"(
    mov.u32 %r4, 0;
    LOOP: add.u32 %r4, %r4, 1; setp.lt.u32 %p0, %r4, %r1; @%p0 bra LOOP;
    activemask.b32 %r5;
    st.global.u32 [%d1], %r5; ret;)"));
  auto* out = machine.memory.allocate<std::uint32_t>(32);
  EXPECT_EQ(machine.launch("k", {1}, {32}, Parameters() << out).kind, Fault::Kind::none);
  for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(out[i], 0xffffffffu);
}

// A lock among the lanes of one warp: lane after lane gets it, which needs that a lane that spins
// does not keep out the one that holds it.
TEST(Engine, LanesOfAWarpMayWaitForOneAnother) {
  Machine machine;
  machine.load(module_of(".param .u64 out, .param .u64 lock", std::string(kThread) + R"(
    ld.param.u64 %d2, [lock];
    SPIN: atom.global.cas.b32 %r4, [%d2], 0, 1; setp.ne.u32 %p0, %r4, 0; @%p0 bra SPIN;
    ld.volatile.global.u32 %r5, [%d0]; add.u32 %r5, %r5, 1; st.volatile.global.u32 [%d0], %r5;
    membar.gl; atom.global.exch.b32 %r6, [%d2], 0; ret;)"));
  auto* out = machine.memory.allocate<std::uint32_t>(256);
  auto* lock = machine.memory.allocate<std::uint32_t>(1);
  EXPECT_EQ(machine.launch("k", {4}, {64}, Parameters() << out << lock).kind, Fault::Kind::none);
  EXPECT_EQ(out[0], 256u);
}

// Every block waits until all have arrived, more of them than there are workers.
TEST(Engine, BlocksMayWaitForBlocksThatStartLater) {
  Machine machine;
  machine.load(module_of(".param .u64 out, .param .u32 blocks", R"(
    ld.param.u64 %d0, [out]; ld.param.u32 %r1, [blocks];
    atom.global.add.u32 %r2, [%d0], 1;
    WAIT: ld.volatile.global.u32 %r3, [%d0]; setp.lt.u32 %p0, %r3, %r1; @%p0 bra WAIT;
    ret;)"));
  auto* out = machine.memory.allocate<std::uint32_t>(1);
  EXPECT_EQ(machine.launch("k", {40}, {1}, Parameters() << out << 40u).kind, Fault::Kind::none);
  EXPECT_EQ(out[0], 40u);
}

TEST(Engine, ABarrierSeparatesWritesFromReads) {
  Machine machine;
  machine.load(module_of(".param .u64 out", std::string(kThread) + R"(
    .shared .align 4 .b8 buffer[1024];
    mov.u32 %r4, buffer; shl.b32 %r5, %r1, 2; add.u32 %r6, %r4, %r5; st.shared.u32 [%r6], %r1;
    bar.sync 0;
    sub.u32 %r7, 255, %r1; shl.b32 %r7, %r7, 2; add.u32 %r7, %r4, %r7; ld.shared.u32 %r8, [%r7];
    st.global.u32 [%d1], %r8; ret;)"));
  auto* out = machine.memory.allocate<std::uint32_t>(256);
  EXPECT_EQ(machine.launch("k", {1}, {256}, Parameters() << out).kind, Fault::Kind::none);
  for (unsigned i = 0; i < 256; ++i) ASSERT_EQ(out[i], 255 - i);
}

// Half of the threads have ended when the rest reach the barrier.
TEST(Engine, ABarrierDoesNotWaitForEndedThreads) {
  Machine machine;
  machine.load(module_of(".param .u64 out", std::string(kThread) + R"(
    setp.ge.u32 %p0, %r1, 40; @%p0 ret;
    barrier.sync 3;
    st.global.u32 [%d1], 7; ret;)"));
  auto* out = machine.memory.allocate<std::uint32_t>(80);
  EXPECT_EQ(machine.launch("k", {1}, {80}, Parameters() << out).kind, Fault::Kind::none);
  EXPECT_EQ(std::count(out, out + 80, 7u), 40);
}

TEST(Engine, BarrierReductions) {
  Machine machine;
  machine.load(module_of(".param .u64 out", std::string(kThread) + R"(
    setp.lt.u32 %p0, %r1, 50;
    bar.red.popc.u32 %r4, 0, %p0; bar.red.and.pred %p1, 0, %p0; bar.red.or.pred %p2, 0, !%p0;
    selp.u32 %r5, 1000, 0, %p1; selp.u32 %r6, 10000, 0, %p2; add.u32 %r4, %r4, %r5; add.u32 %r4, %r4, %r6;
    st.global.u32 [%d1], %r4; ret;)"));
  auto* out = machine.memory.allocate<std::uint32_t>(96);
  EXPECT_EQ(machine.launch("k", {1}, {96}, Parameters() << out).kind, Fault::Kind::none);
  for (unsigned i = 0; i < 96; ++i) ASSERT_EQ(out[i], 10050u);
}

TEST(Engine, ThreadsThatWaitForNobodyAreAFaultAndNoHang) {
  Machine machine;
  machine.load(module_of(".param .u64 out", std::string(kThread) + R"(
    setp.ge.u32 %p0, %r1, 32; @%p0 bra OTHER;
    bar.sync 1; ret;
    OTHER: bar.sync 2; ret;)"));
  auto* out = machine.memory.allocate<std::uint32_t>(64);
  const Fault fault = machine.launch("k", {1}, {64}, Parameters() << out);
  EXPECT_EQ(fault.kind, Fault::Kind::internal);
  EXPECT_THAT(fault.text, testing::HasSubstr("barriers"));
}

TEST(Engine, Shuffles) {
  Machine machine;
  machine.load(module_of(".param .u64 out", std::string(kThread) + R"(
    mad.wide.u32 %d1, %r1, 20, %d0;
    mul.lo.u32 %r4, %r1, 10;
    shfl.sync.up.b32 %r5|%p0, %r4, 1, 0, 0xffffffff;
    shfl.sync.down.b32 %r6, %r4, 2, 0x1f, 0xffffffff;
    shfl.sync.bfly.b32 %r7, %r4, 16, 0x1f, 0xffffffff;
    shfl.sync.idx.b32 %r8, %r4, 3, 0x181f, 0xffffffff;
    selp.u32 %r9, 1, 0, %p0;
    st.global.u32 [%d1], %r5; st.global.u32 [%d1+4], %r6; st.global.u32 [%d1+8], %r7;
    st.global.u32 [%d1+12], %r8; st.global.u32 [%d1+16], %r9; ret;)"));
  auto* out = machine.memory.allocate<std::uint32_t>(32 * 5);
  EXPECT_EQ(machine.launch("k", {1}, {32}, Parameters() << out).kind, Fault::Kind::none);
  for (unsigned i = 0; i < 32; ++i) {
    EXPECT_EQ(out[i * 5], (i == 0 ? 0 : i - 1) * 10);
    EXPECT_EQ(out[i * 5 + 1], (i >= 30 ? i : i + 2) * 10);
    EXPECT_EQ(out[i * 5 + 2], (i ^ 16) * 10);
    EXPECT_EQ(out[i * 5 + 3], (i / 8 * 8 + 3) * 10);  // segments of 8
    EXPECT_EQ(out[i * 5 + 4], i == 0 ? 0u : 1u);
  }
}

// Two halves of a warp come to the shuffle from different branches; it waits until all are there.
TEST(Engine, AShuffleWaitsForTheLanesThatItNames) {
  Machine machine;
  machine.load(module_of(".param .u64 out", std::string(kThread) + R"(
    setp.lt.u32 %p0, %r1, 16; mov.u32 %r4, 5;
    @%p0 bra JOIN;
    mov.u32 %r4, 9;
    JOIN: shfl.sync.bfly.b32 %r5, %r4, 16, 0x1f, 0xffffffff;
    st.global.u32 [%d1], %r5; ret;)"));
  auto* out = machine.memory.allocate<std::uint32_t>(32);
  EXPECT_EQ(machine.launch("k", {1}, {32}, Parameters() << out).kind, Fault::Kind::none);
  for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(out[i], i < 16 ? 9u : 5u);
}

TEST(Engine, VotesMatchesAndReductions) {
  Machine machine;
  machine.load(module_of(".param .u64 out", std::string(kThread) + R"(
    mad.wide.u32 %d1, %r1, 20, %d0;
    setp.lt.u32 %p0, %r1, 3;
    vote.sync.ballot.b32 %r4, %p0, 0xffffffff;
    vote.sync.any.pred %p1, %p0, 0xffffffff; vote.sync.all.pred %p2, %p0, 0xffffffff;
    selp.u32 %r5, 1, 0, %p1; selp.u32 %r6, 2, 0, %p2; or.b32 %r5, %r5, %r6;
    and.b32 %r7, %r1, 1; match.any.sync.b32 %r8, %r7, 0xffffffff;
    redux.sync.add.u32 %r9, %r1, 0xffffffff;
    redux.sync.max.s32 %r10, %r1, 0xffffffff;
    st.global.u32 [%d1], %r4; st.global.u32 [%d1+4], %r5; st.global.u32 [%d1+8], %r8;
    st.global.u32 [%d1+12], %r9; st.global.u32 [%d1+16], %r10; ret;)"));
  auto* out = machine.memory.allocate<std::uint32_t>(32 * 5);
  EXPECT_EQ(machine.launch("k", {1}, {32}, Parameters() << out).kind, Fault::Kind::none);
  for (unsigned i = 0; i < 32; ++i) {
    EXPECT_EQ(out[i * 5], 7u);
    EXPECT_EQ(out[i * 5 + 1], 1u);
    EXPECT_EQ(out[i * 5 + 2], i % 2 ? 0xaaaaaaaau : 0x55555555u);
    EXPECT_EQ(out[i * 5 + 3], 31u * 32 / 2);
    EXPECT_EQ(out[i * 5 + 4], 31u);
  }
}

TEST(Engine, AtomicsAreAtomicAcrossBlocks) {
  Machine machine;
  machine.load(module_of(".param .u64 out", R"(
    ld.param.u64 %d0, [out];
    mov.f32 %f0, 0f3F800000;
    red.global.add.u32 [%d0], 1; atom.global.add.f32 %f1, [%d0+4], %f0;
    mov.u32 %r1, %tid.x; atom.global.max.u32 %r2, [%d0+8], %r1; atom.global.inc.u32 %r3, [%d0+12], 9;
    atom.global.or.b32 %r4, [%d0+16], %r1; ret;)"));
  auto* out = machine.memory.allocate<std::uint32_t>(5);
  EXPECT_EQ(machine.launch("k", {64}, {128}, Parameters() << out).kind, Fault::Kind::none);
  EXPECT_EQ(out[0], 64u * 128);
  EXPECT_EQ(std::bit_cast<float>(out[1]), 64.0f * 128);
  EXPECT_EQ(out[2], 127u);
  EXPECT_EQ(out[3], 64u * 128 % 10);
  EXPECT_EQ(out[4], 127u);
}

TEST(Engine, FunctionsAreExpandedAndPrintfPrints) {
  Machine machine;
  machine.load(module_of(".param .u64 out", std::string(kThread) + R"(
    .param .b32 p0; .param .b32 r0;
    { st.param.b32 [p0], %r1; call.uni (r0), twice, (p0); ld.param.b32 %r4, [r0]; }
    st.global.u32 [%d1], %r4;
    setp.ne.u32 %p0, %r1, 3; @%p0 ret;
    .local .align 8 .b8 args[16]; .param .b64 a; .param .b64 b; .param .b32 c;
    mov.u64 %d2, args; cvta.local.u64 %d3, %d2; st.local.u32 [args], %r4;
    mov.f64 %g0, 0d3FF8000000000000; st.local.f64 [args+8], %g0;
    mov.u64 %d4, text;
    st.param.b64 [a], %d4; st.param.b64 [b], %d3; call.uni (c), vprintf, (a, b); ret;)",
                         R"(.extern .func (.param .b32 x) vprintf (.param .b64 y, .param .b64 z);
    .global .align 1 .b8 text[12] = {60, 37, 100, 32, 37, 46, 50, 102, 62, 10, 0, 0};
    .func (.param .b32 result) twice(.param .b32 value) {
      .reg .b32 %r<4>; .reg .pred %p<2>;
      ld.param.b32 %r1, [value]; setp.gt.u32 %p1, %r1, 100; @%p1 bra BIG;
      add.u32 %r2, %r1, %r1; st.param.b32 [result], %r2; ret;
      BIG: st.param.b32 [result], %r1; ret; })"));
  auto* out = machine.memory.allocate<std::uint32_t>(128);
  const Fault fault = machine.launch("k", {1}, {128}, Parameters() << out);
  EXPECT_EQ(fault.kind, Fault::Kind::none) << fault.text;
  for (unsigned i = 0; i < 128; ++i) ASSERT_EQ(out[i], i > 100 ? i : 2 * i);
  EXPECT_EQ(machine.printed, "<6 1.50>\n");
}

TEST(Engine, AnAccessPastAnAllocationIsAFaultThatNamesThread) {
  Machine machine;
  machine.load(module_of(".param .u64 out", std::string(kThread) + "st.global.u32 [%d1], %r0; ret;"));
  auto* out = machine.memory.allocate<std::uint32_t>(100);
  const Fault fault = machine.launch("k", {1}, {101}, Parameters() << out);
  EXPECT_EQ(fault.kind, Fault::Kind::illegal_address);
  EXPECT_THAT(fault.text, testing::HasSubstr("thread (100, 0, 0)"));
}

TEST(Engine, AMisalignedAccessIsAFault) {
  Machine machine;
  machine.load(module_of(".param .u64 out", "ld.param.u64 %d0, [out]; ld.global.u32 %r1, [%d0+2]; ret;"));
  auto* out = machine.memory.allocate<std::uint32_t>(100);
  EXPECT_EQ(machine.launch("k", {1}, {1}, Parameters() << out).kind,
            Fault::Kind::misaligned_address);
}

TEST(Engine, AFaultEndsTheGridAndTheNextOneRuns) {
  Machine machine;
  machine.load(module_of(".param .u64 out", std::string(kThread) + R"(
    setp.eq.u32 %p0, %r0, 5; @%p0 trap; st.global.u32 [%d1], 1; ret;)"));
  auto* out = machine.memory.allocate<std::uint32_t>(64 * 1000);
  EXPECT_EQ(machine.launch("k", {1000}, {64}, Parameters() << out).kind, Fault::Kind::trapped);
  EXPECT_EQ(machine.launch("k", {1}, {5}, Parameters() << out).kind, Fault::Kind::none);
}

TEST(Kernel, AnUnknownInstructionIsRefusedByNameWhenItsKernelIsPrepared) {
  Machine machine;
  machine.load(module_of("", "ret;") +
               ".visible .entry odd() { .reg .b32 %r<2>;\n frobnicate.rn.u32 %r0, %r1; ret; }");
  EXPECT_TRUE(machine.prepare("k").ok());
  const auto odd = machine.prepare("odd");
  ASSERT_FALSE(odd.ok());
  EXPECT_EQ(odd.error().kind, ErrorKind::unsupported);
  EXPECT_THAT(odd.error().text, testing::AllOf(testing::HasSubstr("frobnicate.rn.u32"),
                                               testing::HasSubstr("odd"), testing::HasSubstr("line")));
}

TEST(Kernel, AnUnknownModifierIsNotOverlooked) {
  for (const char* text : {"add.frob.u32 %r0, %r1, %r2;", "ld.global.frob.u32 %r0, [%d0];",
                           "setp.frob.u32 %p0, %r0, %r1;", "cvt.frob.u32.u16 %r0, %h1;",
                           "shfl.sync.frob.b32 %r0, %r1, 0, 0, 1;", "add.u32 %r0, %r1;"}) {
    Machine machine;
    machine.load(module_of("", std::string(text) + " ret;"));
    EXPECT_FALSE(machine.prepare("k").ok()) << text;
  }
}

}  // namespace
}  // namespace remora::softgpu
