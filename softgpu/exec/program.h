// SPDX-License-Identifier: Apache-2.0
// A kernel as the engine runs it: an array of instructions, each a handler and where its operands
// lie. Registers are arrays of 32 lanes, so one handler call is one loop over the lanes of a warp:
//
//   predicate            one 32-bit mask, a bit per lane
//   up to 32 bits wide   32 x u32 (narrow integers extended by their sign)
//   64 bits wide         32 x u64
//
// Special registers that do not change (%tid, %ctaid …) are registers that are filled when a warp
// starts; constants are registers of the program that never change. So a handler sees no difference
// between them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "softgpu/exec/kernel.h"

namespace remora::softgpu {

class Warp;
struct Instruction;

inline constexpr unsigned kWarpLanes = 32;

/// What the warp's scheduler does after an instruction.
enum class Flow : std::uint8_t {
  next,
  branch,   // lanes of the mask go to Warp::branch_target
  exit,     // lanes of the mask end
  barrier,  // the group waits at a block barrier (Warp::barrier_*)
  yield,    // go on later: let others run
  fault,    // Warp::fault_ says why
};

/// `mask`: the lanes that execute it, guard applied; never empty but for `always` instructions.
using Handler = Flow (*)(Warp& warp, const Instruction& instruction, std::uint32_t mask);

/// Where an operand lies: a byte offset into the warp's registers, or into the program's constants.
struct Place {
  std::uint32_t offset = 0;
  bool constant = false;
};

struct Instruction {
  Handler run = nullptr;
  std::uint32_t d = 0;   // registers, byte offsets
  std::uint32_t d2 = 0;
  Place a, b, c, e;
  std::uint64_t immediate = 0;   // an address offset, a count, a table
  std::uint32_t target = 0;      // of a branch
  std::uint32_t guard = 0;       // a predicate's offset; with has_guard
  std::uint32_t line = 0;        // of the PTX text
  bool has_guard = false;
  bool guard_negated = false;
  bool converge = false;  // a .sync instruction: waits for the lanes that `e` (a mask) names
  bool wide_address = true;
  std::uint8_t small = 0;  // a field for whatever a handler needs
};

struct SpecialRegister {
  enum class Kind : std::uint8_t {
    tid_x, tid_y, tid_z, ntid_x, ntid_y, ntid_z, ctaid_x, ctaid_y, ctaid_z, nctaid_x, nctaid_y,
    nctaid_z, laneid, warpid, nwarpid, smid, nsmid, gridid, lanemask_eq, lanemask_le, lanemask_lt,
    lanemask_ge, lanemask_gt, dynamic_smem_size, total_smem_size,
  };
  Kind kind;
  std::uint32_t offset;  // a 32-bit register
};

struct Program {
  std::string name;
  KernelResources resources;
  std::vector<Instruction> code;             // ends with an exit
  std::vector<std::byte> constants;
  std::vector<SpecialRegister> specials;
  std::vector<std::vector<std::uint32_t>> branch_tables;
  std::uint32_t register_bytes = 0;          // per warp
  std::uint32_t dynamic_shared_offset = 0;   // behind the static variables
};

/// Where names become registers, constants and offsets; in translate.cpp.
Result<std::unique_ptr<const Program>> translate(const Module& module, std::string_view kernel);

}  // namespace remora::softgpu
