// ringfence.hpp - ringfence.h for C++: functions of modules, and for modules, by their C++ types.
//
//     auto add = ringfence::dlsym<int(int, int)>(m, "add");     // int (*)(int, int)
//     ringfence::imports given;
//     given.function("host_add", host_add).callback("host_log", log, &context);
//     given.into(options);
//
// The compiler knows the types, so nobody spells them a second time; an enumeration or a typedef is what it stands for.
// What cannot pass a gate (a class by value, a reference, variable arguments) does not compile.
#ifndef RINGFENCE_HPP
#define RINGFENCE_HPP

#include <ringfence.h>

#include <deque>
#include <string>
#include <type_traits>
#include <vector>

namespace ringfence {
namespace detail {

// T in the words of a prototype.
template <typename T, typename = void> struct word {
    static_assert(!std::is_reference<T>::value, "C has no references: pass a pointer into the domain's memory");
    static_assert(!std::is_class<T>::value && !std::is_union<T>::value,
                  "a class does not pass a gate by value: pass a pointer into the domain's memory");
    static_assert(std::is_pointer<T>::value, "this type does not pass a gate");
    static const char *text() { return "void *"; }
};
template <typename T> struct word<T, typename std::enable_if<std::is_enum<T>::value>::type> {
    static const char *text() { return word<typename std::underlying_type<T>::type>::text(); }
};
template <typename T> struct word<T, typename std::enable_if<std::is_integral<T>::value>::type> {
    static_assert(sizeof(T) <= 8, "this type does not pass a gate");
    static const char *text() {
        return sizeof(T) == 8   ? "long"
               : sizeof(T) == 4 ? "int"
               : sizeof(T) == 2 ? (std::is_signed<T>::value ? "short" : "unsigned short")
                                : (std::is_signed<T>::value ? "signed char" : "unsigned char");
    }
};
template <> struct word<void> {
    static const char *text() { return "void"; }
};
template <> struct word<float> {
    static const char *text() { return "float"; }
};
template <> struct word<double> {
    static const char *text() { return "double"; }
};
template <> struct word<long double> {
    static const char *text() { return "long double"; }
};

template <typename F> struct prototype {
    static_assert(sizeof(F *) == 0, "write a function's type, such as int(int, int), without variable arguments");
};
template <typename R, typename... A> struct prototype<R(A...)> {
    static std::string of(const std::string &name) {
        std::string parameters;
        for (const char *word : {"", word<typename std::remove_cv<A>::type>::text()...})
            parameters += parameters.empty() ? word : std::string(", ") + word;
        return word<typename std::remove_cv<R>::type>::text() + (" " + name) + "(" +
               (parameters.empty() ? "void" : parameters) + ")";
    }
};
#if __cpp_noexcept_function_type
template <typename R, typename... A> struct prototype<R(A...) noexcept> : prototype<R(A...)> {};
#endif

template <typename T, bool = std::is_enum<T>::value> struct number : std::is_signed<T> {};
template <typename T> struct number<T, true> : std::is_signed<typename std::underlying_type<T>::type> {};

// T as the element of an array, and a T that all calls of a batch get.
template <typename T, typename = void> struct element {
    static_assert(std::is_pointer<T>::value, "this type does not pass a gate in a batch");
    static constexpr rf_type type = RF_TYPE_PTR;
    static rf_value same(T value) { return rf_value_ptr(value); }
};
template <typename T> struct element<T, typename std::enable_if<std::is_integral<T>::value || std::is_enum<T>::value>::type> {
    static_assert(sizeof(T) <= 8, "this type does not pass a gate");
    static constexpr bool negative = number<T>::value;
    static constexpr rf_type type = sizeof(T) == 8   ? RF_TYPE_I64
                                    : sizeof(T) == 4 ? (negative ? RF_TYPE_I32 : RF_TYPE_U32)
                                    : sizeof(T) == 2 ? (negative ? RF_TYPE_I16 : RF_TYPE_U16)
                                                     : (negative ? RF_TYPE_I8 : RF_TYPE_U8);
    static rf_value same(T value) {
        return sizeof(T) == 8 ? rf_value_i64(static_cast<int64_t>(value))
               : negative     ? rf_value_i32(static_cast<int32_t>(value))
                              : rf_value_u32(static_cast<uint32_t>(value));
    }
};
template <> struct element<void> {
    static constexpr rf_type type = RF_TYPE_VOID;
};
template <> struct element<float> {
    static constexpr rf_type type = RF_TYPE_F32;
    static rf_value same(float value) { return rf_value_f32(value); }
};
template <> struct element<double> {
    static constexpr rf_type type = RF_TYPE_F64;
    static rf_value same(double value) { return rf_value_f64(value); }
};

template <typename R, typename... A> void (*erase(R (*function)(A...)))(void) {
    return reinterpret_cast<void (*)(void)>(function);
}

} // namespace detail

// The function `name` of a module, of type F; nullptr on failure (see rf_error). `handle` is one of rf_dlopen, or an rf_domain.
template <typename F> F *dlsym(void *handle, const std::string &name) {
    return reinterpret_cast<F *>(rf_dlsym(handle, detail::prototype<F>::of(name).c_str()));
}

// An argument of a batch: an array in the domain's memory, of which each call gets an element, or a value for all.
template <typename T> class column {
  public:
    column(const T *array) : column_{array, {detail::element<T>::type, {0}}} {}
    column(T value) : column_{nullptr, detail::element<T>::same(value)} {}
    operator rf_column() const { return column_; }

  private:
    rf_column column_;
};

// rf_function_call_batch for a function of type F:
//
//     ringfence::batch<double(double, int)>::call(scale, 1000, results, &done, prices, 3);
template <typename F> struct batch;
template <typename R, typename... A> struct batch<R(A...)> {
    static rf_status call(rf_function *function, size_t count, R *results, size_t *done, column<A>... columns) {
        const rf_column all[] = {columns..., rf_column{nullptr, {RF_TYPE_VOID, {0}}}};
        return rf_function_call_batch(function, count, all, sizeof...(A), detail::element<R>::type, results, done);
    }
};

// rf_dlprovide.
template <typename F> rf_status provide(const std::string &name, F *function) {
    return rf_dlprovide(detail::prototype<F>::of(name).c_str(), detail::erase(function));
}

// rf_domain_options that begin with the defaults:
//
//     ringfence::domain_options options;
//     options.memory_limit = 64 << 20;
struct domain_options : rf_domain_options {
    domain_options() : rf_domain_options(RF_DOMAIN_OPTIONS_INIT) {}
};

// What a host gives to domains. Has to live until the domain, the image or the pool is made.
class imports {
  public:
    imports() = default;
    imports(const imports &) = delete;
    imports &operator=(const imports &) = delete;

    // A function as it is: rf_import.function.
    template <typename F> imports &function(const std::string &name, F *function) {
        names.push_back(detail::prototype<F>::of(name));
        list.push_back({names.back().c_str(), detail::erase(function), nullptr, nullptr});
        return *this;
    }
    // The general form: rf_import.callback.
    imports &callback(const std::string &name, rf_callback callback, void *context) {
        names.push_back(name);
        list.push_back({names.back().c_str(), nullptr, callback, context});
        return *this;
    }
    // Sets these imports in `options`.
    void into(rf_domain_options &options) const {
        options.imports = list.data();
        options.import_count = list.size();
    }

  private:
    std::deque<std::string> names; // whose elements do not move
    std::vector<rf_import> list;
};

} // namespace ringfence

#endif
