// SPDX-License-Identifier: Apache-2.0
// An opcode taken apart: "mad.lo.s32" is base "mad", modifiers "lo" and "s32", type s32. And the
// tables that give the handler for one: null means that this engine does not know it.
#pragma once

#include <array>
#include <string_view>

#include "softgpu/exec/program.h"
#include "softgpu/ptx/types.h"

namespace remora::softgpu {

struct Opcode {
  explicit Opcode(std::string_view text);

  std::string_view text;
  std::string_view base;
  std::array<std::string_view, 12> modifiers;
  std::size_t modifier_count = 0;
  std::array<ScalarType, 4> types{};  // those modifiers that name one, in order
  std::size_t type_count = 0;

  bool has(std::string_view modifier) const;
  /// Every modifier is a type or one of these: nothing was overlooked.
  bool only(std::initializer_list<std::string_view> known) const;
  ScalarType type() const { return type_count != 0 ? types[0] : ScalarType::none; }
  ScalarType last_type() const { return type_count != 0 ? types[type_count - 1] : ScalarType::none; }
};

enum class Rounding : std::uint8_t { nearest, zero, down, up };

/// What a handler wants: how many sources, and the types of result and sources.
struct Shape {
  Handler handler = nullptr;
  ScalarType result = ScalarType::none;
  std::array<ScalarType, 3> sources{};
  std::size_t source_count = 0;
};

Shape integer_shape(const Opcode& opcode);
Shape float_shape(const Opcode& opcode);
Shape convert_shape(const Opcode& opcode);
/// What goes into Instruction::small for those.
std::uint8_t float_small(const Opcode& opcode);
std::uint8_t convert_small(const Opcode& opcode);

/// setp and set: `sources` are compared; `combine` is a predicate or none.
Handler compare_handler(std::string_view comparison, ScalarType type, bool ftz);

Handler load_handler(std::string_view space, ScalarType type, unsigned vector);
Handler store_handler(std::string_view space, ScalarType type, unsigned vector);
Handler atomic_handler(std::string_view operation, ScalarType type, bool shared);

// Warp-wide; operands as their comments in ops_warp.cpp say.
Handler shuffle_handler(std::string_view mode);
Handler vote_handler(std::string_view mode);
Handler match_handler(std::string_view mode, ScalarType type);
Handler redux_handler(std::string_view operation, ScalarType type);
Handler elect_handler();
Handler active_mask_handler();

// Control and the rest.
Handler branch_handler();
Handler indexed_branch_handler();
Handler exit_handler();
Handler barrier_handler();
Handler barrier_arrive_handler();
Handler nothing_handler();
Handler fence_handler();
Handler trap_handler();
Handler yield_handler();
Handler clock_handler(bool wide);
Handler print_handler();
Handler assert_handler();
Handler allocate_handler();
Handler release_handler();

// Moves between registers of all widths.
Handler move_handler(unsigned from_bytes, unsigned to_bytes, bool sign_extend);
Handler predicate_handler(std::string_view operation);
Handler select_handler(unsigned bytes, bool by_sign_f32, bool by_sign_s32);
Handler pack_handler(unsigned part_bytes, unsigned parts);
Handler unpack_handler(unsigned part_bytes, unsigned whole_bytes);
Handler is_space_handler();

}  // namespace remora::softgpu
