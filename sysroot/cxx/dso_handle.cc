// What destructors of static objects are registered with. A module has one list of them.
extern "C" {
extern void *const __dso_handle;
__attribute__((visibility("hidden"))) void *const __dso_handle = nullptr;
}
