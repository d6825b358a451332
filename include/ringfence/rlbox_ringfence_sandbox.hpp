// ringfence/rlbox_ringfence_sandbox.hpp - a back end of RLBox: its sandboxes are Ringfence's domains. Included behind rlbox.hpp.
//
//     rlbox::rlbox_sandbox<rlbox::rlbox_ringfence_sandbox> box;
//     if (!box.create_sandbox("libcodec.rf")) ...   // rf_error tells
//
// Pointers are the same numbers on both sides and C's types have the same sizes, so that nothing is translated. What fails in the
// domain returns 0, as in C, and rf_error tells. Structs of more than 16 bytes pass by value, smaller ones with NAME_fenced.hpp of
// `ringfence bind --lang c++` included before their calls. Threads: as RLBox says.
#ifndef RINGFENCE_RLBOX_RINGFENCE_SANDBOX_HPP
#define RINGFENCE_RLBOX_RINGFENCE_SANDBOX_HPP

#include <ringfence/tainted.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

namespace rlbox {

class rlbox_ringfence_sandbox {
  public:
    using T_LongLongType = long long;
    using T_LongType = long;
    using T_IntType = int;
    using T_PointerType = void *;
    using T_ShortType = short;

  private:
    std::unique_ptr<ringfence::sandbox> box_;
    std::map<void *, std::string> names_; // of functions that were looked up, by their addresses in the domain
    std::map<void *, ringfence::sandbox::slot *> callbacks_; // by RLBox's keys
    std::mutex mutex_;
    // The callback that runs on this thread.
    thread_local static inline std::pair<rlbox_ringfence_sandbox *, void *> running_{nullptr, nullptr};

    // What `how` makes of the function, if there is one.
    template <typename F, typename H> static auto call(F *function, H &&how) {
        using result = decltype(how(function));
        if constexpr (std::is_void_v<result>) {
            if (function)
                how(function);
        } else {
            return function ? how(function) : result{};
        }
    }
    static std::uintptr_t window(const void *p) { return reinterpret_cast<std::uintptr_t>(p) >> 32; }

  protected:
    bool impl_create_sandbox(const char *path, const rf_domain_options *options = nullptr) {
        box_ = std::make_unique<ringfence::sandbox>(path, options);
        return static_cast<bool>(*box_);
    }
    void impl_destroy_sandbox() { box_.reset(); }

    template <typename T> void *impl_get_unsandboxed_pointer(T_PointerType p) const { return p; }
    template <typename T> T_PointerType impl_get_sandboxed_pointer(const void *p) const { return const_cast<T_PointerType>(p); }
    template <typename T>
    static void *impl_get_unsandboxed_pointer_no_ctx(T_PointerType p, const void *, rlbox_ringfence_sandbox *(*)(const void *)) {
        return p;
    }
    template <typename T>
    static T_PointerType impl_get_sandboxed_pointer_no_ctx(const void *p, const void *, rlbox_ringfence_sandbox *(*)(const void *)) {
        return const_cast<T_PointerType>(p);
    }

    T_PointerType impl_malloc_in_sandbox(size_t size) { return rf_memory_alloc(box_->domain(), size); }
    void impl_free_in_sandbox(T_PointerType p) { (void)rf_memory_free(box_->domain(), p); }
    static bool impl_is_in_same_sandbox(const void *a, const void *b) { return window(a) == window(b); }
    bool impl_is_pointer_in_sandbox_memory(const void *p) { return rf_memory_contains(box_->domain(), p, 1) == 1; }
    bool impl_is_pointer_in_app_memory(const void *p) { return !impl_is_pointer_in_sandbox_memory(p); }
    size_t impl_get_total_memory() { return size_t{1} << 32; }
    void *impl_get_memory_location() {
        void *probe = rf_memory_alloc(box_->domain(), 1);
        (void)rf_memory_free(box_->domain(), probe);
        return reinterpret_cast<void *>(window(probe) << 32);
    }

    // A function's address in the domain, by which RLBox names it.
    void *impl_lookup_symbol(const char *name) {
        void *address = rf_domain_find_symbol(box_->domain(), nullptr, name);
        std::lock_guard<std::mutex> lock(mutex_);
        if (address)
            names_[address] = name;
        return address;
    }

    template <typename T, typename T_Converted, typename... T_Args> auto impl_invoke_with_func_ptr(T_Converted *address, T_Args &&...params) {
        std::string name;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            name = names_[reinterpret_cast<void *>(address)];
        }
        // T has the program's structs, of which it is known how they pass; T_Converted has RLBox's own in their place.
        using lowered = ringfence::detail::lowered<T, T_Converted>;
        if constexpr (lowered::needed)
            return call(box_->find<typename lowered::prototype>(name), [&](auto *function) { return lowered::call(box_->domain(), function, params...); });
        else
            return call(box_->find<T_Converted>(name), [&](auto *function) { return function(params...); });
    }

    template <typename T_Ret, typename... T_Args> T_PointerType impl_register_callback(void *key, void *callback) {
        auto [slot, address] = box_->lend([this, key, callback](rf_caller *caller) {
            auto before = std::exchange(running_, {this, key});
            auto function = reinterpret_cast<T_Ret (*)(T_Args...)>(callback);
            ringfence::detail::arguments in{box_->domain(), caller};
            std::tuple<T_Args...> list{in.template next<T_Args>().UNSAFE_unverified()...};
            if constexpr (std::is_void_v<T_Ret>)
                std::apply(function, list);
            else
                ringfence::detail::give_back<T_Ret>(caller, std::apply(function, list));
            running_ = before;
        });
        std::lock_guard<std::mutex> lock(mutex_);
        if (slot)
            callbacks_[key] = slot;
        return address;
    }
    static std::pair<rlbox_ringfence_sandbox *, void *> impl_get_executed_callback_sandbox_and_key() { return running_; }
    template <typename T_Ret, typename... T_Args> void impl_unregister_callback(void *key) {
        std::lock_guard<std::mutex> lock(mutex_);
        auto found = callbacks_.find(key);
        if (found == callbacks_.end())
            return;
        *found->second = nullptr;
        callbacks_.erase(found);
    }
};

} // namespace rlbox

#endif
