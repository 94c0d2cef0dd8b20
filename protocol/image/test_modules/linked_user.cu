// SPDX-License-Identifier: Apache-2.0
// Relocatable code: calls a function and reads a variable of linked_library.cu.

extern __device__ int linked_counter;
extern __device__ float scaled(float);

extern "C" __global__ void calls_across(float* x, int n) { x[n] = scaled(x[n]) + linked_counter; }
