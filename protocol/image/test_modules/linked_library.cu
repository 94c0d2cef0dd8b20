// SPDX-License-Identifier: Apache-2.0

__device__ int linked_counter = 5;
__device__ float scaled(float x) { return 2 * x; }

extern "C" __global__ void sets_counter(double d, char c) {
  linked_counter = static_cast<int>(d + c);
}
