// For RLBox's own example: the library in a domain whose standard output is the host's.
#include <ringfence.hpp>

static inline const char *fenced_module() {
    rf_policy *policy;
    if (rf_policy_create(&policy) == RF_OK && rf_policy_stdout(policy, RF_STREAM_INHERIT) == RF_OK)
        rf_dlprovide_policy(policy);
    return EXAMPLE_MODULE;
}
