/* In place of libwebp's src/dsp/cpu.c, for a module: SSE2 is there on any x86-64, and nothing else was built. */
#include "src/dsp/cpu.h"

static int features(CPUFeature feature) { return feature == kSSE2; }

VP8CPUInfo VP8GetCPUInfo = features;
VP8CPUInfo SharpYuvGetCPUInfo = features;
