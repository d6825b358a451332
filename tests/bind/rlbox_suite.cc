// RLBox's own tests of back ends (code/tests/rlbox_glue), for ours. SUITE_MODULE is their library as a module.
#define RLBOX_USE_EXCEPTIONS
#define RLBOX_ENABLE_DEBUG_ASSERTIONS
#include <rlbox.hpp>
#include <ringfence/rlbox_ringfence_sandbox.hpp>

#define TestName "rlbox_ringfence_sandbox"
#define TestType rlbox::rlbox_ringfence_sandbox
#define CreateSandbox(sandbox) sandbox.create_sandbox(SUITE_MODULE)
#define CATCH_CONFIG_MAIN
#include "test_sandbox_glue.inc.cpp"
