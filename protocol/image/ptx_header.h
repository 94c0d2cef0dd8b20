// SPDX-License-Identifier: Apache-2.0
// A light scan of PTX text for what stands in its declarations: the target, kernels with their
// parameters, global variables. Bodies are skipped by their braces. It exists so that the client
// needs no question to the server before a launch; the parser that checks and executes PTX is the
// software GPU's own. What the scan cannot follow is an error, never a guess.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "protocol/image/module_contents.h"

namespace remora::image {

/// Kernels and globals that the text defines (those it only declares as .extern are left out).
Result<ModuleContents> scan_ptx(std::string_view text);

/// True when the text begins as PTX must: blanks and comments, then `.version`.
bool looks_like_ptx(std::string_view text);

/// 90 for `.target sm_90` or `sm_90a`; an error when there is no such line.
Result<std::uint32_t> ptx_target(std::string_view text);

}  // namespace remora::image
